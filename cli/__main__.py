"""Runs the command line as ``python -m vlmend.cli``."""

from vlmend.cli.main import main

if __name__ == "__main__":
    main()
