"""The operations of the system. A flow reads through the ports of its `Context`, decides with `core`, and writes once."""
