"""Every model class by every contract, and what differs between two trees."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vlmend.cli.report.words import ORDER
from vlmend.codemods.codemod import Finding, ModelInfo, ScanResult, Status

NOT_JUDGED = "-"

HURTS = frozenset({Status.FIXABLE, Status.REVIEW, Status.BLOCKED, Status.UNPROVEN})

# A class can have several findings of one codemod; the table shows the one to act on.
GRAVITY = {
    status: rank
    for rank, status in enumerate(
        (
            Status.FIXABLE,
            Status.BLOCKED,
            Status.REVIEW,
            Status.UNPROVEN,
            Status.SUPPRESSED,
            Status.EXEMPT,
            Status.SATISFIED,
        )
    )
}


@dataclass(frozen=True, slots=True)
class Cell:
    """How one class stands to one contract.

    Attributes:
        status: None where the contract says nothing about the class.
        through: ``module:Class`` of the base whose defect the class inherits.
    """

    status: Status | None = None
    line: int | None = None
    message: str = ""
    through: str | None = None

    @property
    def label(self) -> str:
        """One word, or ``fixable via Base`` for a class that its base breaks."""
        if self.status is None:
            return NOT_JUDGED
        if self.through is not None:
            return f"{self.status} via {self.through.rpartition(':')[2]}"
        return self.status.value


@dataclass(frozen=True, slots=True)
class Row:
    """One class and its cells, in the order of :attr:`Coverage.codemods`."""

    model: ModelInfo
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The whole table."""

    codemods: tuple[str, ...]
    rows: tuple[Row, ...]

    def counts(self, codemod: str) -> dict[str, int]:
        """Return how many classes have each status; heirs of a broken base apart."""
        column = self.codemods.index(codemod)
        tally: Counter[str] = Counter()
        for row in self.rows:
            cell = row.cells[column]
            if cell.through is not None:
                tally["through_base"] += 1
            else:
                tally[cell.status.value if cell.status else "not_judged"] += 1
        names = [*(status.value for status in ORDER), "through_base", "not_judged"]
        return {name: tally[name] for name in names if tally[name]}


@dataclass(frozen=True, slots=True)
class Change:
    """One cell that is not what it was."""

    model: ModelInfo
    codemod: str
    before: Cell
    after: Cell


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between two tables."""

    added: tuple[ModelInfo, ...]
    removed: tuple[ModelInfo, ...]
    moved: tuple[tuple[ModelInfo, ModelInfo], ...]
    changed: tuple[Change, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.moved or self.changed)


def coverage(
    result: ScanResult, codemods: Sequence[str], models: Iterable[ModelInfo]
) -> Coverage:
    """Build the table of ``models`` from what a scan found."""
    own: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    inherited: dict[tuple[str, str], Finding] = {}
    for finding in result.findings:
        own[f"{finding.module}:{finding.class_name}", finding.codemod].append(finding)
        if finding.status in HURTS:
            for heir in finding.heirs:
                inherited.setdefault((heir, finding.codemod), finding)
    rows = tuple(
        Row(
            model,
            tuple(
                _cell(own[model.key, codemod], inherited.get((model.key, codemod)))
                for codemod in codemods
            ),
        )
        for model in sorted(models, key=lambda m: (m.class_name, m.module))
    )
    return Coverage(tuple(codemods), rows)


def _cell(own: Sequence[Finding], inherited: Finding | None) -> Cell:
    worst = min(own, key=lambda f: GRAVITY[f.status], default=None)
    if inherited is not None and (worst is None or worst.status not in HURTS):
        base = f"{inherited.module}:{inherited.class_name}"
        return Cell(inherited.status, inherited.line, inherited.message, base)
    if worst is None:
        return Cell()
    return Cell(worst.status, worst.line, worst.message)


def changes(before: Coverage, after: Coverage) -> Changes:
    """Say what became of each class of ``before`` in ``after``.

    A class that is gone from its module and stands, alone of its name, in another one
    has moved: its cells are compared all the same.
    """
    old = {row.model.key: row for row in before.rows}
    new = {row.model.key: row for row in after.rows}
    gone = [old[key] for key in old.keys() - new.keys()]
    come = [new[key] for key in new.keys() - old.keys()]
    moved = [
        (was, now)
        for name, was in _alone(gone).items()
        if (now := _alone(come).get(name)) is not None
    ]
    was_moved = {was.model.key for was, _ in moved}
    now_moved = {now.model.key for _, now in moved}
    pairs = [*((old[key], new[key]) for key in old.keys() & new.keys()), *moved]
    changed = [
        Change(now.model, codemod, was_cell, now_cell)
        for was, now in pairs
        for codemod, was_cell, now_cell in zip(
            after.codemods, was.cells, now.cells, strict=True
        )
        if was_cell.label != now_cell.label
    ]
    return Changes(
        added=_by_key(row.model for row in come if row.model.key not in now_moved),
        removed=_by_key(row.model for row in gone if row.model.key not in was_moved),
        moved=tuple(
            sorted(((w.model, n.model) for w, n in moved), key=lambda pair: pair[1].key)
        ),
        changed=tuple(sorted(changed, key=lambda c: (c.codemod, c.model.key))),
    )


def _alone(rows: Iterable[Row]) -> Mapping[str, Row]:
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_name[row.model.class_name].append(row)
    return {name: found[0] for name, found in by_name.items() if len(found) == 1}


def _by_key(models: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
    return tuple(sorted(models, key=lambda model: model.key))
