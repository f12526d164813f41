"""Parameters of functions: what a call binds, defaults, and annotations."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from vlmend.codemods.analysis.facts import dotted
from vlmend.codemods.analysis.values import (
    Arguments,
    Value,
)


def bind(names: Sequence[str], arguments: Arguments) -> dict[str, Value]:
    """Bind leading positional arguments and keywords to parameter names."""
    found = dict(zip(names, arguments.positional, strict=False))
    return found | {k: v for k, v in arguments.keywords if k in names}


def defaults_of(parameters: ast.arguments) -> dict[str, ast.expr]:
    """Return the defaults of a signature by parameter name."""
    ordered = [*parameters.posonlyargs, *parameters.args]
    first = len(ordered) - len(parameters.defaults)
    found = {
        parameter.arg: default
        for parameter, default in zip(ordered[first:], parameters.defaults, strict=True)
    }
    for parameter, default_ in zip(
        parameters.kwonlyargs, parameters.kw_defaults, strict=True
    ):
        if default_ is not None:
            found[parameter.arg] = default_
    return found


def annotated_name(node: ast.expr | None) -> str:
    """Return the one dotted name in an annotation, ``None`` alternatives aside."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [
            s for s in (annotated_name(node.left), annotated_name(node.right)) if s
        ]
        return sides[0] if len(sides) == 1 else ""
    if isinstance(node, ast.Subscript) and dotted(node.value).endswith("Optional"):
        return annotated_name(node.slice)
    return dotted(node)
