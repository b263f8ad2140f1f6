"""Protection against hostile input: addresses, fences, prompt injection, trust."""
