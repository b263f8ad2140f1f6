"""`python -m memory_mesh` is the command `memory-mesh`."""

from memory_mesh.interfaces.cli.main import main

if __name__ == "__main__":
    main()
