"""Speed of memory-mesh by size, without the cost of embedding, and beside other stores with the
same texts and vectors."""
