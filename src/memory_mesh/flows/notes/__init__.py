"""Notes: Markdown files of people and agents, and their index."""
