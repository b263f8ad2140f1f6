"""Tests of the embedders; a package, so that a process started by a test finds its programs."""
