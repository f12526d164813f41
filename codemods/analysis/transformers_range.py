"""Which Transformers releases a vLLM tree allows, and which facts stand in for them.

The floor comes from ``requirements/common.txt``, the release that upstream tests with
from the pin among the test requirements. Both matter: a name that is mapped at one of
them and not at the other is no safe name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vlmend.codemods.analysis.tree import SourceTree, TreeError
from vlmend.codemods.codemod import Evidence, Source

_COMMON = ("requirements/common.txt", "requirements-common.txt")
_PINS = (
    # Through 0.19 one file; from 0.20 one a platform, of which CUDA's is the reference.
    "requirements/test.txt",
    "requirements/test/cuda.txt",
    "requirements/test.in",
    "requirements/test/cuda.in",
    "requirements/test/cpu.txt",
    "requirements/test/rocm.txt",
    "requirements/test/xpu.txt",
    "requirements/test/nightly-torch.txt",
    "requirements/nightly_torch_test.txt",
    "requirements-test.txt",
)
_LINE = re.compile(
    r"transformers\s*(?:\[[^\]]*\])?\s*(?P<rules>[<>=!~][^;#]*)?\s*(?:[;#].*)?$"
)
_RULE = re.compile(r"(?P<op>~=|===?|!=|<=|>=|<|>)\s*(?P<version>[0-9A-Za-z.*+!-]+)")

Release = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One clause of a requirement: an operator and a version."""

    operator: str
    version: str

    def allows(self, version: str) -> bool:
        """Say whether ``version`` keeps this clause (release numbers only)."""
        ours, theirs = release_of(version), release_of(self.version)
        if self.version.endswith(".*"):
            inside = ours[: len(theirs)] == theirs
            return inside if self.operator == "==" else not inside
        width = max(len(ours), len(theirs))
        left, right = _padded(ours, width), _padded(theirs, width)
        if self.operator == "~=":
            return left >= right and ours[: len(theirs) - 1] == theirs[:-1]
        return {
            "==": left == right,
            "===": left == right,
            "!=": left != right,
            "<=": left <= right,
            ">=": left >= right,
            "<": left < right,
            ">": left > right,
        }[self.operator]


@dataclass(frozen=True, slots=True)
class TransformersRange:
    """What the requirements of one vLLM tree say.

    Attributes:
        rules: every clause of the requirement that users install by.
        floor: the version of its ``>=`` (or ``==``, ``~=``) clause.
        pin: the version that the test requirements name.
        evidence: the lines that were read, the requirement first.
    """

    rules: tuple[Rule, ...] = ()
    floor: str | None = None
    pin: str | None = None
    evidence: tuple[Evidence, ...] = ()

    def allows(self, version: str) -> bool:
        """Say whether the requirement allows a version."""
        return all(rule.allows(version) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Choice:
    """The shipped release that stands for the one a tree names.

    Attributes:
        asked: the version the tree names, ``None`` where it names none.
        version: the release whose facts are used.
        exact: they are the same.
        statement: says so, in one sentence without a final full stop.
    """

    asked: str | None
    version: str
    exact: bool
    statement: str


def release_of(version: str) -> Release:
    """Return the leading numbers of a version; ``5.0.0rc1`` counts as ``5.0.0``."""
    numbers: list[int] = []
    for part in version.split("."):
        match = re.match(r"\d+", part)
        if match is None:
            break
        numbers.append(int(match.group()))
        if match.group() != part:
            break
    return tuple(numbers)


def pin_and_floor(tree: SourceTree, source: Source = Source.TREE) -> TransformersRange:
    """Read the requirements of a vLLM tree; what is absent stays ``None``."""
    rules: tuple[Rule, ...] = ()
    floor: str | None = None
    pin: str | None = None
    evidence: list[Evidence] = []
    for file in _COMMON:
        found = _requirement(tree, file)
        if found is not None:
            line, rules = found
            text = (
                ", ".join(f"{r.operator} {r.version}" for r in rules) or "any version"
            )
            floor = next(
                (r.version for r in rules if r.operator in (">=", "==", "~=", "===")),
                None,
            )
            evidence.append(
                Evidence(
                    source, file, line, f"this tree installs with Transformers {text}"
                )
            )
            break
    for file in _PINS:
        found = _requirement(tree, file)
        if found is None:
            continue
        line, clauses = found
        pin = next((r.version for r in clauses if r.operator in ("==", "===")), None)
        if pin is not None:
            evidence.append(
                Evidence(
                    source, file, line, f"this tree is tested with Transformers {pin}"
                )
            )
            break
    return TransformersRange(rules, floor, pin, tuple(evidence))


def choose(
    allowed: TransformersRange, versions: Iterable[str]
) -> tuple[Choice, Choice]:
    """Return the shipped releases for the floor and for the pin.

    A version that is not shipped is stood for by the newest shipped one below it that
    the tree allows, else by the oldest one above. A tree that names no pin gets the
    newest release that it allows.

    Raises:
        ValueError: ``versions`` is empty.
    """
    shipped = sorted(versions, key=release_of)
    if not shipped:
        raise ValueError("no facts about any Transformers release are at hand")
    usable = [v for v in shipped if allowed.allows(v)] or shipped
    floor = _nearest(allowed.floor, usable, lambda: usable[0], "oldest allowed")
    pin = _nearest(allowed.pin, usable, lambda: usable[-1], "tested")
    return floor, pin


def _nearest(
    asked: str | None, usable: list[str], default: Callable[[], str], role: str
) -> Choice:
    if asked is None:
        version = default()
        return Choice(
            None,
            version,
            False,
            f"the tree names no {role} Transformers; facts of {version} are used",
        )
    wanted = release_of(asked)
    for version in usable:
        if _same(release_of(version), wanted):
            return Choice(
                asked,
                version,
                True,
                f"facts of Transformers {version}, the {role} release",
            )
    below = [v for v in usable if release_of(v) < wanted]
    version = below[-1] if below else usable[0]
    return Choice(
        asked,
        version,
        False,
        f"facts of Transformers {version} stand in for {asked}, the {role} release, "
        "which is not shipped",
    )


def _same(left: Release, right: Release) -> bool:
    width = max(len(left), len(right))
    return _padded(left, width) == _padded(right, width)


def _padded(release: Release, width: int) -> Release:
    return release + (0,) * (width - len(release))


def _requirement(tree: SourceTree, file: str) -> tuple[int, tuple[Rule, ...]] | None:
    """The first requirement on ``transformers`` itself in a requirements file."""
    if not tree.exists(file):
        return None
    try:
        text = tree.read(file).decode("utf-8", "replace")
    except TreeError:
        return None
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line.strip())
        if match is not None:
            rules = _RULE.finditer(match.group("rules") or "")
            return number, tuple(Rule(r["op"], r["version"]) for r in rules)
    return None
