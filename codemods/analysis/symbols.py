"""What a name may stand for, and the order in which a class looks things up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from vlmend.codemods.analysis.facts import ALWAYS
from vlmend.codemods.analysis.values import ClassRef


@dataclass(frozen=True, slots=True)
class ClassSymbol:
    """A name that stands for a class of the trees."""

    ref: ClassRef
    guard: str = ALWAYS


@dataclass(frozen=True, slots=True)
class FunctionSymbol:
    """A name that stands for a module-level function of the trees."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class VariableSymbol:
    """A module-level variable whose value is no plain alias."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class ModuleSymbol:
    """A module of the trees."""

    name: str


@dataclass(frozen=True, slots=True)
class ExternalSymbol:
    """A name of code outside the trees."""

    name: str


@dataclass(frozen=True, slots=True)
class MissingSymbol:
    """A name that should be in the trees and is not; ``reason`` is for a person."""

    name: str
    reason: str


Symbol = (
    ClassSymbol
    | FunctionSymbol
    | VariableSymbol
    | ModuleSymbol
    | ExternalSymbol
    | MissingSymbol
)


class Mro(NamedTuple):
    """A class's method resolution order.

    ``classes`` are those of the trees, in order; ``external`` the dotted names of bases
    outside them; ``doubts`` why the order may be another at run time.
    """

    classes: tuple[ClassRef, ...]
    external: tuple[str, ...]
    doubts: tuple[str, ...]
