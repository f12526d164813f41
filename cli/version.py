"""Which vlmend this is."""

from __future__ import annotations


def version() -> str:
    """Return the installed version, or a stand-in when vlmend is not installed."""
    # Imported here: reading metadata costs more than all of `vlmend --help`.
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("vlmend")
    except PackageNotFoundError:
        return "0+uninstalled"
