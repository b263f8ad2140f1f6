"""The classes that callers use. A method of a face parses its arguments, calls one flow and returns the result."""
