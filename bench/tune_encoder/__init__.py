"""Tuning of the encoder."""
