"""Training of the judge of pairs."""
