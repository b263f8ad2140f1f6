"""The SQLite store and the mesh over it, where things go wrong: crashes, crowds, bad files, erasure, files of another program."""
