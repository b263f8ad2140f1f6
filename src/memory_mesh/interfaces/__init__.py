"""The interfaces of the program: the command line and, later, the servers."""
