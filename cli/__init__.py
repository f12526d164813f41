"""The command line: everything of vlmend that touches the world."""
