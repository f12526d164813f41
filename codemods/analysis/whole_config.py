"""How a wrapper can narrow the configuration that it hands on whole."""

from __future__ import annotations

import ast

from vlmend.codemods.analysis.facts import FunctionNode, dotted
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.narrowing import Narrowing
from vlmend.codemods.analysis.values import (
    ClassRef,
    Member,
    Parameter,
    Value,
    bare,
    options,
    path_of,
)
from vlmend.codemods.analysis.view_configs import MODEL_CONFIG


def is_whole(value: Value | None) -> bool:
    """Say whether a value is the model's own config, not a part of it."""
    return value is not None and path_of(value)[1:] == MODEL_CONFIG


def is_own_configuration(value: Value | None) -> bool:
    """Say whether a value is the configuration that the wrapper itself is given."""
    return value is not None and isinstance(bare(value), Parameter)


def narrowing_expression(
    index: ModelIndex, ref: ClassRef, narrowing: Narrowing
) -> tuple[str, str] | str:
    """Write what an inner class narrows to, in the words of the wrapper.

    Args:
        ref: the wrapper, whose ``__init__`` hands its whole configuration on.
        narrowing: the view that the inner class makes for all of itself.

    Returns:
        The local name of the configuration and the config's expression
        (``config.text_config``), or why there is none.
    """
    handed = narrowing.handed
    fields = _fields(narrowing.config)
    if handed is None or not fields:
        return "what the inner class narrows to is no plain attribute"
    given = [
        word.value
        for word in handed.node.keywords
        if word.arg == "vllm_config" and isinstance(word.value, ast.Name)
    ] or [a for a in handed.node.args[:1] if isinstance(a, ast.Name)]
    if not given:
        return "the configuration is not handed on by its name"
    argument = given[0].id
    owner = next(
        (
            step
            for step in index.mro(ref).classes
            if f"{step.name}.__init__" == handed.site.function
            and index.file_of(step) == handed.site.file
        ),
        None,
    )
    function = index.class_of(owner).methods.get("__init__") if owner else None
    if owner is None or function is None:
        return "the configuration is not handed on in an __init__"
    module = index.module(owner.module)
    assert module is not None
    node = index.function_node(module, function)
    base = _local_config(node, argument, handed.node.lineno)
    start = base or ".".join([argument, *MODEL_CONFIG])
    return argument, ".".join([start, *fields])


def _fields(config: Value | None) -> tuple[str, ...]:
    """Return ``("text_config",)`` for ``getattr(hf_config, "text_config", hf_config)``.

    The default is what the config is where it has been narrowed already.
    """
    for option in options(bare(config)) if config is not None else ():
        found = bare(option)
        path = path_of(found)
        if isinstance(found, Member) and path[1:3] == MODEL_CONFIG and path[3:]:
            return path[3:]
    return ()


def tolerates_narrowing(config: Value | None) -> bool:
    """Say whether an inner class also takes a configuration that is narrow already."""
    alternatives = options(bare(config)) if config is not None else ()
    return any(is_whole(option) for option in alternatives)


def _local_config(node: FunctionNode, argument: str, line: int) -> str:
    """Return the local name that the model's config has before a line."""
    wanted = ".".join([argument, *MODEL_CONFIG])
    name = ""
    for statement in node.body:
        if statement.lineno >= line:
            break
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if isinstance(target, ast.Name):
            if dotted(value) == wanted:
                name = target.id
            elif target.id == name:
                name = ""
    return name
