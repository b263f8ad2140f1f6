"""What changed: written pairs, and a measurement."""
