"""Which config class a view of an inner model is made of.

Several roads lead from an expression such as ``config.text_config`` to a class. They
are tried in order of how directly they speak: the annotation in the code that runs, the
``info=`` class of the wrapper's registered processor, the mapping from architectures to
config classes in Transformers, the class of that name in vLLM's ``_CONFIG_REGISTRY``,
and the class that the inner model itself reads its config as.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.config_classes import GET_TEXT_CONFIG, ROOT_NAMES
from vlmend.codemods.analysis.config_paths import imported_from
from vlmend.codemods.analysis.facts import dotted
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.names import INTERFACES_MODULE
from vlmend.codemods.analysis.text_configs import ConfigIndex, TextConfig, Unknown
from vlmend.codemods.analysis.transformers_facts import (
    CAUSAL_LM_MAPPING,
    IMAGE_TEXT_MAPPING,
    MODEL_MAPPING,
    MULTIMODAL_MAPPING,
)
from vlmend.codemods.analysis.values import (
    Annotated,
    Call,
    ClassRef,
    ConfigView,
    External,
    Instance,
    Member,
    Parameter,
    Value,
    bare,
    describe,
    options,
)
from vlmend.codemods.codemod import Evidence, Source

MODEL_CONFIG = ("model_config", "hf_config")
"""From a ``vllm_config`` to the config that the model is built with."""

MODEL_TEXT_CONFIG = ("model_config", "hf_text_config")


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A config class by its import, and the line that names it.

    ``path`` is what leads on from there to the config in question. ``by_name`` says
    that only the class's name speaks for it: it counts where the path exists.
    """

    name: str
    module: str
    path: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class ViewConfig:
    """The config of a view, under the releases that the tree allows.

    Attributes:
        pin: by the Transformers release that the tree is tested with.
        floor: by the oldest one that it allows.
        sources: where the answer was read from.
        given: architecture names that an enclosing view has put on it already.
    """

    pin: TextConfig | Unknown
    floor: TextConfig | Unknown
    sources: tuple[ConfigSource, ...] = ()
    given: Value | None = None


def view_config(
    index: ModelIndex,
    ref: ClassRef,
    value: Value,
    reader: ClassRef | None = None,
    *,
    tower: bool = False,
) -> ViewConfig:
    """Say which config class an expression in the code of ``ref`` stands for.

    Args:
        ref: the wrapper whose config it starts from.
        value: the expression that is made a view of.
        reader: the class that is built with the view, if one is called directly.
        tower: that class is no language model: what it reads its config as counts
            more than what the wrapper's config class says, since the same encoder
            serves checkpoints of several formats.
    """
    read = {s.name: s for s in _read_as(index, reader)} if reader is not None else {}
    if tower and len(read) == 1:
        return _follow(index, *read.values())
    found = [_single(index, ref, option) for option in options(bare_view(value))]
    if len(found) > 1:
        return _chosen(options(bare_view(value)), found)
    config = found[0]
    if isinstance(config.pin, Unknown) and not config.pin.open and len(read) == 1:
        return replace(_follow(index, *read.values()), given=config.given)
    return config


def bare_view(value: Value) -> Value:
    """Take annotations off, but only those around alternatives."""
    if isinstance(value, Annotated) and len(options(value.value)) > 1:
        return value.value
    return value


def _chosen(alternatives: tuple[Value, ...], found: list[ViewConfig]) -> ViewConfig:
    """Join alternatives, of which ``getattr(config, "x", config)`` makes two.

    There the default only counts where the class has no such attribute.
    """
    first, *rest = alternatives
    if isinstance(first, Member) and [bare(v) for v in rest] == [bare(first.value)]:
        if isinstance(found[0].pin, TextConfig):
            return found[0]
        if isinstance(found[1].pin, TextConfig) and _lacks(found[1].pin, first.name):
            return found[1]
    classes = {
        (f.pin.file, f.pin.class_name) if isinstance(f.pin, TextConfig) else None
        for f in found
    }
    if len(classes) == 1 and None not in classes:
        return found[0]
    said = " or ".join(describe(v) for v in alternatives)
    unknown = Unknown(f"the config is {said}")
    return ViewConfig(unknown, unknown)


