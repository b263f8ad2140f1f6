"""Many minutes of mixed load on one store: does memory, the number of handles or threads, or the
latency grow?"""
