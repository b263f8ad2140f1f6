"""Find personal data and secrets in a text and replace them."""