def _lacks(config: TextConfig, attribute: str) -> bool:
    """Say whether a class, known to its root, has no such attribute."""
    resolved = config.resolved
    return (
        resolved.complete
        and resolved.alias(attribute) not in resolved.fields
        and resolved.property(attribute) is None
        and attribute not in resolved.sub_config_names()
    )


def _single(index: ModelIndex, ref: ClassRef, value: Value) -> ViewConfig:
    start = _start(index, value)
    if isinstance(start, Unknown):
        return ViewConfig(start, start)
    sources, path, given = start
    if not sources:
        sources = tuple(
            replace(source, path=path) for source in model_config_classes(index, ref)
        )
    found = [
        config
        for source in sources
        if not _is_other(config := _follow(index, source), source)
    ]
    if not found:
        unknown = Unknown(
            f"the tree names no config class for {ref.name}; the checkpoint brings it",
            _no_class(index, ref),
            open=True,
        )
        return ViewConfig(unknown, unknown, given=given)
    best = next((f for f in found if isinstance(f.pin, TextConfig)), found[0])
    if isinstance(best.floor, Unknown):
        # Another road may lead to a class that the older release has as well.
        floor = next((f.floor for f in found if _same_class(f.floor, best.pin)), None)
        best = best if floor is None else replace(best, floor=floor)
    return replace(best, given=given)


def _is_other(config: ViewConfig, source: ConfigSource) -> bool:
    """Say whether a class that only its name speaks for lacks what is read of it."""
    pin = config.pin
    return source.by_name and isinstance(pin, Unknown) and not pin.open


def _same_class(left: TextConfig | Unknown, right: TextConfig | Unknown) -> bool:
    return (
        isinstance(left, TextConfig)
        and isinstance(right, TextConfig)
        and (left.source, left.class_name) == (right.source, right.class_name)
    )


def _follow(index: ModelIndex, source: ConfigSource) -> ViewConfig:
    configs = index.configs
    pin = _under(configs.pin, source)
    same = configs.floor is configs.pin
    floor = pin if same else _under(configs.floor, source)
    return ViewConfig(pin, floor, (source,))


def _under(configs: ConfigIndex, source: ConfigSource) -> TextConfig | Unknown:
    found = configs.follow(source.name, source.module, source.path)
    return replace(found, evidence=(*source.evidence, *found.evidence))


def _start(
    index: ModelIndex, value: Value
) -> tuple[tuple[ConfigSource, ...], tuple[str, ...], Value | None] | Unknown:
    """Go back from an expression to where its class is known.

    Returns the class, if one is named on the way; the attributes that lead on from
    there; and the names that an enclosing view has given. No class means the model's
    own config.
    """
    path: list[str] = []
    given: Value | None = None
    while True:
        match value:
            case Annotated():
                source = _annotation(index, value)
                if source is not None:
                    way = tuple(reversed(path))
                    return (replace(source, path=way),), way, given
                value = value.value
            case Member(inner, name):
                path.append(name)
                value = inner
            case Call(Member(inner, "get_text_config")):
                path.append(GET_TEXT_CONFIG)
                value = inner
            case ConfigView(_, hf_config) if tuple(reversed(path))[:2] == MODEL_CONFIG:
                if hf_config is None:
                    return Unknown("a view is made of nothing")
                del path[-2:]
                if not path:
                    given = value.architectures
                value = hf_config
            case Call(External(name)) | External(name):
                return _external(index, name, value, tuple(reversed(path)), given)
            case Instance(ref):
                source = ConfigSource(ref.name, ref.module, tuple(reversed(path)), ())
                return (source,), source.path, given
            case Parameter():
                way = tuple(reversed(path))
                if way[:2] == MODEL_CONFIG:
                    return (), way[2:], given
                if way[:2] == MODEL_TEXT_CONFIG:
                    return (), (GET_TEXT_CONFIG, *way[2:]), given
                return Unknown(f"{describe(value)} is not followed")
            case _:
                return Unknown(f"{describe(value)} is not followed")


