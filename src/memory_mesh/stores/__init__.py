"""Where rows are kept. Each store is one implementation of `core.ports.Store`, held by the same contract."""
