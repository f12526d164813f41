"""Which classes an inner model may be, and what shows it.

A direct call names its class. A model that is built through the registry is named by an
architecture: one that the call gives, the one that the text config's class stands for
by default, or, where the config decides at run time, any text model that is registered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.config_paths import text_config
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.registry import TEXT_GENERATION, Entry
from vlmend.codemods.analysis.text_configs import TextConfig
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
        default: the class that ``any`` is where a checkpoint says nothing.
    """

    refs: tuple[ClassRef, ...]
    evidence: tuple[Evidence, ...]
    how: str
    reason: str = ""
    default: ClassRef | None = None


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
    for option in map(bare, options(bare(value))):
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
    name, evidence, dynamic = default
    if dynamic:
        return None
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
) -> tuple[str, tuple[Evidence, ...], bool] | None:
    """Return the architecture that a text config stands for where nothing else is said.

    The last value says that a checkpoint may choose another config class
    (``AutoConfig``): the name is then a default, not a fact.
    """
    if hf_config is None:
        return None
    found = text_config(index, hf_config)
    if not isinstance(found, TextConfig):
        return None
    names = (*found.default_architectures, found.causal_lm_name or "")
    return (names[0], found.evidence, found.dynamic) if names[0] else None


def _any_text_model(index: ModelIndex, value: Built) -> InnerClasses:
    """Every pipeline-parallel text model is possible: the config decides."""
    what = describe(value.hf_config) if value.hf_config is not None else "the config"
    said = f"builds whichever text model {what} names"
    entries = index.registry.tables.get(TEXT_GENERATION, [])
    refs = index.ask(text_models)
    chain = [_at(index, value.site, said)]
    if entries:
        first = entries[0]
        said = f"{len(refs)} registered text models are pipeline parallel"
        where = index.roots[-1].source
        chain.append(Evidence(where, first.file, first.line, said))
    if not refs:
        return InnerClasses((), tuple(chain), "any", "no text model is registered")
    default = _default_class(index, value, chain)
    return InnerClasses(refs, tuple(chain), "any", default=default)


def _default_class(
    index: ModelIndex, value: Built, chain: list[Evidence]
) -> ClassRef | None:
    """Return the class of the default text config; its lines go to ``chain``."""
    found = default_architecture(index, value.hf_config)
    entry = index.registry.get(found[0]) if found is not None else None
    if found is None or entry is None:
        return None
    refs = index.registered_classes(entry)
    chain += (*found[1], _registered(index, entry))
    return refs[0] if refs else None


def text_models(index: ModelIndex) -> tuple[ClassRef, ...]:
    """Return the registered text models that are pipeline parallel."""
    return index.remember(
        "text models",
        lambda: tuple(dict.fromkeys(_pipeline_parallel(index))),
        on_cycle=(),
    )


def _pipeline_parallel(index: ModelIndex) -> Iterator[ClassRef]:
    for entry in index.registry.tables.get(TEXT_GENERATION, []):
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
