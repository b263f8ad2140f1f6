"""Tests on real engines. All are marked deep."""
