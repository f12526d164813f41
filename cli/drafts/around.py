"""What a tree says beside the findings: the failure, precedents, sound siblings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vlmend.cli.drafts.change import Change, hunk_ranges
from vlmend.cli.drafts.scopes import family_of
from vlmend.cli.forge.duplicates import Question
from vlmend.codemods.codemod import ContractNote, Evidence, Finding, ScanResult, Status

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged

_PRECEDENTS: Final = 4
_SIBLINGS: Final = 8


@dataclass(frozen=True)
class Surroundings:
    """Context for one change.

    Attributes:
        failure: what this tree's own code does when the contract is broken.
        precedents: sound classes that keep the contract in the tree already.
        siblings: classes of the same family that were looked at and found sound.
        others: defects of the same codemod that this change leaves alone.
        sound: how many classes keep the contract.
        exempt: how many it does not apply to.
        unread: files that could not be judged.
    """

    failure: tuple[ContractNote, ...]
    precedents: tuple[Finding, ...]
    siblings: tuple[Finding, ...]
    others: tuple[Finding, ...]
    sound: int
    exempt: int
    unread: tuple[str, ...]


def surroundings(change: Change, result: ScanResult) -> Surroundings:
    """Collect what the reader of a pull request wants to know beside the finding."""
    same = [f for f in result.findings if f.codemod == change.codemod]
    mended = set(change.fingerprints)
    satisfied = [f for f in same if f.status is Status.SATISFIED and f.evidence]
    families = {family_of(f.module) for f in change.findings}
    siblings = [
        f
        for f in same
        if f.status in (Status.SATISFIED, Status.EXEMPT)
        and family_of(f.module) in families
    ]
    others = [
        f
        for f in same
        if f.fingerprint not in mended
        and f.status in (Status.FIXABLE, Status.REVIEW, Status.BLOCKED, Status.UNPROVEN)
    ]
    return Surroundings(
        failure=_notes(change, result.contract),
        precedents=tuple(_nearest(change, satisfied)),
        siblings=tuple(siblings[:_SIBLINGS]),
        others=tuple(others),
        sound=len(satisfied),
        exempt=sum(f.status is Status.EXEMPT for f in same),
        unread=tuple(sorted(e.file for e in result.errors if e.file)),
    )


def _notes(change: Change, notes: Iterable[ContractNote]) -> tuple[ContractNote, ...]:
    """Return the notes that the findings' own proofs rest on."""
    cited = {_place(link) for f in change.findings for link in f.evidence}
    return tuple(n for n in notes if any(_place(e) in cited for e in n.evidence))


def _place(link: Evidence) -> tuple[str, str, int]:
    return (link.source.value, link.file, link.line)


def _nearest(change: Change, satisfied: Sequence[Finding]) -> list[Finding]:
    """Return sound classes, those that do it the same way first."""
    families = {family_of(f.module) for f in change.findings}
    added = " ".join(change.added_lines)

    def distance(finding: Finding) -> tuple[bool, bool, str]:
        words = [
            w for w in finding.evidence[0].statement.split() if w.startswith("self.")
        ]
        same_way = any(word.rstrip(".,") in added for word in words)
        return (not same_way, family_of(finding.module) not in families, finding.file)

    return sorted(satisfied, key=distance)[:_PRECEDENTS]


def question_about(change: Change, judged: Judged) -> Question:
    """Return what a duplicate of a change would touch or name."""
    classes = set(change.classes)
    architectures = {
        name
        for model in judged.result.models
        if model.class_name in classes
        for name in model.architectures
    }
    names = (*change.classes, *sorted(architectures - classes))
    return Question(
        change.branch,
        names,
        {patch.file: patch.before for patch in change.patches},
        {patch.file: hunk_ranges(patch.diff(0)) for patch in change.patches},
    )
