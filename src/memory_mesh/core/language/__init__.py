"""Language work: clean, redact and judge texts, find what is worth keeping, and write prompts."""
