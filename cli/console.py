"""The terminal: colour, progress, and text that cannot play tricks on it.

Standard output carries a command's result and nothing else; all that is said about the
run goes to standard error.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vlmend.cli.releases import Progress

REDRAW_SECONDS = 0.1

PIPED_WIDTH = 96
"""Line width where there is no terminal to ask: the same output everywhere."""


def colour_choice() -> bool | None:
    """Return False where colour is unwanted, None to let each stream decide."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return None


def on_terminal() -> bool:
    """Say whether the result goes to a terminal."""
    return sys.stdout.isatty()


def width() -> int:
    """Return how wide text may be."""
    if not on_terminal():
        return PIPED_WIDTH
    return max(60, min(shutil.get_terminal_size().columns, 120))


def printable(text: str) -> str:
    """Spell control characters out: a name from the tree must not move the cursor."""
    if text.isprintable():
        return text
    return "".join(
        c if _harmless(c) else c.encode("unicode_escape").decode() for c in text
    )


def _harmless(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character) not in (
        "Cc",
        "Cf",
        "Cs",
    )


def note(message: str) -> None:
    """Tell the person something about the run."""
    click.echo(printable(message), err=True)


def complain(message: str, *, hint: str | None = None) -> None:
    """Say in one line what went wrong, and in a second what to do about it."""
    click.echo(f"vlmend: {printable(message)}", err=True)
    if hint:
        click.echo(f"        {printable(hint)}", err=True)


class _Line:
    """One line on standard error that says how far a long step has come."""

    def __init__(self) -> None:
        self._drawn_at = time.monotonic()
        self._visible = False

    def draw(self, stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._drawn_at < REDRAW_SECONDS:
            return
        self._drawn_at = now
        self._visible = True
        share = f" {100 * min(done, total) // total:3}%" if total else ""
        room = shutil.get_terminal_size().columns - len(share) - 1
        click.echo(f"\r\x1b[K{printable(stage)[:room]}{share}", nl=False, err=True)

    def clear(self) -> None:
        if self._visible:
            click.echo("\r\x1b[K", nl=False, err=True)


@contextmanager
def progress() -> Generator[Progress]:
    """Yield a ``(stage, done, total)`` callback; it draws only where somebody watches.

    Nothing appears for a step that is over at once, and nothing stays.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _ignore
        return
    line = _Line()
    try:
        yield line.draw
    finally:
        line.clear()


def _ignore(stage: str, done: int, total: int | None) -> None:
    del stage, done, total
