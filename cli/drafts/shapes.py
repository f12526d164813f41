"""The shape of a pull request that a tree asks for, read from its own template.

The template is the tree's text, so only headings and list items are taken from it, as
plain text. HTML comments and what upstream's bot removes are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PLACES: Final = (
    ".github/PULL_REQUEST_TEMPLATE.md",
    ".github/pull_request_template.md",
    "PULL_REQUEST_TEMPLATE.md",
    "pull_request_template.md",
    "docs/pull_request_template.md",
)
_HEADING: Final = re.compile(r"^##\s+(.+?)\s*#*$", re.MULTILINE)
_ITEM: Final = re.compile(r"^[-*] \[ \]\s+(.+)$", re.MULTILINE)
_SUMMARY: Final = re.compile(r"<summary>\s*(.*?)\s*</summary>", re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_REMOVED: Final = re.compile(r"\*\*BEFORE SUBMITTING.*", re.DOTALL)


class Kind(StrEnum):
    """Which template of ours fits."""

    PURPOSE = "purpose"
    OVERVIEW = "overview"
    FREE = "free"
    OTHER = "other"


class Part(StrEnum):
    """What of ours goes below a heading that we do not know by name."""

    WHY = "why"
    TESTS = "tests"
    RESULTS = "results"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of an unknown template, and what goes below it."""

    title: str
    part: Part


@dataclass(frozen=True, slots=True)
class Shape:
    """What a tree's template asks for.

    Attributes:
        kind: which template of ours is used.
        sections: the headings, where the template is not a known one.
        checklist: items that a person ticks.
        checklist_title: what stands above them.
    """

    kind: Kind
    sections: tuple[Section, ...] = ()
    checklist: tuple[str, ...] = ()
    checklist_title: str = ""


def shape_of(read: Callable[[str], bytes | None]) -> Shape:
    """Return the shape that a tree asks for.

    Args:
        read: returns a file of the tree, or None.
    """
    for place in PLACES:
        found = read(place)
        if found is not None:
            return shape_from(found.decode("utf-8", "replace"))
    return Shape(Kind.FREE)


def shape_from(template: str) -> Shape:
    """Return the shape that a template asks for."""
    text = _REMOVED.sub("", _COMMENT.sub("", template))
    headings = tuple(_HEADING.findall(text))
    summary = _SUMMARY.search(text)
    items = tuple(re.sub(r"\*\*|`", "", item) for item in _ITEM.findall(text))
    title = summary[1] if summary is not None else "Checklist"
    known = {
        ("Purpose", "Test Plan", "Test Result"): Kind.PURPOSE,
        ("Overview", "Claims", "Validation", "Details"): Kind.OVERVIEW,
        (): Kind.FREE,
    }.get(headings)
    if known is not None:
        return Shape(known, (), items, title)
    return Shape(Kind.OTHER, tuple(_sections(headings)), items, title)


def _sections(headings: tuple[str, ...]) -> list[Section]:
    parts = [_part(heading) for heading in headings]
    if Part.WHY not in parts:
        parts[0] = Part.WHY
    seen: set[Part] = set()
    sections: list[Section] = []
    for heading, part in zip(headings, parts, strict=True):
        sections.append(Section(heading, Part.NOTHING if part in seen else part))
        seen.add(part)
    return sections


def _part(heading: str) -> Part:
    words = heading.casefold()
    if re.search(r"result|evidence|output", words):
        return Part.RESULTS
    if re.search(r"test|valid|verif|how", words):
        return Part.TESTS
    if re.search(r"what|why|purpose|summary|descri|motiv|overview|change", words):
        return Part.WHY
    return Part.NOTHING
