"""For your own tests: the contract every store keeps, a state machine that looks for what breaks it, crash points and fakes."""
