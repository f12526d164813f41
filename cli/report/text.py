"""What ``scan`` says to a person."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vlmend.cli.console import printable
from vlmend.cli.report.words import (
    ORDER,
    chain,
    counted,
    faint,
    place,
    strong,
    styled_status,
    wrapped,
)
from vlmend.codemods.codemod import ContractNote, Finding, Status

if TYPE_CHECKING:
    from vlmend.cli.changed import Compared
    from vlmend.cli.guard import Guard
    from vlmend.cli.judge import Judged
    from vlmend.cli.select import Selection
    from vlmend.cli.targets import Target


def scan_report(
    judged: Judged,
    shown: Sequence[Finding],
    selection: Selection,
    width: int,
    guard: Guard | None = None,
) -> Iterator[str]:
    """Yield the lines of a whole scan."""
    yield from heading(judged)
    if guard is not None and guard.compared is not None:
        yield from change(guard.compared)
    yield from contract(judged.result.contract, width)
    for finding in shown:
        yield ""
        yield from block(finding, width)
    yield ""
    yield from unused(judged, selection, width)
    yield from closing(judged, shown, selection)
    if guard is not None and (gone := guard.gone(judged)):
        yield faint(
            f"{counted(gone, 'entry', 'entries')} of {printable(guard.baseline)} no"
            " longer found: --write-baseline leaves them out"
        )


def heading(judged: Judged) -> Iterator[str]:
    """Yield one line: which tree, which version, how much was looked at, by what."""
    classes = counted(len(judged.result.models), "model class", "model classes")
    by = ", ".join(codemod.id for codemod in judged.codemods)
    against = f" against {describe(judged.base)}" if judged.base else ""
    yield f"{strong(describe(judged.target))}: {classes} judged by {by}{against}"


def change(compared: Compared) -> Iterator[str]:
    """Yield one line: what is compared with what, and how much that touches."""
    files = counted(len(compared.change.files), "changed file")
    touched = counted(len(compared.touched), "class", "classes")
    base = printable(compared.change.base)
    commit = compared.change.commit[:12]
    with_base = base if commit.startswith(base) else f"{base} ({commit})"
    yield f"  compared with {with_base}: {files}, {touched} touched"


def unused(judged: Judged, selection: Selection, width: int) -> Iterator[str]:
    """Yield the suppressions that suppress nothing."""
    if not judged.unused or selection.touched is not None:
        return
    yield strong("Unused suppressions")
    for one in judged.unused:
        where = place(one.file, one.line) if one.line else printable(one.file)
        yield f"  {where}  {faint(one.codemod)}"
        yield wrapped(f"{one.reason}.", width, "    ")
    yield ""


def describe(target: Target) -> str:
    """Return the target as typed, with the version where that says more."""
    spec = printable(target.spec)
    if target.version is None or target.version in target.spec:
        return spec
    name = "vLLM " if target.layout == "vllm" else ""
    return f"{spec} ({name}{printable(target.version)})"


def contract(notes: Iterable[ContractNote], width: int) -> Iterator[str]:
    """Yield what this tree's own code demands."""
    for note in notes:
        yield wrapped(f"{note.name}: {note.statement}", width, "  ")
        places = [place(e.file, e.line, e.source) for e in note.evidence]
        if places:
            yield faint(wrapped(", ".join(places), width, "    "))


def block(finding: Finding, width: int) -> Iterator[str]:
    """Yield one finding with its proof."""
    yield f"{styled_status(finding.status)}  {strong(printable(finding.class_name))}"
    where = place(finding.file, finding.line, finding.source)
    yield f"  {where}  {faint(f'{finding.codemod} {finding.fingerprint}')}"
    yield wrapped(finding.message, width, "  ")
    if finding.evidence:
        yield "  Proof"
        yield from chain(finding.evidence, width, "    ")
    if finding.heirs:
        yield "  The same fix heals"
        for heir in finding.heirs:
            yield f"    {printable(heir)}"


def closing(
    judged: Judged, shown: Sequence[Finding], selection: Selection
) -> Iterator[str]:
    """Yield the counts, what was left out and how to see it, and what to do next."""
    concerned = [f for f in judged.result.findings if selection.concerns(f)]
    visible = set(map(id, shown))
    left_out = [f for f in concerned if id(f) not in visible]
    asked = replace(selection, known={})
    known = sum(selection.is_known(f) and asked.shows(f) for f in left_out)
    hidden = Counter(
        f.status for f in left_out if not (selection.is_known(f) and asked.shows(f))
    )
    yield strong(tally(f.status for f in shown) or "Nothing wrong was found.")
    if known:
        yield faint(f"Not new: {known}; --all shows {'it' if known == 1 else 'them'}")
    if hidden:
        hints = {Status.REVIEW: " (--level review)"}
        rest = ", ".join(
            f"{hidden[s]} {s}{hints.get(s, '')}" for s in ORDER if s in hidden
        )
        others = any(s is not Status.REVIEW for s in hidden)
        yield faint(f"Not shown: {rest}{'; --all shows everything' if others else ''}")
    yield from next_steps(judged, shown, selection)


def tally(statuses: Iterable[Status]) -> str:
    """Return ``3 fixable, 1 blocked``, or an empty string."""
    counts = Counter(statuses)
    return ", ".join(f"{counts[s]} {s}" for s in ORDER if counts[s])


def next_steps(
    judged: Judged, shown: Sequence[Finding], selection: Selection
) -> Iterator[str]:
    """Yield the commands that lead on from here."""
    if not shown:
        return
    spec = shlex.quote(judged.target.spec)
    tail = f" {spec}"
    if judged.base is not None:
        tail += f" --vllm {shlex.quote(judged.base.spec)}"
    steps: list[tuple[str, str]] = []
    if any(selection.writes(f) for f in shown):
        level = f" --level {selection.level}" if selection.level != "fixable" else ""
        steps.append((f"vlmend preview{tail}{level}", "the fixes as a diff"))
    first = next((f for f in shown if selection.fails(f)), shown[0])
    steps.append(
        (f"vlmend explain {first.fingerprint}{tail}", "the cited lines, one by one")
    )
    column = max(len(command) for command, _ in steps)
    for number, (command, meaning) in enumerate(steps):
        lead = "Next: " if number == 0 else "      "
        yield f"{lead}{command:{column}}  {faint(meaning)}"
