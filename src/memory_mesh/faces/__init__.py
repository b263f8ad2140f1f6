"""What a caller holds: a face parses, calls one flow, and answers. It decides nothing."""
