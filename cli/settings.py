"""The configuration of a tree: ``vlmend.toml``, ``[tool.vlmend]``, or ``--config``.

It is plain data. It can choose and leave out, but it names no code and no template: a
tree that is scanned has nothing to say about what runs on the machine that scans it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.errors import UserError

if TYPE_CHECKING:
    from vlmend.codemods.analysis.tree import SourceTree
    from vlmend.codemods.codemod import Finding

OWN_FILE: Final = "vlmend.toml"
PROJECT_FILE: Final = "pyproject.toml"
TABLE: Final = "tool.vlmend"
LEVELS: Final = ("fixable", "review")


@dataclass(frozen=True, slots=True)
class Ignore:
    """A finding that is not to be shown, in a tree that one cannot edit.

    ``classes`` is a glob on the class or on ``module:Class``.
    """

    classes: str
    codemod: str
    reason: str

    def covers(self, finding: Finding) -> bool:
        """Say whether this is about a finding."""
        return finding.codemod == self.codemod and any(
            fnmatchcase(name, self.classes)
            for name in (finding.class_name, finding.key)
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What a configuration says; ``None`` and empty where it says nothing.

    Attributes:
        place: where it stands, for messages; empty where there is none.
        folder: where ``--config`` was read from; ``None`` for the target's own.
        baseline: as written, relative to the folder, or to the root of the target.
    """

    place: str = ""
    folder: Path | None = None
    codemods: tuple[str, ...] = ()
    level: str | None = None
    exclude: tuple[str, ...] = ()
    strict: bool | None = None
    baseline: str | None = None
    ignore: tuple[Ignore, ...] = ()
    problems: tuple[str, ...] = field(default=())

    def told(self) -> Iterator[tuple[str, object]]:
        """Yield what is set, by key."""
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in _KEYS and value not in (None, ()):
                yield one.name, value


def find_settings(tree: SourceTree) -> Settings:
    """Read the configuration that a tree holds; ``vlmend.toml`` is asked first."""
    for file, dotted in ((OWN_FILE, ""), (PROJECT_FILE, TABLE)):
        if not tree.exists(file):
            continue
        table = _parsed(file, tree.read(file), dotted)
        if isinstance(table, str):
            return Settings(file, problems=(table,))
        if table is not None:
            return _read(f"{file} [{dotted}]" if dotted else file, table)
    return Settings()


def read_settings(path: Path) -> Settings:
    """Read the file of ``--config``, laid out as ``vlmend.toml`` or a pyproject.

    Raises:
        UserError: it cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    dotted = TABLE if path.name == PROJECT_FILE else ""
    table = _parsed(str(path), content, dotted)
    if isinstance(table, str):
        return Settings(str(path), problems=(table,))
    return replace(_read(str(path), table or {}), folder=path.parent)


def checked(settings: Settings) -> Settings:
    """Return the settings, or refuse what is wrong with them.

    Raises:
        UserError: the first thing that is wrong.
    """
    if settings.problems:
        more = len(settings.problems) - 1
        hint = f"and {more} more: vlmend config check" if more else None
        raise UserError(settings.problems[0], hint=hint)
    return settings


def _parsed(file: str, content: bytes, dotted: str) -> Mapping[str, Any] | str | None:
    """Return the table, what is wrong with the file, or ``None``: it has no such."""
    try:
        document: Any = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"{file}: is no valid TOML: {error}"
    for part in dotted.split(".") if dotted else ():
        document = document.get(part)
        if document is None:
            return None
        if not isinstance(document, dict):
            return f"{file}: {part} must be a table, not {_kind(document)}"
    return document  # type: ignore[no-any-return]


def _read(place: str, table: Mapping[str, Any]) -> Settings:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in table.items():
        if key not in _KEYS:
            problems.append(f"{place}: unknown key {key!r}{_near(key, _KEYS)}")
            continue
        try:
            values[key] = _KEYS[key](value)
        except _Wrong as error:
            problems.append(f"{place}: {key}{error}")
    return Settings(place, None, problems=tuple(problems), **values)


class _Wrong(Exception):
    """What is wrong with a value; follows the key without a space."""


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Wrong(f" must be a list of strings, not {_kind(value)}")
    for number, item in enumerate(value):
        if not isinstance(item, str):
            raise _Wrong(f"[{number}] must be a string, not {_kind(item)}")
    return tuple(value)


def _string(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong(f" must be a string, not {_kind(value)}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f" must be true or false, not {_kind(value)}")
    return value


def _level(value: object) -> str:
    if value not in LEVELS:
        given = repr(value) if isinstance(value, str) else _kind(value)
        raise _Wrong(f" must be {' or '.join(map(repr, LEVELS))}, not {given}")
    return str(value)


_IGNORE_KEYS: Final = ("class", "codemod", "reason")


def _ignores(value: object) -> tuple[Ignore, ...]:
    if not isinstance(value, list):
        raise _Wrong(f" must be a list of tables, not {_kind(value)}")
    found: list[Ignore] = []
    for number, item in enumerate(value):
        if not isinstance(item, dict):
            raise _Wrong(f"[{number}] must be a table, not {_kind(item)}")
        for key in item:
            if key not in _IGNORE_KEYS:
                near = _near(str(key), _IGNORE_KEYS)
                raise _Wrong(f"[{number}]: unknown key {key!r}{near}")
        for key in _IGNORE_KEYS:
            if key not in item:
                raise _Wrong(f"[{number}]: {key} is missing")
            if not isinstance(item[key], str) or not item[key].strip():
                kind = _kind(item[key])
                raise _Wrong(f"[{number}].{key} must be a string, not {kind}")
        found.append(Ignore(item["class"], item["codemod"], item["reason"]))
    return tuple(found)


_KEYS: Final[Mapping[str, Callable[[object], object]]] = {
    "codemods": _strings,
    "level": _level,
    "exclude": _strings,
    "strict": _flag,
    "baseline": _string,
    "ignore": _ignores,
}


def _kind(value: object) -> str:
    """Name a TOML type as a person does."""
    match value:
        case bool():
            return "a boolean"
        case "":
            return "an empty string"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
    return "a date or time"


def _near(wanted: str, known: Collection[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(wanted, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
