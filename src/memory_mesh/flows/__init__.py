"""What the system does: read through ports, decide in core, write once."""