def _external(
    index: ModelIndex,
    name: str,
    value: Value,
    path: tuple[str, ...],
    given: Value | None,
) -> tuple[tuple[ConfigSource, ...], tuple[str, ...], Value | None] | Unknown:
    """A config that the code makes itself: ``FooConfig.from_pretrained(...)``."""
    class_name = name.removesuffix(".from_pretrained")
    module, _, bare_name = class_name.rpartition(".")
    if index.configs.pin.find(bare_name, module) is None:
        return Unknown(f"{name} is not followed")
    chain: tuple[Evidence, ...] = ()
    if isinstance(value, Call):
        site = value.site
        said = f"the config is made as {bare_name}"
        source = index.source_kind(site.module)
        chain = (Evidence(source, site.file, site.line, said),)
    return (ConfigSource(bare_name, module, path, chain),), path, given


def _annotation(index: ModelIndex, value: Annotated) -> ConfigSource | None:
    origin = _config_class(index, value.module, value.annotation)
    if origin is None:
        return None
    said = f"the config is annotated as {origin[1]}"
    source = index.source_kind(value.module)
    here = Evidence(source, value.file, value.line, said)
    return ConfigSource(origin[1], origin[0], (), (here,))


def _config_class(index: ModelIndex, module: str, name: str) -> tuple[str, str] | None:
    """Return module and name of the one config class that a name stands for."""
    origin = imported_from(index, module, name) if name else None
    if origin is None or origin[1] in ROOT_NAMES:
        return None
    resolved = index.configs.pin.resolve(origin[1], origin[0])
    if resolved is not None and "Protocol" in resolved.config.bases:
        # It says which fields there are, not which class has them.
        return None
    return origin


# -- the config class of a wrapper ----------------------------------------------------


def model_config_classes(index: ModelIndex, ref: ClassRef) -> tuple[ConfigSource, ...]:
    """Return the classes that a wrapper's own config may have, surest first."""
    return index.remember(
        ("model config", ref),
        lambda: tuple(
            dict.fromkeys(
                (
                    *_read_as(index, ref),
                    *_by_processing_info(index, ref),
                    *_by_transformers(index, ref),
                    *_by_config_registry(index, ref),
                )
            )
        ),
        on_cycle=(),
    )


def processing_info(index: ModelIndex, ref: ClassRef) -> tuple[ClassRef, int] | None:
    """Return the ``info=`` class of the processor that a class is registered with.

    The decorator puts it on the class, so that subclasses without one of their own
    inherit it.
    """
    for owner in index.mro(ref).classes:
        found = index.class_of(owner)
        if not any(name.endswith("register_processor") for name, _ in found.decorators):
            continue
        module = index.module(owner.module)
        assert module is not None
        lines = [*index.lines(module)[: found.line - 1], "class _: pass"]
        node = facts.parse_span(lines, found.first_line, found.line, 0)
        if not isinstance(node, ast.ClassDef):
            return None
        for decorator in node.decorator_list:
            for word in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if word.arg == "info":
                    info = index.resolve_class(owner.module, dotted(word.value))
                    return None if info is None else (info, word.value.lineno)
        return None
    return None


def _by_processing_info(index: ModelIndex, ref: ClassRef) -> Iterator[ConfigSource]:
    info = processing_info(index, ref)
    found = index.find_method(info[0], "get_hf_config") if info is not None else None
    if info is None or found is None:
        return
    owner, function = found
    module = index.module(owner.module)
    assert module is not None
    body = index.function_node(module, function)
    named: list[tuple[ast.expr, int]] = [
        (node.args[0], node.lineno)
        for node in ast.walk(body)
        if isinstance(node, ast.Call)
        and node.args
        and dotted(node.func).endswith("ctx.get_hf_config")
    ]
    if body.returns is not None:
        named.append((body.returns, body.lineno))
    for node, line in named:
        origin = _config_class(index, owner.module, dotted(node))
        if origin is None:
            continue
        said = f"{owner.name} loads the config of {ref.name} as {origin[1]}"
        kind = index.source_kind(owner.module)
        here = Evidence(kind, module.file, line, said)
        yield ConfigSource(origin[1], origin[0], (), (here,))


