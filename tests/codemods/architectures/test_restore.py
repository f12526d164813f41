"""Delete each given name, one at a time: what does vlmend make of the hole?

Every literal ``architectures=[...]`` of a release is cut out of its call by itself.
Then the view either is named again (a fix with the very name, or the statement that the
tree itself leads to that name), or vlmend says what it cannot prove. It never proposes
another name.

Three kinds of calls are told apart. Where the checkpoint chooses the config a name is
never proposed, by rule (``open``): a literal there states what its author knew of the
checkpoints. Where the tree fills in another registered name, or does not look at the
view at all, the deletion breaks nothing (``not needed``). What is left is what vlmend
could restore; of these at least 60 % have to be named.

From 0.31 views are not checked, so that a class that is called directly no longer needs
a name. Such a deletion counts as named only where the roads, which are listed all the
same, end at the deleted name.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from vlmend.codemods import DirectoryTree, Session, Status
from vlmend.codemods.analysis.sources import MODEL_FOLDERS
from vlmend.codemods.analysis.view_verdicts import ViewVerdict
from vlmend.codemods.explicit_architectures import ExplicitArchitectures

Release = Callable[[str], Path]
CODEMOD = ExplicitArchitectures()
MAKERS = ("with_hf_config", "init_vllm_registered_model")
FLOOR = 0.6

PUBLISHED = {
    "0.30.0": {"named": 24, "unproven": 8, "open": 8, "not needed": 2},
    "0.33.0": {"named": 22, "unproven": 8, "open": 11, "not needed": 1},
}
"""What each release shows; a change here changes the published rate."""


@dataclass(frozen=True)
class Literal:
    """One given name and the file without it."""

    file: str
    line: int
    name: str
    without: bytes


def literals(tree: DirectoryTree) -> Iterator[Literal]:
    """Yield every literal list of names in a call that makes a view."""
    for folder in MODEL_FOLDERS:
        for file in tree.python_files(folder):
            source = tree.read(file)
            if b"architectures=[" not in source and b"with_hf_config(" not in source:
                continue
            for call in ast.walk(ast.parse(source)):
                if not isinstance(call, ast.Call) or _called(call) not in MAKERS:
                    continue
                for node, value in _given(call):
                    if isinstance(value, ast.List):
                        (name,) = [ast.literal_eval(e) for e in value.elts]
                        without = _cut(source, node)
                        yield Literal(file, call.lineno, name, without)


def _called(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _given(call: ast.Call) -> Iterator[tuple[ast.expr | ast.keyword, ast.expr]]:
    for word in call.keywords:
        if word.arg == "architectures":
            yield word, word.value
    if _called(call) == "with_hf_config":
        for value in call.args[1:2]:
            yield value, value


def _cut(source: bytes, node: ast.expr | ast.keyword) -> bytes:
    """Take one argument out of a call, with the comma that sets it off."""
    lines = source.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + column

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start = offset(node.lineno, node.col_offset)
    end = offset(node.end_lineno, node.end_col_offset)
    head = source[:start].rstrip()
    if head.endswith(b","):
        without = head[:-1] + source[end:]
    else:
        without = head + source[end:].lstrip().removeprefix(b",")
    ast.parse(without)
    return without


def outcome(session: Session, one: Literal) -> str:
    """Say what vlmend makes of a release without one name."""
    index = session.overlaid(one.file, one.without).index
    found = [
        verdict
        for verdicts in CODEMOD.verdicts(index).values()
        for verdict in verdicts
        if (verdict.view.site.file, verdict.view.site.line) == (one.file, one.line)
        and "neither registered nor built" not in verdict.message
    ]
    assert found, one
    (kind,) = {_kind(verdict, one.name) for verdict in found}
    return kind


def _kind(verdict: ViewVerdict, name: str) -> str:
    if verdict.edit is not None:
        return "named" if verdict.edit.name == name else f"wrong: {verdict.edit.name}"
    if verdict.status is Status.SATISFIED:
        return "named" if name in verdict.message else "not needed"
    return "open" if verdict.status is Status.EXEMPT else "unproven"


@pytest.mark.restore
@pytest.mark.parametrize("version", list(PUBLISHED))
def test_deleted_names_are_restored_or_refused(
    release: Release, version: str, record_property: Callable[[str, object], None]
) -> None:
    tree = DirectoryTree(release(version))
    session = Session(tree, codemods=(CODEMOD,))
    session.run()
    outcomes = {(one.file, one.line): outcome(session, one) for one in literals(tree)}
    counts = Counter(outcomes.values())
    wrong = {k: v for k, v in outcomes.items() if v.startswith("wrong")}
    assert not wrong
    assert counts == PUBLISHED[version]
    rate = counts["named"] / (counts["named"] + counts["unproven"])
    record_property("restore rate", f"{rate:.0%} of {counts}")
    assert rate >= FLOOR
