"""What a run says about each draft: one line, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from vlmend.cli.console import PIPED_WIDTH, printable
from vlmend.cli.report.words import strong, wrapped


class Outcome(StrEnum):
    """How one draft ended."""

    CREATED = "created"
    UPDATED = "updated"
    REOPENED = "reopened"
    UNCHANGED = "unchanged"
    CLOSED = "closed"
    UPSTREAM = "upstream"
    LEFT_ALONE = "left alone"
    DECLINED = "declined"
    HELD_BACK = "held back"
    DUPLICATE = "duplicate"
    FAILED = "failed"
    WOULD = "would"


@dataclass(frozen=True, slots=True)
class Line:
    """One draft in the report."""

    outcome: Outcome
    what: str
    where: str = ""
    why: str = ""

    def text(self) -> Iterator[str]:
        """Yield what is printed."""
        head = f"{self.outcome.value:11} {strong(printable(self.what))}"
        yield f"{head}  {printable(self.where)}".rstrip()
        if self.why:
            yield wrapped(self.why, PIPED_WIDTH, " " * 12)


@dataclass
class Report:
    """The lines of a run, in the order in which things happened."""

    lines: list[Line] = field(default_factory=list)

    def add(self, outcome: Outcome, what: str, where: str = "", why: str = "") -> None:
        """Add a line and print it: what is done is said when it is done."""
        import click

        line = Line(outcome, what, where, why)
        self.lines.append(line)
        for text in line.text():
            click.echo(text)

    def count(self, *outcomes: Outcome) -> int:
        """Count the drafts that ended in one of these ways."""
        return sum(line.outcome in outcomes for line in self.lines)
