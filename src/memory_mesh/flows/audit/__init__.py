"""The audit chains: append, sign, read, verify and anchor them."""
