"""What ``--dry-run`` shows: all that would be pushed, and the full text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from vlmend.cli.console import printable
from vlmend.cli.drafts.report import Outcome, Report
from vlmend.cli.drafts.state import Plan
from vlmend.cli.report.words import strong

if TYPE_CHECKING:
    from vlmend.cli.drafts.text import Subject, Texts


def dry_run(
    report: Report, subject: Subject, plan: Plan, texts: Texts, message: str
) -> None:
    """Print one change as it would be written."""
    change = subject.change
    where = plan.pull.url if plan.pull is not None else subject.repository
    report.add(Outcome.WOULD, change.branch, where, plan.act.value)
    for heading, text in (
        ("commit message", message),
        ("diff", change.diff),
        ("title", texts.title(change)),
        ("labels", ", ".join(change.labels)),
        ("text", texts.body(subject)),
    ):
        click.echo(f"\n{strong(heading)}")
        for line in text.rstrip("\n").split("\n"):
            click.echo(f"  {printable(line)}".rstrip())
    click.echo()
