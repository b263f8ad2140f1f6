"""Output: results as text, as JSON and as screens."""