def _by_transformers(index: ModelIndex, ref: ClassRef) -> Iterator[ConfigSource]:
    """Go from an architecture to its model type, and from there to the config class."""
    names = index.architectures(ref)
    transformers = index.configs.pin.facts
    for mapping in (
        IMAGE_TEXT_MAPPING,
        MULTIMODAL_MAPPING,
        CAUSAL_LM_MAPPING,
        MODEL_MAPPING,
    ):
        for model_type, mapped in transformers.mappings.get(mapping, {}).items():
            if not set(mapped.names) & set(names):
                continue
            found = index.configs.pin.for_model_type(model_type)
            line = transformers.evidence(mapping, model_type)
            if found is None or line is None:
                continue
            (source, config), by = found
            module = config.file.removesuffix(".py").replace("/", ".")
            if source is Source.TRANSFORMERS:
                module = "transformers"
            yield ConfigSource(config.name, module, (), (line, by))


def _by_config_registry(index: ModelIndex, ref: ClassRef) -> Iterator[ConfigSource]:
    """Find the class that vLLM's registry has under the model's own name.

    ``FooForConditionalGeneration`` is loaded with ``FooConfig``, or, where that is the
    text model's, with ``FooVLConfig``: which of them has the attributes that the model
    reads decides.
    """
    stems = {name: _stem(name) for name in (*index.architectures(ref), ref.name)}
    for entry in index.configs.pin.vllm.registry.values():
        class_name = entry.class_name.rpartition(".")[2]
        for name, stem in stems.items():
            if class_name not in (f"{stem}Config", f"{stem}VLConfig"):
                continue
            found = index.configs.pin.registered(entry.model_type)
            if found is None:
                continue
            (_, config), line = found
            module = config.file.removesuffix(".py").removeprefix("src/")
            said = f"{line.statement}, the config class of {name}"
            here = replace(line, statement=said)
            place = module.replace("/", ".")
            yield ConfigSource(config.name, place, (), (here,), by_name=True)


def _stem(name: str) -> str:
    for ending in ("ForConditionalGeneration", "ForCausalLM", "ChatModel", "Model"):
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name


def _no_class(index: ModelIndex, ref: ClassRef) -> tuple[Evidence, ...]:
    """Cite what leaves the config class of a wrapper open."""
    kind, file = index.source_kind(ref.module), index.file_of(ref)
    info = processing_info(index, ref)
    if info is None:
        said = f"no processing info of {ref.name} names its config class"
        return (Evidence(kind, file, index.class_of(ref).line, said),)
    found = index.find_method(info[0], "get_hf_config")
    if found is None:
        said = f"{info[0].name} does not name the config class of {ref.name}"
        owner, line = info[0], index.class_of(info[0]).line
    else:
        owner, line = found[0], found[1].line
        said = f"{owner.name} loads the config of {ref.name} without naming a class"
    kind = index.source_kind(owner.module)
    return (Evidence(kind, index.file_of(owner), line, said),)


# -- the config class that an inner model reads ----------------------------------------


def _read_as(index: ModelIndex, ref: ClassRef) -> Iterator[ConfigSource]:
    """Find the class that an ``__init__`` takes its model's config to be.

    ``config: FooConfig = vllm_config.model_config.hf_config``, or ``cast(FooConfig,
    ...)``.
    """
    found = index.find_method(ref, "__init__")
    if found is None or found[0].module == INTERFACES_MODULE:
        return
    owner, function = found
    module = index.module(owner.module)
    assert module is not None
    for node in ast.walk(index.function_node(module, function)):
        wanted: ast.expr | None = None
        if isinstance(node, ast.AnnAssign) and _is_model_config(node.value):
            wanted = node.annotation
        elif (
            isinstance(node, ast.Call)
            and dotted(node.func).rpartition(".")[2] == "cast"
            and len(node.args) == 2
            and _is_model_config(node.args[1])
        ):
            wanted = node.args[0]
        if wanted is None:
            continue
        origin = _config_class(index, owner.module, dotted(wanted))
        if origin is None:
            continue
        said = f"{owner.name} reads its config as {origin[1]}"
        kind = index.source_kind(owner.module)
        here = Evidence(kind, module.file, wanted.lineno, said)
        yield ConfigSource(origin[1], origin[0], (), (here,))


def _is_model_config(node: ast.expr | None) -> bool:
    return dotted(node).endswith(
        ("model_config.hf_config", "model_config.hf_text_config")
    )
