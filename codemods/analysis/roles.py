"""Classes that a contract does not speak to, and the line that says so."""

from __future__ import annotations

import ast

from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.registry import SPECULATIVE_DECODING
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Evidence


def declined(index: ModelIndex, ref: ClassRef) -> Evidence | None:
    """Return the line that takes a class out of the pipeline-parallel contract."""
    return (
        draft_registration(index, ref)
        or dispatcher(index, ref)
        or abstract_base(index, ref)
    )


def draft_registration(index: ModelIndex, ref: ClassRef) -> Evidence | None:
    """Return the registry line of a class that only serves as a draft model.

    Draft runners (``vllm/v1/spec_decode``) build the drafter whole on one rank and
    never ask it for intermediate tensors.
    """
    entries = index.entries_by_class.get(ref, ())
    if not entries or any(e.table != SPECULATIVE_DECODING for e in entries):
        return None
    said = (
        f"{ref.name} is registered as a draft of speculative decoding; draft runners "
        "pass no intermediate tensors"
    )
    return Evidence(index.roots[-1].source, entries[0].file, entries[0].line, said)


def dispatcher(index: ModelIndex, ref: ClassRef) -> Evidence | None:
    """Return the ``__new__`` of a class whose objects are of another class."""
    found = index.find_method(ref, "__new__")
    if found is None:
        return None
    owner, function = found
    module = index.module(owner.module)
    assert module is not None
    node = index.function_node(module, function)
    if any(_makes_own(call) for call in ast.walk(node)):
        return None
    said = f"{owner.name}.__new__ returns an object of another class, judged by itself"
    return Evidence(
        index.source_kind(owner.module), index.file_of(owner), function.line, said
    )


def _makes_own(node: ast.AST) -> bool:
    """Say whether a call is ``super().__new__(...)`` or ``object.__new__(...)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "__new__"


def abstract_base(index: ModelIndex, ref: ClassRef) -> Evidence | None:
    """Return the line of a class that is only ever built through its heirs."""
    if index.entries_by_class.get(ref) or not index.heirs(ref):
        return None
    if index.is_called(ref):
        return None
    said = f"{ref.name} is neither registered nor built; its heirs are judged instead"
    line = index.class_of(ref).line
    return Evidence(index.source_kind(ref.module), index.file_of(ref), line, said)
