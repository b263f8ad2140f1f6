"""Stores: the contract, histories, conditions as SQL, and the test kit itself."""
