"""Which attribute of a wrapper holds its language model, and how that is known.

Three signs are read: the ``with self._mark_language_model(...)`` block that it is built
in, ``get_language_model``, and the call by which ``forward`` passes
``intermediate_tensors`` on. All that speak must name the same attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.facts import dotted
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.names import INTERFACES_MODULE
from vlmend.codemods.analysis.provision import final_writes
from vlmend.codemods.analysis.trace import Trace, Write
from vlmend.codemods.analysis.values import Built, ClassRef, Instance, options
from vlmend.codemods.codemod import Evidence

MARK = "self._mark_language_model"
TOWER_MARK = "self._mark_tower_model"


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """The attribute that holds the inner model.

    Attributes:
        attribute: its name; empty where the signs are silent or disagree.
        writes: the statements that set it.
        evidence: the signs.
        reason: why ``attribute`` is empty.
    """

    attribute: str
    writes: tuple[Write, ...]
    evidence: tuple[Evidence, ...]
    reason: str = ""


def language_model(index: ModelIndex, ref: ClassRef, trace: Trace) -> LanguageModel:
    """Tell which attribute holds the language model of ``ref``.

    Args:
        trace: the reading of the class's ``__init__`` chain.
    """
    signs = list(dict.fromkeys(_signs(index, ref, trace)))
    names = list(dict.fromkeys(name for name, _ in signs))
    evidence = tuple(said for _, said in signs)
    if len(names) > 1:
        reason = f"the signs disagree on what holds the language model: {_list(names)}"
        return LanguageModel("", (), evidence, reason)
    if not names:
        reason = "no attribute could be told to hold the language model"
        return LanguageModel("", (), (), reason)
    writes = final_writes(trace, names[0])
    if not writes:
        reason = f"__init__ does not set self.{names[0]} in a way that can be followed"
        return LanguageModel("", (), evidence, reason)
    return LanguageModel(names[0], tuple(writes), evidence)


def _signs(
    index: ModelIndex, ref: ClassRef, trace: Trace
) -> Iterator[tuple[str, Evidence]]:
    marked = [
        write
        for write in trace.writes
        if any(context.name == MARK for context in write.contexts) and _is_model(write)
    ]
    for write in marked:
        said = f"self.{write.attribute} is built under _mark_language_model"
        yield write.attribute, _cite(index, write.site.module, write.site.line, said)
    yield from _getter(index, ref)
    yield from _forward_calls(index, ref)


def _is_model(write: Write) -> bool:
    return any(isinstance(v, Instance | Built) for v in options(write.value))


def _getter(index: ModelIndex, ref: ClassRef) -> Iterator[tuple[str, Evidence]]:
    """``def get_language_model(self): return self.x``, outside the Protocol itself."""
    found = index.find_method(ref, "get_language_model")
    if found is None or found[0].module == INTERFACES_MODULE:
        return
    owner, function = found
    module = index.module(owner.module)
    assert module is not None
    for node in ast.walk(index.function_node(module, function)):
        if isinstance(node, ast.Return):
            name = dotted(node.value).split(".")
            if len(name) == 2 and name[0] == "self":
                said = f"get_language_model returns self.{name[1]}"
                yield name[1], _cite(index, owner.module, node.lineno, said)


def _forward_calls(index: ModelIndex, ref: ClassRef) -> Iterator[tuple[str, Evidence]]:
    """The object that ``forward`` hands ``intermediate_tensors`` to."""
    found = index.find_method(ref, "forward")
    if found is None or found[0].module == INTERFACES_MODULE:
        return
    owner, function = found
    module = index.module(owner.module)
    assert module is not None
    for node in ast.walk(index.function_node(module, function)):
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func).split(".")
        if len(name) < 2 or name[0] != "self" or index.find_method(ref, name[1]):
            continue
        passed = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(
            isinstance(value, ast.Name) and value.id == "intermediate_tensors"
            for value in passed
        ):
            said = f"forward passes intermediate_tensors to {'.'.join(name)}"
            yield name[1], _cite(index, owner.module, node.lineno, said)


def _cite(index: ModelIndex, module: str, line: int, statement: str) -> Evidence:
    found = index.module(module)
    assert found is not None
    return Evidence(index.source_kind(module), found.file, line, statement)


def _list(names: list[str]) -> str:
    return " and ".join(f"self.{name}" for name in names)
