"""Compare claims, review what is in doubt, and explain a memory."""
