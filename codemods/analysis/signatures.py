"""Signatures read from source, and a binder that answers as Python would.

:meth:`Signature.bind` follows CPython's own order of checks (``initialize_locals`` in
``Python/ceval.c``), so that its refusals carry the text of the ``TypeError`` that the
call would raise. ``self`` is part of a method's signature and of what a call passes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from vlmend.codemods.analysis.facts import FunctionNode


class Kind(Enum):
    """How a parameter may be given; the values are ``inspect.Parameter``'s."""

    POSITIONAL_ONLY = 0
    POSITIONAL_OR_KEYWORD = 1
    VAR_POSITIONAL = 2
    KEYWORD_ONLY = 3
    VAR_KEYWORD = 4


class SignatureParameter(NamedTuple):
    """One parameter; ``annotation`` is its source text, or empty."""

    name: str
    kind: Kind
    has_default: bool
    annotation: str
    line: int


class Bound(NamedTuple):
    """A call that binds: which parameter gets what.

    ``positional`` maps a parameter to the index of the positional argument that it
    gets; ``keywords`` are the parameters given by name; ``extra`` are the names that
    ``**kwargs`` collects.
    """

    positional: dict[str, int]
    keywords: frozenset[str]
    extra: frozenset[str]

    def gives(self, name: str) -> bool:
        """Say whether the parameter is given anything (its default is not counted)."""
        return name in self.positional or name in self.keywords


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters, ``self`` included.

    ``qualified`` is the name that Python puts into its messages (``Class.method``).
    """

    qualified: str
    parameters: tuple[SignatureParameter, ...]
    line: int

    def parameter(self, name: str) -> SignatureParameter | None:
        """Return the named parameter (``*args`` and ``**kwargs`` aside)."""
        for one in self.parameters:
            if one.name == name and one.kind not in _COLLECTING:
                return one
        return None

    @property
    def positional(self) -> tuple[SignatureParameter, ...]:
        """The parameters that a positional argument may fill, in order."""
        return tuple(
            p
            for p in self.parameters
            if p.kind in (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)
        )

    @property
    def collects_positional(self) -> bool:
        """There is a ``*args``."""
        return any(p.kind is Kind.VAR_POSITIONAL for p in self.parameters)

    @property
    def collects_keywords(self) -> str:
        """The name of ``**kwargs``, or empty."""
        for one in self.parameters:
            if one.kind is Kind.VAR_KEYWORD:
                return one.name
        return ""

    def takes(self, name: str) -> bool:
        """Say whether there is a parameter of this name that a keyword can fill."""
        one = self.parameter(name)
        return one is not None and one.kind is not Kind.POSITIONAL_ONLY

    def requires(self, name: str) -> bool:
        """Say whether a call that leaves the parameter out is refused."""
        one = self.parameter(name)
        return one is not None and not one.has_default

    def bind(self, positional: int, keywords: Iterable[str]) -> Bound | str:
        """Bind a call that passes so many positional arguments and these keywords.

        Args:
            positional: how many, ``self`` included for a method.
            keywords: distinct names.

        Returns:
            What goes where, or the text of the ``TypeError`` that Python raises.
        """
        names = tuple(keywords)
        ordered = self.positional
        filled = {p.name: i for i, p in enumerate(ordered[:positional])}
        refused = self._refuse_keywords(names, filled)
        if refused:
            return refused
        given = frozenset(name for name in names if self.takes(name))
        if positional > len(ordered) and not self.collects_positional:
            return self._too_many(positional, given)
        lacking = [
            p.name
            for p in ordered
            if not p.has_default and p.name not in filled and p.name not in given
        ]
        if lacking:
            return self._missing(lacking, "positional")
        lacking = [
            p.name
            for p in self.parameters
            if p.kind is Kind.KEYWORD_ONLY and not p.has_default and p.name not in given
        ]
        if lacking:
            return self._missing(lacking, "keyword-only")
        return Bound(filled, given, frozenset(names) - given)

    def _refuse_keywords(self, names: Sequence[str], filled: dict[str, int]) -> str:
        for name in names:
            one = self.parameter(name)
            if one is None or one.kind is Kind.POSITIONAL_ONLY:
                if self.collects_keywords:
                    continue
                barred = [
                    p.name
                    for p in self.parameters
                    if p.kind is Kind.POSITIONAL_ONLY and p.name in names
                ]
                if barred:
                    return (
                        f"{self.qualified}() got some positional-only arguments passed "
                        f"as keyword arguments: '{', '.join(barred)}'"
                    )
                return f"{self.qualified}() got an unexpected keyword argument '{name}'"
            if name in filled:
                return f"{self.qualified}() got multiple values for argument '{name}'"
        return ""

    def _too_many(self, positional: int, given: frozenset[str]) -> str:
        ordered = self.positional
        required = sum(not p.has_default for p in ordered)
        most = len(ordered)
        expected = f"{most}" if required == most else f"from {required} to {most}"
        plural = "s" if required != most or most != 1 else ""
        by_name = sum(
            p.kind is Kind.KEYWORD_ONLY and p.name in given for p in self.parameters
        )
        passed = f"{positional}"
        if by_name:
            passed += (
                f" positional argument{_s(positional)} (and {by_name} keyword-only "
                f"argument{_s(by_name)})"
            )
        was = "was" if positional == 1 and not by_name else "were"
        return (
            f"{self.qualified}() takes {expected} positional argument{plural} but "
            f"{passed} {was} given"
        )

    def _missing(self, names: Sequence[str], kind: str) -> str:
        quoted = [f"'{name}'" for name in names]
        if len(quoted) > 2:
            listed = f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
        else:
            listed = " and ".join(quoted)
        return (
            f"{self.qualified}() missing {len(names)} required {kind} "
            f"argument{_s(len(names))}: {listed}"
        )

    def text(self) -> str:
        """Return the parameters as a person would write them, without annotations."""
        parts: list[str] = []
        marked = False
        for index, one in enumerate(self.parameters):
            if one.kind is Kind.VAR_POSITIONAL:
                marked = True
                parts.append(f"*{one.name}")
                continue
            if one.kind is Kind.VAR_KEYWORD:
                parts.append(f"**{one.name}")
                continue
            if one.kind is Kind.KEYWORD_ONLY and not marked:
                marked = True
                parts.append("*")
            parts.append(f"{one.name}=..." if one.has_default else one.name)
            last = self.parameters[index + 1 : index + 2]
            if one.kind is Kind.POSITIONAL_ONLY and not (
                last and last[0].kind is Kind.POSITIONAL_ONLY
            ):
                parts.append("/")
        return f"({', '.join(parts)})"


def read_signature(node: FunctionNode, owner: str = "") -> Signature:
    """Read a function's signature.

    Args:
        node: the function.
        owner: the class that it stands in, for messages.
    """
    arguments = node.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    first_default = len(ordered) - len(arguments.defaults)
    found: list[SignatureParameter] = []
    for index, one in enumerate(ordered):
        kind = Kind.POSITIONAL_OR_KEYWORD
        if index < len(arguments.posonlyargs):
            kind = Kind.POSITIONAL_ONLY
        found.append(_parameter(one, kind, has_default=index >= first_default))
    if arguments.vararg:
        found.append(
            _parameter(arguments.vararg, Kind.VAR_POSITIONAL, has_default=False)
        )
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(
            _parameter(one, Kind.KEYWORD_ONLY, has_default=default is not None)
        )
    if arguments.kwarg:
        found.append(_parameter(arguments.kwarg, Kind.VAR_KEYWORD, has_default=False))
    qualified = f"{owner}.{node.name}" if owner else node.name
    return Signature(qualified, tuple(found), node.lineno)


def _parameter(node: ast.arg, kind: Kind, *, has_default: bool) -> SignatureParameter:
    annotation = ast.unparse(node.annotation) if node.annotation else ""
    return SignatureParameter(node.arg, kind, has_default, annotation, node.lineno)


def _s(count: int) -> str:
    return "" if count == 1 else "s"


_COLLECTING = (Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD)
