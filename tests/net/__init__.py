"""Helpers of the tests of outgoing calls: servers that misbehave on purpose."""
