"""Config fields that an inner model reads, against those that its new config has.

Where a fix narrows what an inner class is given, from the whole config to the text
config, every field that the class and its backbone read must be there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.facts import FunctionNode, dotted
from vlmend.codemods.analysis.interpreter import read_init
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.text_configs import TextConfig
from vlmend.codemods.analysis.values import ClassRef, Instance, options
from vlmend.codemods.codemod import Evidence

_CONFIGS = (".hf_config", ".hf_text_config", "text_config", ".get_text_config")


@dataclass(frozen=True, slots=True)
class MovedConfig:
    """The fields that are read, and those that the text config lacks."""

    evidence: tuple[Evidence, ...]
    missing: tuple[str, ...]


def moved_config(index: ModelIndex, inner: ClassRef, config: TextConfig) -> MovedConfig:
    """Check the fields that an inner class and its backbone read.

    Args:
        inner: the class that gets the text config in place of the whole one.
        config: that text config.
    """
    chain: list[Evidence] = []
    missing: list[str] = []
    for ref in (inner, *_backbones(index, inner)):
        read = dict(_fields(index, ref))
        lacking = sorted(f for f in read if not _has(config, f))
        kind = index.source_kind(ref.module)
        file, line = index.file_of(ref), index.class_of(ref).line
        if read:
            said = f"{ref.name} reads {', '.join(sorted(read))} of its config"
            chain.append(Evidence(kind, file, line, said))
        for field in lacking:
            path, number = read[field]
            said = f"{ref.name} reads {field}, which {config.class_name} does not have"
            chain.append(Evidence(kind, path, number, said))
        missing += lacking
    return MovedConfig(tuple(chain), tuple(dict.fromkeys(missing)))


def _has(config: TextConfig, field: str) -> bool:
    resolved = config.resolved
    return (
        resolved.alias(field) in resolved.fields
        or field in resolved.fields
        or resolved.property(field) is not None
    )


def _backbones(index: ModelIndex, ref: ClassRef) -> tuple[ClassRef, ...]:
    trace = read_init(index, ref)
    return tuple(
        dict.fromkeys(
            value.ref
            for write in (trace.writes_to("model") if trace else ())
            for value in options(write.value)
            if isinstance(value, Instance)
        )
    )


def _fields(index: ModelIndex, ref: ClassRef) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the config fields that building a class reads without a default."""
    trace = read_init(index, ref)
    for step in trace.steps if trace is not None else ():
        module = index.module(step.owner.module)
        function = index.class_of(step.owner).methods.get(step.function)
        if module is None or function is None or function.line != step.line:
            continue
        node = index.function_node(module, function)
        for field, line in _read(node):
            yield field, (module.file, line)


def _read(node: FunctionNode) -> Iterator[tuple[str, int]]:
    names = {"self.config"}
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = (
                statement.targets
                if isinstance(statement, ast.Assign)
                else [statement.target]
            )
            if _is_config(statement.value):
                names |= {dotted(t) for t in targets if dotted(t)}
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Attribute)
            and isinstance(inner.ctx, ast.Load)
            and dotted(inner.value) in names
        ):
            yield inner.attr, inner.lineno


def _is_config(value: ast.expr | None) -> bool:
    """Say whether an expression is the config that a class is given."""
    if isinstance(value, ast.Call):
        name = dotted(value.func)
        if name == "getattr" and len(value.args) == 3:
            # getattr(config, "text_config", config) is the config where it is narrow.
            field = value.args[1]
            return isinstance(field, ast.Constant) and field.value == "text_config"
        return name.endswith(".get_text_config")
    return dotted(value).endswith(_CONFIGS)
