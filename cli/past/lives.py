"""When each finding came and when it went. Nothing is read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vlmend.codemods.codemod import Finding, Status

DEFECTS = (Status.FIXABLE, Status.REVIEW, Status.BLOCKED)
"""The statuses that count as a finding's being there."""


@dataclass(frozen=True)
class Moment:
    """One state of a tree in a sequence.

    Attributes:
        name: a version, or an abbreviated commit.
        date: ISO date, or nothing where it is not known.
        commit: full id, for a state of a clone.
        subject: the commit's first line.
        pull: number of the pull request that the subject names.
    """

    name: str
    date: str = ""
    commit: str = ""
    subject: str = ""
    pull: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """What was found in one state."""

    moment: Moment
    findings: tuple[Finding, ...]
    classes: frozenset[str] = frozenset()
    """Bare names of all model classes, to tell a fix from a removal."""


@dataclass(frozen=True)
class Life:
    """A finding from its coming to its going.

    Attributes:
        codemod: the contract that was broken.
        class_name: by which class.
        seen: every state that has it, in order, as indices into the sequence.
        findings: the finding in each of these states.
        gone: index of the first state without it; None where it is still there.
        end: what became of the class then, in words; nothing where it is still there.
    """

    codemod: str
    class_name: str
    seen: tuple[int, ...]
    findings: tuple[Finding, ...]
    gone: int | None
    end: str

    @property
    def first(self) -> Finding:
        """The finding when it came."""
        return self.findings[0]

    @property
    def last(self) -> Finding:
        """The finding when it was last seen."""
        return self.findings[-1]

    @property
    def healed(self) -> bool:
        """Whether the class came to keep the contract, rather than vanish."""
        return self.end.startswith("keeps the contract")


def lives_of(snapshots: Sequence[Snapshot]) -> tuple[Life, ...]:
    """Return every life, in the order of coming.

    A class is known by its name, so that a file may be renamed or moved into a vendor's
    folder without ending a life; of several with one name, one that has the defect is
    enough.
    """
    keys = dict.fromkeys(
        (f.codemod, f.class_name)
        for snapshot in snapshots
        for f in snapshot.findings
        if f.status in DEFECTS
    )
    lives = [life for key in keys for life in _lives(key, snapshots)]
    return tuple(sorted(lives, key=lambda x: (x.seen[0], x.codemod, x.class_name)))


def _lives(key: tuple[str, str], snapshots: Sequence[Snapshot]) -> Iterator[Life]:
    run: list[tuple[int, Finding]] = []
    for at, snapshot in enumerate(snapshots):
        found = _defect(key, snapshot)
        if found is not None:
            run.append((at, found))
        elif run:
            yield _life(key, run, at, _end(key, snapshot))
            run = []
    if run:
        yield _life(key, run, None, "")


def _defect(key: tuple[str, str], snapshot: Snapshot) -> Finding | None:
    return next(
        (
            f
            for f in snapshot.findings
            if (f.codemod, f.class_name) == key and f.status in DEFECTS
        ),
        None,
    )


def _life(
    key: tuple[str, str], run: Sequence[tuple[int, Finding]], gone: int | None, end: str
) -> Life:
    places, findings = zip(*run, strict=True)
    return Life(key[0], key[1], tuple(places), tuple(findings), gone, end)


def _end(key: tuple[str, str], snapshot: Snapshot) -> str:
    for finding in snapshot.findings:
        if (finding.codemod, finding.class_name) == key:
            place = f"{finding.file}:{finding.line}"
            if finding.status is Status.SATISFIED:
                return f"keeps the contract: {place}"
            return f"{finding.status}: {place}"
    if key[1] in snapshot.classes:
        # No finding of its own: what it inherits is judged at its base.
        return "keeps the contract through what it inherits"
    return "the class is gone"


def by_class(lives: Sequence[Life]) -> Mapping[str, tuple[Life, ...]]:
    """Group lives by class."""
    grouped: dict[str, list[Life]] = {}
    for life in lives:
        grouped.setdefault(life.class_name, []).append(life)
    return {name: tuple(group) for name, group in grouped.items()}
