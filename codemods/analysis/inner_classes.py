"""Which classes an inner model may be, and what shows it.

A direct call names its class. A model that is built through the registry is named by an
architecture: one that the call gives, the one that the text config's class stands for by
default, or, where the config decides at run time, any text model that is registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.registry import TEXT_GENERATION, Entry
from vlmend.codemods.analysis.values import (
    Built,
    ClassRef,
    Constant,
    Instance,
    Items,
    Site,
    Value,
    bare,
    describe,
    options,
)
from vlmend.codemods.codemod import Evidence


@dataclass(frozen=True, slots=True)
class InnerClasses:
    """Candidates for the class of an inner model.

    Attributes:
        refs: the classes; empty where none could be told, ``reason`` says why.
        evidence: the lines that lead to them.
        how: ``call``, ``architectures``, ``config`` or ``any``.
    """

    refs: tuple[ClassRef, ...]
    evidence: tuple[Evidence, ...]
    how: str
    reason: str = ""


def inner_classes(index: ModelIndex, value: Instance | Built) -> InnerClasses:
    """Tell which classes the built object may be of."""
    if isinstance(value, Instance):
        said = f"builds {value.ref.name}"
        return InnerClasses((value.ref,), (_at(index, value.site, said),), "call")
    key = ("inner", value.site, value.hf_config, value.architectures)
    return index.remember(
        key,
        lambda: _registry_built(index, value),
        on_cycle=InnerClasses((), (), "any", "the registry refers to itself"),
    )


def _registry_built(index: ModelIndex, value: Built) -> InnerClasses:
    names = given_names(value.architectures)
    if names:
        return _named(index, value, names)
    found = _by_config(index, value)
    if found is not None:
        return found
    return _any_text_model(index, value)


def given_names(value: Value | None) -> tuple[str, ...]:
    """Return the architecture names that a value lists literally, else nothing.

    Where a condition chooses between lists, all of them are returned.
    """
    if value is None:
        return ()
    names: list[str] = []
    for option in options(bare(value)):
        option = bare(option)
        if isinstance(option, Constant) and option.value is None:
            continue
        if not isinstance(option, Items):
            return ()
        for item in option.values:
            for name in options(bare(item)):
                if not isinstance(name, Constant) or not isinstance(name.value, str):
                    return ()
                names.append(name.value)
    return tuple(dict.fromkeys(names))


def _named(index: ModelIndex, value: Built, names: tuple[str, ...]) -> InnerClasses:
    listed = ", ".join(names)
    chain = [_at(index, value.site, f"builds the inner model as {listed}")]
    refs: list[ClassRef] = []
    for name in names:
        entry = index.registry.get(name)
        if entry is None:
            continue
        chain.append(_registered(index, entry))
        refs += index.registered_classes(entry)
    if not refs:
        reason = f"no class of the tree is registered as {listed}"
        return InnerClasses((), tuple(chain), "architectures", reason)
    return InnerClasses(tuple(dict.fromkeys(refs)), tuple(chain), "architectures")


def _by_config(index: ModelIndex, value: Built) -> InnerClasses | None:
    """Name the class by the default of the text config's class."""
    default = default_architecture(index, value.hf_config)
    if default is None:
        return None
    name, evidence = default
    entry = index.registry.get(name)
    if entry is None:
        return None
    refs = index.registered_classes(entry)
    chain = (
        _at(index, value.site, "builds the inner model through the registry"),
        *evidence,
        _registered(index, entry),
    )
    return InnerClasses(refs, chain, "config") if refs else None


def default_architecture(
    index: ModelIndex, hf_config: Value | None
) -> tuple[str, tuple[Evidence, ...]] | None:
    """Return the architecture that a text config names by default, if it is known."""
    return None


def _any_text_model(index: ModelIndex, value: Built) -> InnerClasses:
    """Every pipeline-parallel text model is possible: the config decides."""
    what = describe(value.hf_config) if value.hf_config is not None else "the config"
    said = f"builds whichever text model {what} names"
    entries = index.registry.tables.get(TEXT_GENERATION, [])
    refs = tuple(dict.fromkeys(_pipeline_parallel(index, entries)))
    chain = [_at(index, value.site, said)]
    if entries:
        first = entries[0]
        said = f"{len(refs)} registered text models are pipeline parallel"
        where = index.roots[-1].source
        chain.append(Evidence(where, first.file, first.line, said))
    if not refs:
        return InnerClasses((), tuple(chain), "any", "no text model is registered")
    return InnerClasses(refs, tuple(chain), "any")


def _pipeline_parallel(
    index: ModelIndex, entries: Iterable[Entry]
) -> Iterator[ClassRef]:
    for entry in entries:
        for ref in index.registered_classes(entry):
            if index.is_pipeline_parallel(ref) and not index.is_multimodal(ref):
                yield ref


def _registered(index: ModelIndex, entry: Entry) -> Evidence:
    said = f"{entry.architecture} is registered as {entry.module}:{entry.class_name}"
    source = index.roots[-1].source
    if entry.table == "register_model":
        source = index.roots[0].source
    return Evidence(source, entry.file, entry.line, said)


def _at(index: ModelIndex, site: Site, statement: str) -> Evidence:
    return Evidence(index.source_kind(site.module), site.file, site.line, statement)
