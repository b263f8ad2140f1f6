"""The operations of the system, a package for each domain.

A flow reads through the ports of its `Context`, decides with `core`, and writes once.
"""
