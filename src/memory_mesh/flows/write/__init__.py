"""Store, change and archive memories, from the text of a caller to the one write."""
