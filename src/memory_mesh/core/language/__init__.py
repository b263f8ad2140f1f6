"""The language work: cleaning and redacting texts, detecting hostile ones, finding what is worth keeping, and prompts."""
