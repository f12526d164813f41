"""Which findings a command shows, which it writes, and which make it exit with 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from vlmend.codemods.codemod import Finding, ModelInfo, Status

_BADNESS: Final[Mapping[Status, int]] = {
    Status.SATISFIED: 0,
    Status.EXEMPT: 0,
    Status.SUPPRESSED: 0,
    Status.UNPROVEN: 1,
    Status.REVIEW: 2,
    Status.BLOCKED: 3,
    Status.FIXABLE: 3,
}


class Level(StrEnum):
    """How sure a fix has to be before it is offered."""

    FIXABLE = "fixable"
    REVIEW = "review"


ALWAYS_SHOWN = frozenset({Status.FIXABLE, Status.BLOCKED, Status.UNPROVEN})


@dataclass(frozen=True, slots=True)
class Selection:
    """What the person asked to see.

    Attributes:
        level: ``review`` also shows, and writes, what a person must look at.
        every_status: show all that was judged, sound classes included.
        strict: an unproven suspicion is a finding like any other.
        classes: globs; a class must match one of them, if there are any.
        excluded: globs on class, ``module:Class`` or file; a match is left out.
        touched: ``module:Class`` of the classes that a change has to do with; ``None``
            is all of them.
        known: by fingerprint, how bad each finding was that is not new.
    """

    level: Level = Level.FIXABLE
    every_status: bool = False
    strict: bool = False
    classes: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    touched: frozenset[str] | None = None
    known: Mapping[str, Status] = field(default_factory=dict[str, Status])

    def concerns(self, item: Finding | ModelInfo) -> bool:
        """Say whether the class is one that was asked about, whatever its status."""
        names = (item.class_name, f"{item.module}:{item.class_name}")
        if self.touched is not None and names[1] not in self.touched:
            return False
        if self.classes and not _any_match(names, self.classes):
            return False
        return not _any_match((*names, item.file), self.excluded)

    def shows(self, finding: Finding) -> bool:
        """Say whether the finding belongs in the output."""
        if not self.concerns(finding):
            return False
        if self.is_known(finding) and not self.every_status:
            return False
        return (
            self.every_status or finding.status in ALWAYS_SHOWN or self._asked(finding)
        )

    def writes(self, finding: Finding) -> bool:
        """Say whether the finding's edits are wanted."""
        if not finding.edits or not self.concerns(finding):
            return False
        if self.is_known(finding):
            return False
        return finding.status is Status.FIXABLE or self._asked(finding)

    def fails(self, finding: Finding) -> bool:
        """Say whether the finding makes the command exit with 1."""
        if not self.shows(finding) or self.is_known(finding):
            return False
        if finding.status is Status.UNPROVEN:
            return self.strict
        return finding.status in (Status.FIXABLE, Status.BLOCKED) or self._asked(
            finding
        )

    def is_known(self, finding: Finding) -> bool:
        """Say whether the finding was there before, and no less bad than now."""
        before = self.known.get(finding.fingerprint)
        return before is not None and _BADNESS[finding.status] <= _BADNESS[before]

    def _asked(self, finding: Finding) -> bool:
        return finding.status is Status.REVIEW and self.level is Level.REVIEW


def _any_match(names: Iterable[str], globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for name in names for glob in globs)
