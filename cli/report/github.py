"""Workflow commands that GitHub turns into annotations on the lines of a change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from vlmend.cli.console import printable
from vlmend.cli.report.locations import below_workspace
from vlmend.cli.report.words import place
from vlmend.codemods.codemod import Finding, Source, Status

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged

LEVELS: Final = {
    Status.FIXABLE: "error",
    Status.BLOCKED: "error",
    Status.REVIEW: "warning",
    Status.UNPROVEN: "warning",
    Status.SATISFIED: "notice",
    Status.EXEMPT: "notice",
    Status.SUPPRESSED: "notice",
}


def workflow_commands(
    judged: Judged, shown: Sequence[Finding], *, failing: bool = True
) -> Iterator[str]:
    """Yield one command per finding, unused suppression and error.

    Args:
        judged: the tree.
        shown: the findings that are listed.
        failing: findings are why the job fails; where they are not, they are warnings,
            so that what is an error stands out.
    """
    for finding in shown:
        level = LEVELS[finding.status]
        yield command(
            "warning" if level == "error" and not failing else level,
            _message(finding),
            file=below_workspace(judged.target, finding.file)
            if finding.source is Source.TREE
            else "",
            line=finding.line,
            title=f"{finding.status} {finding.class_name} ({finding.codemod})",
        )
    for one in judged.unused:
        yield command(
            "warning",
            f"this suppresses nothing: {one.reason}",
            file=below_workspace(judged.target, one.file) if one.line else "",
            line=one.line,
            title=f"unused suppression of {one.codemod}",
        )
    for error in judged.errors:
        yield command(
            "error",
            error.message,
            file=below_workspace(judged.target, error.file) if error.file else "",
            title="not judged",
        )


def _message(finding: Finding) -> str:
    lines = [finding.message]
    if finding.evidence:
        lines.append("How this is known:")
    for number, link in enumerate(finding.evidence, start=1):
        where = place(link.file, link.line, link.source)
        lines.append(f"{number}. {link.statement} ({where})")
    lines.append(f"vlmend explain {finding.fingerprint}")
    return "\n".join(lines)


def command(
    level: str, message: str, *, file: str = "", line: int = 0, title: str = ""
) -> str:
    """Return one command: ``error``, ``warning`` or ``notice`` with its message."""
    properties = {"file": file, "line": str(line) if line and file else ""}
    properties["title"] = title
    told = ",".join(f"{k}={_property(v)}" for k, v in properties.items() if v)
    return f"::{level} {told}::{_data(message)}"


def _data(text: str) -> str:
    """Escape as the runner's own toolkit does: a message must not end its command."""
    text = "\n".join(map(printable, text.split("\n")))
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
