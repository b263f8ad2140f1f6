"""The processor time that texts made to be slow take on every path that reads a text."""
