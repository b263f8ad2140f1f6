"""The SQLite store and the mesh over it under faults: crashes, many processes, bad files,
erasure, files of another program."""
