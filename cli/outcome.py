"""How a run ends: what could not be done is said, and the exit code says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vlmend.cli.console import note
from vlmend.cli.errors import EXIT_TROUBLE

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged

EXIT_FINDINGS: Final = 1


def exit_code(judged: Judged, findings: bool) -> int:
    """Report every error on standard error and return the exit code.

    A file that could not be judged outweighs findings: nothing is known about it.
    """
    for error in judged.errors:
        lead = f"{error.file}: " if error.file else ""
        note(f"vlmend: {lead}{error.message}")
    if judged.errors:
        return EXIT_TROUBLE
    return EXIT_FINDINGS if findings else 0
