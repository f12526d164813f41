"""After which statement of an ``__init__`` a new one is safe."""

from __future__ import annotations

import ast

from vlmend.codemods.analysis.interpreter import Write
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.provision import covers
from vlmend.codemods.analysis.values import ClassRef


def last_safe_statement(
    index: ModelIndex, owner: ClassRef, writes: tuple[Write, ...]
) -> tuple[int, int] | str:
    """Choose the statement of ``owner.__init__`` that a new one follows.

    It is the last one, as upstream has it (#42819), unless the function returns early:
    then it is the statement that sets the attribute.

    Args:
        writes: the statements that set the attribute that the new one reads.

    Returns:
        The line of ``def`` and the first line of the statement, or why there is none.
    """
    function = index.class_of(owner).methods["__init__"]
    module = index.module(owner.module)
    assert module is not None
    node = index.function_node(module, function)
    if not covers([write.guards for write in writes]):
        return f"self.{writes[0].attribute} is set only under a condition"
    first, last = node.body[0], node.body[-1]
    before = index.lines(module)[first.lineno - 1].encode()[: first.col_offset]
    if before.strip():
        return "the body of __init__ has no lines of its own"
    if isinstance(last, ast.Raise):
        return "__init__ always raises"
    early = [n for n in ast.walk(node) if isinstance(n, ast.Return) and n is not last]
    if not early and not isinstance(last, ast.Return):
        return function.line, last.lineno
    lines = [w.site.line for w in writes if w.site.file == module.file]
    for statement in node.body:
        end = statement.end_lineno or statement.lineno
        if lines and statement.lineno <= max(lines) <= end:
            if any(isinstance(n, ast.Return) for n in ast.walk(statement)):
                break
            return function.line, statement.lineno
    return "__init__ returns early and the place after the language model is not plain"
