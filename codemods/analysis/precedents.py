"""Architecture names that a tree's other wrappers give already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.inner_classes import given_names
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.narrowing import Narrowing, narrowings
from vlmend.codemods.analysis.text_configs import TextConfig
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.analysis.view_configs import view_config
from vlmend.codemods.codemod import Evidence, Source


@dataclass(frozen=True, slots=True)
class Precedent:
    """One call that gives a name.

    Attributes:
        wrapper: the class whose ``__init__`` makes it.
        name: the one name that it gives.
        tower: it is for no language model.
        own: the name is one of the wrapper's own.
        config: source, file and name of the config class, where it is certain.
        evidence: the line.
    """

    wrapper: ClassRef
    name: str
    tower: bool
    own: bool
    config: tuple[Source, str, str] | None
    evidence: Evidence


def precedents(index: ModelIndex) -> tuple[Precedent, ...]:
    """Return every call of the tree that gives one literal name, in reading order."""
    return index.ask(_all)


def _all(index: ModelIndex) -> tuple[Precedent, ...]:
    return index.remember("precedents", lambda: tuple(_precedents(index)), on_cycle=())


def _precedents(index: ModelIndex) -> Iterator[Precedent]:
    seen: set[tuple[str, int]] = set()
    for ref in index.model_classes:
        for one in _of_class(index, ref):
            place = (one.evidence.file, one.evidence.line)
            if place not in seen:
                seen.add(place)
                yield one


def _of_class(index: ModelIndex, ref: ClassRef) -> tuple[Precedent, ...]:
    def compute() -> tuple[Precedent, ...]:
        return tuple(
            _precedent(index, ref, narrowing, names[0])
            for narrowing in narrowings(index, ref)
            if len(names := given_names(narrowing.architectures)) == 1
        )

    key = ("precedents of", ref)
    return index.remember(key, compute, on_cycle=(), home=ref.module)


def _precedent(
    index: ModelIndex, ref: ClassRef, narrowing: Narrowing, name: str
) -> Precedent:
    site = narrowing.site
    said = f"{ref.name} gives {name} for self.{narrowing.attribute}"
    here = Evidence(index.source_kind(site.module), site.file, site.line, said)
    own = name in index.architectures(ref)
    config: tuple[Source, str, str] | None = None
    if narrowing.config is not None:
        found = view_config(
            index, ref, narrowing.config, narrowing.built, tower=narrowing.tower
        ).pin
        if isinstance(found, TextConfig) and not found.dynamic:
            config = config_key(found)
    return Precedent(ref, name, narrowing.tower, own, config, here)


def config_key(config: TextConfig) -> tuple[Source, str, str]:
    """Return what tells one config class from all others."""
    return config.source, config.file, config.class_name
