"""Every store: what its tests show, and its speed, memory and disk by size."""
