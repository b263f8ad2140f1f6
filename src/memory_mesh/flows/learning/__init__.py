"""Lessons, reflections, skills, the heartbeat, and the models."""
