"""The roads that lead to the architecture name of an inner model.

Every road is tried and listed. They do not know of each other: an inner class says
what it is by its own registration or that of its nearest ancestor, its backbone by the
model that the backbone's own file registers, its config class by an ancestor that
Transformers maps. Where two of them end at different classes, nothing is proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vlmend.codemods.analysis.architecture_names import named_class, registered_at
from vlmend.codemods.analysis.interpreter import read_init
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.names import INTERFACES_MODULE
from vlmend.codemods.analysis.registry import (
    MULTIMODAL,
    SPECULATIVE_DECODING,
    Entry,
)
from vlmend.codemods.analysis.symbols import ClassSymbol
from vlmend.codemods.analysis.text_configs import TextConfig
from vlmend.codemods.analysis.values import ClassRef, Instance, options
from vlmend.codemods.analysis.view_configs import ViewConfig
from vlmend.codemods.codemod import Evidence, Source


class Road(StrEnum):
    """How a name was come by."""

    CLASS = "the inner class"
    """The class that is called is registered, or derives from one that is."""
    BACKBONE = "its backbone"
    """Its backbone is, or derives from, the one that a registered model builds."""
    CONFIG = "its text config"
    """An ancestor of the text config has a mapped ``model_type``."""
    ANNOTATION = "the annotation"
    """The author wrote the class beside the attribute."""
    READER = "the config's model"
    """One registered text model alone works with this very config class."""
    PRECEDENT = "a sibling"
    """Another wrapper of the tree gives this very config class a name."""


@dataclass(frozen=True, slots=True)
class RoadName:
    """Where one road ends: the name, its class, and the lines."""

    road: Road
    name: str
    refs: tuple[ClassRef, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Roads:
    """All roads that were tried.

    Attributes:
        found: those that ended at a name.
        tried: what the others came to, as sentences without a full stop.
    """

    found: tuple[RoadName, ...]
    tried: tuple[str, ...]

    @property
    def agreed(self) -> RoadName | None:
        """The first road, where every one ends at its name or at its class."""
        first = self.found[0] if self.found else None
        if first is None:
            return None
        for road in self.found:
            if road.name != first.name and not set(road.refs) & set(first.refs):
                return None
        return first

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The lines of every road, each once."""
        return tuple(dict.fromkeys(e for r in self.found for e in r.evidence))

    def listed(self) -> str:
        """Say in a clause where every road ended."""
        said = [f"{road.road} names {road.name}" for road in self.found]
        return ", ".join(said)


def name_roads(
    index: ModelIndex,
    built: ClassRef | None,
    config: ViewConfig,
    annotation: tuple[str, str] | None = None,
    precedents: tuple[RoadName, ...] = (),
) -> Roads:
    """Try every road to the name of an inner model.

    Args:
        built: the class that is called directly, if one is.
        config: the config that it is given.
        annotation: module and name of the class written beside the attribute.
        precedents: names that other calls of the tree give this config class.
    """
    found: list[RoadName] = []
    tried: list[str] = []
    for road, result in (
        (Road.CLASS, _by_class(index, built)),
        (Road.BACKBONE, _by_backbone(index, built)),
        (Road.CONFIG, _by_config(index, config)),
        (Road.ANNOTATION, _by_annotation(index, annotation)),
        (Road.READER, _by_reader(index, config) if built is None else None),
    ):
        if isinstance(result, RoadName):
            found.append(result)
        elif result is not None:
            tried.append(f"{road}: {result}")
    found += precedents
    return Roads(tuple(found), tuple(tried))


def _by_class(index: ModelIndex, built: ClassRef | None) -> RoadName | str | None:
    """The inner class registered itself, else its nearest registered ancestor."""
    if built is None:
        return None
    for ref in index.mro(built).classes:
        if ref.module == INTERFACES_MODULE:
            continue
        names = _names(index, ref)
        if not names:
            continue
        entry = names[0]
        if ref == built:
            said = f"{built.name} is registered"
        else:
            said = f"{built.name} derives from {ref.name}, which is registered"
        line = index.class_of(built).line
        here = Evidence(
            index.source_kind(built.module), index.file_of(built), line, said
        )
        chain = (here, registered_at(index, entry))
        return RoadName(Road.CLASS, entry.architecture, (ref,), chain)
    return f"neither {built.name} nor an ancestor is registered"


def _names(index: ModelIndex, ref: ClassRef) -> tuple[Entry, ...]:
    """Return a class's entries, the one whose key is its own name first."""
    entries = [
        e
        for e in index.entries_by_class.get(ref, ())
        if e.table != SPECULATIVE_DECODING
    ]
    return tuple(sorted(entries, key=lambda e: (e.architecture != ref.name, e.line)))


