"""Which findings a command shows, which it writes, and which make it exit with 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from vlmend.codemods.codemod import Finding, ModelInfo, Status


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
    """

    level: Level = Level.FIXABLE
    every_status: bool = False
    strict: bool = False
    classes: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def concerns(self, item: Finding | ModelInfo) -> bool:
        """Say whether the class is one that was asked about, whatever its status."""
        names = (item.class_name, f"{item.module}:{item.class_name}")
        if self.classes and not _any_match(names, self.classes):
            return False
        return not _any_match((*names, item.file), self.excluded)

    def shows(self, finding: Finding) -> bool:
        """Say whether the finding belongs in the output."""
        if not self.concerns(finding):
            return False
        return (
            self.every_status or finding.status in ALWAYS_SHOWN or self._asked(finding)
        )

    def writes(self, finding: Finding) -> bool:
        """Say whether the finding's edits are wanted."""
        if not finding.edits or not self.concerns(finding):
            return False
        return finding.status is Status.FIXABLE or self._asked(finding)

    def fails(self, finding: Finding) -> bool:
        """Say whether the finding makes the command exit with 1."""
        if not self.shows(finding):
            return False
        if finding.status is Status.UNPROVEN:
            return self.strict
        return finding.status in (Status.FIXABLE, Status.BLOCKED) or self._asked(
            finding
        )

    def _asked(self, finding: Finding) -> bool:
        return finding.status is Status.REVIEW and self.level is Level.REVIEW


def _any_match(names: Iterable[str], globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for name in names for glob in globs)
