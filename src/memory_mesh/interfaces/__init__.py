"""The interfaces of the program: the command line and the servers."""
