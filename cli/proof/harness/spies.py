"""The real ``forward`` of a class, called with spies in place of what it holds."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any


class Spy:
    """Answers every call with itself and every attribute with a spy; keeps a list."""

    def __init__(self, path: str, arrivals: list[tuple[str, Any, Any]]) -> None:
        self._path = path
        self._arrivals = arrivals

    def __call__(self, *positional: Any, **named: Any) -> Any:
        self._arrivals.append((self._path, positional, named))
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Spy(f"{self._path}.{name}", self._arrivals)

    def __getitem__(self, key: Any) -> Any:
        return self

    def __bool__(self) -> bool:
        return True


def called(model: type, keys: Sequence[str]) -> dict[str, Any]:
    """Call ``model.forward`` with these keywords and note what becomes of each.

    The instance is made without ``__init__``: the forward is the tree's own code, the
    parts that it reaches for are spies. The inner model's spy answers with a spy, so a
    forward that computes on the answer may end in an error after the arrival; what
    arrived by then still counts.
    """
    nn = import_module("torch").nn
    arrivals: list[tuple[str, Any, Any]] = []
    base: Any = model

    class Probed(base):  # type: ignore[misc]
        __init__ = nn.Module.__init__

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return Spy(f"self.{name}", arrivals)

    instance = Probed()
    values: Mapping[str, Any] = {key: _Value(key) for key in keys}
    note: dict[str, Any] = {"keywords": list(keys)}
    try:
        functools.partial(model.forward, instance)(**values)  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        note["error"] = {"type": type(error).__name__, "message": str(error)}
    note["arrived"] = [
        {"at": path, "values": sorted(_values_in((positional, named)))}
        for path, positional, named in arrivals
    ]
    return note


class _Value(Spy):
    """An argument that can be told from every other."""

    def __init__(self, key: str) -> None:
        super().__init__(key, [])
        self.key = key


def _values_in(thing: Any) -> set[str]:
    if isinstance(thing, _Value):
        return {thing.key}
    if isinstance(thing, Mapping):
        return set().union(*map(_values_in, thing.values())) if thing else set()
    if isinstance(thing, tuple | list):
        return set().union(*map(_values_in, thing)) if thing else set()
    return set()
