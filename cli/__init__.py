"""The command line: everything that touches the world."""
