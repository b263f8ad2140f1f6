"""What is true, in plain Python: records, rules and ports. No I/O, no clock, no network."""
