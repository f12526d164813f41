"""What a tree says beside the findings: the failure, precedents, sound siblings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vlmend.cli.drafts.change import Change, hunk_ranges
from vlmend.cli.drafts.scopes import family_of
from vlmend.cli.forge.duplicates import Question
from vlmend.codemods.codemod import (
    ContractNote,
    Evidence,
    Finding,
    ModelInfo,
    ScanResult,
    Status,
)

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged

_PRECEDENTS: Final = 4
_SIBLINGS: Final = 8


@dataclass(frozen=True)
class Precedent:
    """A class of the tree that does it right: what is said of it, and where."""

    told: str
    evidence: Evidence


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
    precedents: tuple[Precedent, ...]
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
        precedents=tuple(
            Precedent(_PLACE.sub("", f.message.rstrip(".")), f.evidence[0])
            for f in _nearest(change, satisfied, result.models)
        ),
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


def _nearest(
    change: Change, satisfied: Sequence[Finding], models: Iterable[ModelInfo]
) -> list[Finding]:
    """Return sound classes: those of the same kind that do it the same way first.

    A wrapper is no example for a text model, nor the reverse; what a class inherits is
    shown by its base.
    """
    families = {family_of(f.module) for f in change.findings}
    added = " ".join(change.added_lines)
    literals = set(_LITERAL.findall(added))
    multimodal = {model.key for model in models if model.multimodal}
    kinds = {finding.key in multimodal for finding in change.findings}

    def distance(finding: Finding) -> tuple[bool, int, bool, bool, str]:
        shown = finding.evidence[0]
        return (
            (finding.key in multimodal) not in kinds,
            _unlike(finding, added, literals),
            shown.file != finding.file,
            family_of(finding.module) not in families,
            finding.file,
        )

    return sorted(satisfied, key=distance)[:_PRECEDENTS]


def _unlike(finding: Finding, added: str, literals: set[str]) -> int:
    """Say how far a sound class is from doing what the added lines do."""
    words = finding.evidence[0].statement.split()
    if any(w.startswith("self.") and w.rstrip(".,") in added for w in words):
        return 0
    if literals & set(_WORD.findall(finding.message)):
        return 0
    # Another name, but a name that the call itself gives.
    return 1 if literals and "the call gives" in finding.message else 2


_WORD: Final = re.compile(r"\w+")
_LITERAL: Final = re.compile(r"[\"'](\w+)[\"']")
_PLACE: Final = re.compile(r" \(\S+:\d+\)$")


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
