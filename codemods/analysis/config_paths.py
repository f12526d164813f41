"""From a config expression in a model's code to the config class it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.symbols import ClassSymbol, ExternalSymbol
from vlmend.codemods.analysis.text_configs import TextConfig, Unknown
from vlmend.codemods.analysis.values import Annotated, Member, Value
from vlmend.codemods.codemod import Evidence


class ConfigPath(NamedTuple):
    """A config class and the attributes that lead on from it.

    ``module`` is where the class is imported from; ``evidence`` is the annotation.
    """

    class_name: str
    module: str
    attributes: tuple[str, ...]
    evidence: Evidence


def config_path(index: ModelIndex, value: Value) -> ConfigPath | None:
    """Read ``config.text_config`` where the code says which class ``config`` has.

    The nearest annotation decides: ``config: FooConfig = vllm_config...hf_config``.
    """
    attributes: list[str] = []
    while isinstance(value, Member):
        attributes.append(value.name)
        value = value.value
    if not isinstance(value, Annotated):
        return None
    origin = imported_from(index, value.module, value.annotation)
    if origin is None:
        return None
    module, class_name = origin
    said = f"the config is annotated as {class_name}"
    source = index.source_kind(value.module)
    here = Evidence(source, value.file, value.line, said)
    return ConfigPath(class_name, module, tuple(reversed(attributes)), here)


def imported_from(
    index: ModelIndex, module: str, annotation: str
) -> tuple[str, str] | None:
    """Return the module and name that an annotation is imported from."""
    for symbol in index.resolve_for_types(module, annotation):
        if isinstance(symbol, ExternalSymbol):
            place, _, name = symbol.name.rpartition(".")
            return place, name
        if isinstance(symbol, ClassSymbol):
            return symbol.ref.module, symbol.ref.name
    return None


def text_config(index: ModelIndex, value: Value) -> TextConfig | Unknown:
    """Say which class an expression such as ``config.text_config`` stands for."""
    path = config_path(index, value)
    if path is None:
        return Unknown("the class of the config is not written in the code")
    found = index.configs.pin.follow(path.class_name, path.module, path.attributes)
    chain = (path.evidence, *found.evidence)
    if isinstance(found, Unknown):
        return Unknown(found.reason, chain)
    return replace(found, evidence=chain)
