"""Measurements: each writes what it saw, with the command and the commit, into bench/results."""
