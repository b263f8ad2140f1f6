"""Precision and recall of capture on labelled pieces of transcripts."""
