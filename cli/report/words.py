"""Small pieces that every text report is put together from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import click

from vlmend.cli.console import printable
from vlmend.codemods.codemod import Evidence, Source, Status

STYLES: Final[Mapping[Status, dict[str, Any]]] = {
    Status.FIXABLE: {"fg": "green", "bold": True},
    Status.REVIEW: {"fg": "yellow", "bold": True},
    Status.BLOCKED: {"fg": "red", "bold": True},
    Status.UNPROVEN: {"fg": "magenta", "bold": True},
    Status.SATISFIED: {"fg": "cyan"},
    Status.EXEMPT: {"dim": True},
    Status.SUPPRESSED: {"dim": True},
}

ORDER: Final = (
    Status.FIXABLE,
    Status.REVIEW,
    Status.BLOCKED,
    Status.UNPROVEN,
    Status.SATISFIED,
    Status.EXEMPT,
    Status.SUPPRESSED,
)
"""Statuses from what needs hands to what needs none."""

ELSEWHERE: Final = {
    Source.TREE: "",
    Source.BASE: " (in the vLLM tree)",
    Source.TRANSFORMERS: " (in Transformers)",
}


def styled_status(status: Status) -> str:
    """Return the status in its colour."""
    return click.style(status.value, **STYLES[status])


def place(file: str, line: int, source: Source = Source.TREE) -> str:
    """Return ``file:line``, and whose file it is where that is not the target."""
    return f"{printable(file)}:{line}{ELSEWHERE[source]}"


def faint(text: str) -> str:
    """Return text that steps back."""
    return click.style(text, dim=True)


def strong(text: str) -> str:
    """Return text that steps forward."""
    return click.style(text, bold=True)


def wrapped(text: str, width: int, indent: str = "", hanging: str | None = None) -> str:
    """Break a paragraph; names, paths and code stay in one piece."""
    return textwrap.fill(
        printable(" ".join(text.split())),
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def chain(evidence: Iterable[Evidence], width: int, indent: str) -> Iterator[str]:
    """Yield a numbered proof: each statement, and below it where it can be checked."""
    for number, link in enumerate(evidence, start=1):
        lead = f"{indent}{number}. "
        yield wrapped(link.statement, width, lead, " " * len(lead))
        yield " " * len(lead) + faint(place(link.file, link.line, link.source))


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
