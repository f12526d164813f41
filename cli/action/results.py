"""What a step hands on: annotations, summary, files and outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vlmend.cli.action.runner import SUMMARY_BYTES, Runner
from vlmend.cli.errors import UserError
from vlmend.cli.files import write_file

if TYPE_CHECKING:
    from vlmend.cli.guard import Guard
    from vlmend.cli.judge import Judged
    from vlmend.codemods.codemod import Finding


@dataclass
class Results:
    """What came of the step.

    Attributes:
        code: the exit code of the step.
        findings: how many findings are listed.
        fixable: how many of them can be mended.
        files: outputs that name files.
        drafts: the output of that name, JSON.
        told: workflow commands for the annotations.
        lead: lines of the summary that come first.
        summary: the rest of it, made to fit beside the lead.
        failures: what went wrong on the way: level, message and remedy.
    """

    code: int = 0
    findings: int = 0
    fixable: int = 0
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    drafts: str = "[]"
    told: Sequence[str] = ()
    lead: Sequence[str] = ()
    summary: Sequence[str] = ()
    failures: list[tuple[str, str, str | None]] = field(
        default_factory=list[tuple[str, str, str | None]]
    )

    def deliver(self, runner: Runner) -> int:
        """Tell the job everything; return the exit code."""
        runner.say(self.told)
        for level, message, hint in self.failures:
            runner.annotate(level, message, hint)
        runner.summary("".join(f"{line}\n" for line in (*self.lead, *self.summary)))
        runner.outputs(
            {
                "findings": str(self.findings),
                "fixable": str(self.fixable),
                "drafts": self.drafts,
                **{name: str(place) for name, place in self.files.items()},
            }
        )
        return self.code


def results_of(
    judged: Judged,
    guarded: Guard,
    scratch: Path,
    lead: Sequence[str] = (),
    *,
    failing: bool = False,
) -> Results:
    """Report on a judged tree in every form that a job takes.

    Args:
        judged: the tree.
        guarded: what of it counts.
        scratch: where the files go.
        lead: lines that come first in the summary.
        failing: findings fail the step.

    Raises:
        UserError: a file cannot be written.
    """
    from vlmend.cli.report.github import workflow_commands
    from vlmend.cli.report.summary import scan_markdown
    from vlmend.codemods.codemod import Status

    shown = [f for f in judged.result.findings if guarded.selection.shows(f)]
    files = _files(judged, guarded, shown, scratch)
    # A line's own length is not all: each ends with a line end.
    room = SUMMARY_BYTES - sum(len(line.encode()) + 1 for line in lead)
    return Results(
        findings=len(shown),
        fixable=sum(f.status is Status.FIXABLE for f in shown),
        files=files,
        told=list(workflow_commands(judged, shown, failing=failing)),
        lead=lead,
        summary=list(scan_markdown(judged, shown, guarded, room=room)),
    )


def _files(
    judged: Judged, guarded: Guard, shown: Sequence[Finding], scratch: Path
) -> dict[str, Path]:
    from vlmend.cli.report.json import dumped
    from vlmend.cli.report.page import render
    from vlmend.cli.report.sarif import sarif_document

    try:
        # A job can use the action twice.
        folder = Path(tempfile.mkdtemp(prefix="vlmend-", dir=scratch))
    except OSError as error:
        raise UserError(f"{scratch}: cannot be written: {error.strerror}") from None
    sarif, page = folder / "vlmend.sarif", folder / "vlmend.html"
    document = dumped(sarif_document(judged, shown, guarded))
    write_file(sarif, f"{document}\n".encode())
    patches = judged.patches(f for f in shown if guarded.selection.writes(f))
    write_file(page, render(judged, guarded.selection, patches).encode())
    return {"sarif-file": sarif, "html-file": page}


def told_errors(judged: Judged) -> Iterator[tuple[str, str, str | None]]:
    """Yield what the files that could not be judged mean, if there are any."""
    if judged.errors:
        count = len(judged.errors)
        yield (
            "error",
            f"{count} of what was to be judged could not be; nothing is claimed of it",
            "the annotations, and the end of the summary, say what and why",
        )
