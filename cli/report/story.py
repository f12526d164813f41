"""One finding told to a reviewer: every link of the proof with the line it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from vlmend.cli.console import printable
from vlmend.cli.past.since import Knows, nothing_known, present_since
from vlmend.cli.report.diff import painted
from vlmend.cli.report.words import faint, place, strong, styled_status, wrapped
from vlmend.codemods.codemod import Finding, Source, Status

LineOf = Callable[[Source, str, int], str | None]
"""Returns a line of a file, or None where the file is not at hand."""

MEANINGS: Mapping[Status, str] = {
    Status.FIXABLE: "proven, and the change below is proven too",
    Status.REVIEW: "right in all likelihood; look at it before you write it",
    Status.BLOCKED: "a real defect that vlmend cannot mend",
    Status.UNPROVEN: "suspected; a fact is missing",
    Status.SATISFIED: "the contract is kept",
    Status.EXEMPT: "the contract does not apply here",
    Status.SUPPRESSED: "asked not to be shown",
}


def story(
    finding: Finding,
    diff: str | None,
    line_of: LineOf,
    width: int,
    knows: Knows = nothing_known,
) -> Iterator[str]:
    """Yield the whole chain, with the cited lines and the change."""
    name = printable(finding.class_name)
    yield f"{strong(name)}  {faint(printable(finding.module))}"
    status = f"{styled_status(finding.status)}, {MEANINGS[finding.status]}"
    yield f"  {finding.codemod}: {status}"
    yield f"  {place(finding.file, finding.line, finding.source)}"
    yield f"  fingerprint {finding.fingerprint}"
    first_seen = present_since(finding, knows)
    if first_seen:
        yield f"  {first_seen}"
    yield ""
    yield wrapped(finding.message, width, "  ")
    if finding.evidence:
        yield ""
        yield "  How this is known"
    for number, link in enumerate(finding.evidence, start=1):
        lead = f"    {number}. "
        pad = " " * len(lead)
        yield wrapped(link.statement, width, lead, pad)
        yield pad + faint(place(link.file, link.line, link.source))
        text = line_of(link.source, link.file, link.line)
        if text is not None:
            yield f"{pad}| {printable(text.strip())}"
    if finding.heirs:
        yield ""
        yield "  The same change heals, because they inherit it"
        for heir in finding.heirs:
            yield f"    {printable(heir)}"
    if diff is not None:
        yield ""
        yield "  The change"
        yield from (f"    {painted(line)}" for line in diff.splitlines())


def inherited_story(
    heirs: Sequence[str], finding: Finding, width: int
) -> Iterator[str]:
    """Yield why these classes have no finding of their own."""
    for heir in heirs:
        module, _, name = heir.rpartition(":")
        yield f"{strong(printable(name))}  {faint(printable(module))}"
    yield wrapped(
        f"inherits the defect from {finding.class_name}; mending that base mends it,"
        " so it has no finding of its own:",
        width,
        "  ",
    )