def _by_backbone(index: ModelIndex, built: ClassRef | None) -> RoadName | str | None:
    """The registered model that builds the backbone's nearest ancestor."""
    if built is None:
        return None
    backbone = _backbone(index, built)
    if backbone is None:
        return f"{built.name} builds no backbone that could be followed"
    ref, line = backbone
    for ancestor in index.mro(ref).classes:
        builders = _builders(index, ancestor)
        if not builders:
            continue
        if len(builders) > 1:
            names = ", ".join(sorted(b.name for b, _ in builders))
            return f"{ancestor.name} is the backbone of {names}"
        (builder, where), entry = builders[0], _names(index, builders[0][0])[0]
        said = f"{built.name} builds {ref.name} as its backbone"
        if ancestor != ref:
            said += f", which derives from {ancestor.name}"
        kind = index.source_kind(built.module)
        here = Evidence(kind, index.file_of(built), line, said)
        said = f"{builder.name} builds {ancestor.name}"
        kind = index.source_kind(builder.module)
        there = Evidence(kind, index.file_of(builder), where, said)
        chain = (here, there, registered_at(index, entry))
        return RoadName(Road.BACKBONE, entry.architecture, (builder,), chain)
    return f"no registered model builds {ref.name} or an ancestor of it"


def _backbone(index: ModelIndex, ref: ClassRef) -> tuple[ClassRef, int] | None:
    """Return the class of ``self.model`` (or ``transformer``) and its line."""
    trace = read_init(index, ref)
    for attribute in ("model", "transformer"):
        for write in reversed(trace.writes_to(attribute) if trace else []):
            built = {v.ref for v in options(write.value) if isinstance(v, Instance)}
            if len(built) == 1:
                return built.pop(), write.site.line
    return None


def _builders(index: ModelIndex, backbone: ClassRef) -> list[tuple[ClassRef, int]]:
    """Return the registered classes of a backbone's own file that build just it.

    A backbone's file is where its own causal LM stands; models of other files that
    borrow it are not its model.
    """
    found: list[tuple[ClassRef, int]] = []
    module = index.module(backbone.module)
    if module is None or backbone.module == INTERFACES_MODULE:
        return found
    for name, statements in module.classes.items():
        for ordinal in range(len(statements)):
            ref = ClassRef(backbone.module, name, ordinal)
            if not _names(index, ref) or index.is_multimodal(ref):
                continue
            built = _backbone(index, ref)
            if built is not None and built[0] == backbone:
                found.append((ref, built[1]))
    return found


def _by_config(index: ModelIndex, config: ViewConfig) -> RoadName | str | None:
    """The causal LM that the config class or an ancestor of it is mapped to."""
    pin = config.pin
    if not isinstance(pin, TextConfig):
        return "its config class is not known"
    found = index.configs.pin.causal_lm_by_ancestry(pin.resolved)
    if found is None:
        return f"no ancestor of {pin.class_name} has a mapped model_type"
    named = named_class(index, found.name)
    if not named.refs or named.converted:
        return (
            f"{found.name}, which {found.ancestor.name} is mapped to, is unregistered"
        )
    chain = (*found.evidence, *named.evidence)
    return RoadName(Road.CONFIG, found.name, named.refs, chain)


def _by_annotation(
    index: ModelIndex, annotation: tuple[str, str] | None
) -> RoadName | str | None:
    """The class written beside the attribute."""
    if annotation is None:
        return None
    module, name = annotation
    for symbol in index.resolve_for_types(module, name):
        if not isinstance(symbol, ClassSymbol):
            continue
        names = _names(index, symbol.ref)
        if names:
            said = f"the attribute is annotated as {symbol.ref.name}"
            found = index.module(module)
            assert found is not None
            line = index.class_of(symbol.ref).line
            here = Evidence(
                index.source_kind(symbol.ref.module),
                index.file_of(symbol.ref),
                line,
                said,
            )
            chain = (here, registered_at(index, names[0]))
            return RoadName(
                Road.ANNOTATION, names[0].architecture, (symbol.ref,), chain
            )
    return f"{name} is not registered"


def _by_reader(index: ModelIndex, config: ViewConfig) -> RoadName | str | None:
    """The one registered text model whose file works with this config class."""
    pin = config.pin
    if not isinstance(pin, TextConfig) or pin.source is Source.TRANSFORMERS:
        # A class of Transformers' own serves many models' files.
        return None
    found: dict[str, ClassRef] = {}
    for table, entries in index.registry.tables.items():
        if table in (MULTIMODAL, SPECULATIVE_DECODING):
            continue
        for entry in entries:
            for ref in index.registered_classes(entry):
                if index.is_multimodal(ref) or not _imports(index, ref, pin):
                    continue
                found.setdefault(_names(index, ref)[0].architecture, ref)
    if len(found) != 1:
        names = " and ".join(sorted(found)) or "no registered text model"
        return f"it is {names} that works with {pin.class_name}"
    ((_, ref),) = found.items()
    entry = _names(index, ref)[0]
    module = index.module(ref.module)
    assert module is not None
    line = module.bindings[pin.class_name][0].line
    said = f"{ref.name} alone works with {pin.class_name}"
    here = Evidence(index.source_kind(ref.module), module.file, line, said)
    chain = (here, registered_at(index, entry))
    return RoadName(Road.READER, entry.architecture, (ref,), chain)


def _imports(index: ModelIndex, ref: ClassRef, config: TextConfig) -> bool:
    module = index.module(ref.module)
    return module is not None and any(
        binding.kind == "import" and binding.attribute == config.class_name
        for binding in module.bindings.get(config.class_name, ())
    )
