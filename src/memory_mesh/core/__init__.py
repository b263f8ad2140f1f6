"""The rules of the system in plain Python: records, decisions and ports.

No I/O, no clock, no network. Each domain is a package whose `__init__` shows its public names.
"""
