"""Measure search quality against BM25, cosine and their plain fusion, on conversations with
known evidence."""
