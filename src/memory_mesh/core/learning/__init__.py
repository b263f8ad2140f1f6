"""Lessons, scheduled jobs and the accounting of model calls."""
