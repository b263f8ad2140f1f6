"""The interfaces of the program: the command line, the servers, and the hooks of coding agents.

They are made from the table of operations in `verbs`.
"""
