"""After which statement of an ``__init__`` a new one is safe."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.guards import covers
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.reading_statements import always_raises
from vlmend.codemods.analysis.trace import Write
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
    if not _keeps_self(node):
        return "__init__ does not keep its object under the name self"
    if always_raises(node.body):
        return "__init__ always raises"
    early = [n for n in _returns(node) if n is not last]
    if not early and not isinstance(last, ast.Return):
        return function.line, last.lineno
    lines = [w.site.line for w in writes if w.site.file == module.file]
    for statement in node.body:
        end = statement.end_lineno or statement.lineno
        if lines and statement.lineno <= min(lines) and max(lines) <= end:
            if any(_returns(statement)):
                break
            return function.line, statement.lineno
    return "__init__ returns early and the place after the language model is not plain"


def _keeps_self(node: facts.FunctionNode) -> bool:
    """Say whether the first parameter is named ``self`` and stays what it is."""
    names = [*node.args.posonlyargs, *node.args.args]
    return (
        names[:1] != []
        and names[0].arg == "self"
        and not any(
            isinstance(n, ast.Name)
            and n.id == "self"
            and not isinstance(n.ctx, ast.Load)
            for n in ast.walk(node)
        )
    )


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """Yield the ``return`` statements of a function, not those of inner functions."""
    if isinstance(node, ast.Return):
        yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _returns(child)
