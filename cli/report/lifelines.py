"""The findings of a page by release: since when each is there, and when it goes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from packaging.version import InvalidVersion, Version

from vlmend.cli.past.releases import release_dates
from vlmend.cli.past.since import known_life
from vlmend.codemods.codemod import Finding

LABEL: Final = 380
COLUMN: Final = 22
ROW: Final = 24
HEAD: Final = 66


@dataclass(frozen=True, slots=True)
class Column:
    """One release of the picture; ``here`` is the one that the page is about."""

    x: int
    name: str
    here: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """One finding: from the first release that has it to the first without it."""

    y: int
    x: int
    width: int
    name: str
    status: str
    anchor: str
    told: str


@dataclass(frozen=True, slots=True)
class Lifelines:
    """What the template draws."""

    width: int
    height: int
    columns: tuple[Column, ...]
    bars: tuple[Bar, ...]


def lifelines(
    findings: Iterable[tuple[Finding, str]], version: str | None
) -> Lifelines | None:
    """Return the picture of those findings whose life is known, or None.

    Args:
        findings: with the anchor that leads to each on the page.
        version: of the tree; its column is marked if it is a release.
    """
    dates = release_dates()
    order = sorted(dates, key=Version)
    keys = [Version(name) for name in order]

    def x_of(name: str) -> int:
        return LABEL + COLUMN * min(bisect_left(keys, Version(name)), len(keys))

    bars: list[Bar] = []
    for finding, anchor in findings:
        life = known_life(finding)
        if life is None:
            continue
        start = x_of(life["since"])
        end = x_of(life["gone"]) if life["gone"] else LABEL + COLUMN * len(keys)
        earlier = " or earlier" if life["earlier"] else ""
        gone = f"gone in {life['gone']}" if life["gone"] else f"there in {order[-1]}"
        name = f"{finding.class_name}, {finding.status}"
        told = f"{name}: from {life['since']}{earlier}, {gone}"
        bars.append(
            Bar(
                HEAD + ROW * len(bars),
                start,
                max(end - start, COLUMN),
                finding.class_name,
                finding.status.value,
                anchor,
                told,
            )
        )
    if not bars:
        return None
    here = _parsed(version)
    columns = tuple(
        Column(LABEL + COLUMN * at, name, keys[at] == here)
        for at, name in enumerate(order)
    )
    width = LABEL + COLUMN * len(order) + 40
    return Lifelines(width, HEAD + ROW * len(bars) + 8, columns, tuple(bars))


def _parsed(version: str | None) -> Version | None:
    try:
        return Version(version) if version else None
    except InvalidVersion:
        return None
