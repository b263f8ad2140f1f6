"""Everyday memory: what people tell an assistant and agents note at work, and what is asked
months later."""
