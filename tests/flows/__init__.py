"""Tests of the flows, with fakes for the stores and models."""
