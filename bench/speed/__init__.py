"""How fast memory-mesh is, by size, beyond the embedding; and beside others, on the same texts with the same vectors."""
