"""Words in, words out: the command line and, later, the servers."""
