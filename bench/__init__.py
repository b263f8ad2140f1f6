"""Benchmarks: each writes its result, with the command and the commit, into bench/results."""
