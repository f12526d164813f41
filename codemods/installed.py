"""Codemods that other packages bring along, by the entry point group of this name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vlmend.codemods.codemod import Codemod, ScanError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "vlmend.codemods"

_ID: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


class _Unusable(Exception):
    """What is wrong with an entry point, in a clause."""


def installed_codemods(
    taken: Iterable[str] = (),
) -> tuple[tuple[Codemod, ...], tuple[ScanError, ...]]:
    """Load the codemods of the packages that are installed beside vlmend.

    One that cannot be used is an error in the second list, and costs only itself.

    Args:
        taken: ids that are in use already.
    """
    from importlib.metadata import entry_points  # 10 ms that only this needs

    codemods: dict[str, Codemod] = {}
    errors: list[ScanError] = []
    used = set(taken)
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        try:
            codemod = _load(entry, used)
        except _Unusable as error:
            errors.append(ScanError("", f"codemod {_named(entry)}: {error}"))
        else:
            used.add(codemod.id)
            codemods[codemod.id] = codemod
    return tuple(codemods.values()), tuple(errors)


def _named(entry: EntryPoint) -> str:
    owner = f" of {entry.dist.name}" if entry.dist is not None else ""
    return f"{entry.name}{owner}"


def _load(entry: EntryPoint, used: set[str]) -> Codemod:
    try:
        found = entry.load()
        codemod: Codemod = found() if isinstance(found, type) else found
    except Exception as error:  # foreign code may raise whatever it likes
        raise _Unusable(f"cannot be loaded: {in_a_line(error)}") from error
    for name in ("id", "summary"):
        value = getattr(codemod, name, None)
        if not isinstance(value, str) or not value:
            raise _Unusable(f"{entry.value} has no {name}")
    if not callable(getattr(codemod, "judge", None)):
        raise _Unusable(f"{entry.value} has no method judge(index)")
    if not _ID.fullmatch(codemod.id):
        raise _Unusable(f"{codemod.id!r} is no id: lower-case words joined by hyphens")
    if codemod.id != entry.name:
        raise _Unusable(f"its class says that it is {codemod.id!r}")
    if codemod.id in used:
        raise _Unusable("there is a codemod of this id already")
    return codemod


def in_a_line(error: BaseException) -> str:
    """Return an exception as one line: its kind, and what it says."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
