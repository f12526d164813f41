"""Architecture names that are put on a config before a view is made of it.

A wrapper may assign ``config.text_config.architectures`` in its ``__init__``; so may an
updater that ``MODELS_CONFIG_MAP`` has for the wrapper's architecture, which runs before
any model is built.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vlmend.codemods.analysis.facts import FunctionNode, dotted
from vlmend.codemods.analysis.interpreter import read_init
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.narrowing import Narrowing
from vlmend.codemods.analysis.tree_lines import open_file
from vlmend.codemods.analysis.values import ClassRef, Member, bare, options
from vlmend.codemods.codemod import Evidence

UPDATERS = ("vllm/model_executor/models/config.py",)
UPDATER_METHODS = ("verify_and_update_model_config", "verify_and_update_config")


@dataclass(frozen=True, slots=True)
class Assigned:
    """A name that is assigned; ``always`` says that no condition stands before it."""

    evidence: Evidence
    always: bool


def assigned_name(
    index: ModelIndex, ref: ClassRef, narrowing: Narrowing
) -> Assigned | None:
    """Return the assignment of names to the config that a view is made of."""
    wanted = _last_name(narrowing)
    if not wanted:
        return None
    found = [
        *_in_init(index, ref, wanted, narrowing),
        *_by_updater(index, ref, wanted),
    ]
    return next((one for one in found if one.always), found[0] if found else None)


def _last_name(narrowing: Narrowing) -> str:
    """Return ``text_config`` for ``config.text_config``."""
    for option in options(narrowing.config) if narrowing.config is not None else ():
        found = bare(option)
        if isinstance(found, Member):
            return found.name
    return ""


def _in_init(
    index: ModelIndex, ref: ClassRef, wanted: str, narrowing: Narrowing
) -> Iterator[Assigned]:
    trace = read_init(index, ref)
    for step in trace.steps if trace is not None else ():
        module = index.module(step.owner.module)
        if module is None:
            continue
        function = index.class_of(step.owner).methods.get(step.function)
        if function is None or function.line != step.line:
            continue
        lines = index.lines(module)[function.line - 1 : function.end_line]
        if not any(".architectures = " in line for line in lines):
            continue
        node = index.function_node(module, function)
        end = narrowing.site.line if module.file == narrowing.site.file else 1 << 30
        for line in _assignments(node, wanted):
            if line < end:
                said = f"{step.owner.name} sets the architectures of {wanted}"
                kind = index.source_kind(module.name)
                here = Evidence(kind, module.file, line, said)
                yield Assigned(here, _always(node.body, wanted, end))


def _by_updater(index: ModelIndex, ref: ClassRef, wanted: str) -> Iterator[Assigned]:
    file = open_file(index, UPDATERS, ".architectures = ")
    if file is None:
        return
    for name in index.architectures(ref):
        entry = file.find(rf'\s*"{name}":', f"{name} has an updater of its config")
        if entry is None:
            continue
        owner = file.lines[entry.line - 1].partition(":")[2].strip(" ,()")
        for method in UPDATER_METHODS:
            node = file.function(method, owner)
            for line in _assignments(node, wanted) if node is not None else ():
                said = f"{owner}.{method} sets the architectures of {wanted}"
                assert node is not None
                always = _always(node.body, wanted, 1 << 30)
                yield Assigned(file.cite(line, said), always)


def _assignments(node: FunctionNode, wanted: str) -> Iterator[int]:
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign) and _assigns(statement, wanted):
            yield statement.lineno


def _assigns(statement: ast.Assign, wanted: str) -> bool:
    return any(
        dotted(target).split(".")[-2:] == [wanted, "architectures"]
        for target in statement.targets
    )


def _always(body: Sequence[ast.stmt], wanted: str, end: int) -> bool:
    """Say whether a block assigns the names whichever way it takes."""
    for statement in body:
        if statement.lineno >= end:
            return False
        if isinstance(statement, ast.Assign) and _assigns(statement, wanted):
            return True
        if isinstance(statement, ast.With) and _always(statement.body, wanted, end):
            return True
        if (
            isinstance(statement, ast.If)
            and _always(statement.body, wanted, end)
            and _always(statement.orelse, wanted, end)
        ):
            return True
    return False
