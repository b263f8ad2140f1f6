"""The rules of the system in plain Python: records, decisions and ports. No I/O, no clock, no network."""
