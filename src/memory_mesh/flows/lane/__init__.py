"""The lane: what an agent learnt, and capture at the end of a session."""
