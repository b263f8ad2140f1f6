"""The command line: parse the words, call one operation, print the answer."""
