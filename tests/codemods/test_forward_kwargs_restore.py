"""Takes one thing out of each forward of a release; vlmend has to put it back."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from vlmend.codemods import DirectoryTree, Finding, Session
from vlmend.codemods.analysis.forwards import (
    TENSORS,
    Forward,
    InnerCall,
    forward_of,
    inner_calls,
    sharing,
)
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.signatures import Bound
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.forward_kwargs import ForwardKwargs
from vlmend.codemods.rewriting.apply import apply_edits


@dataclass(frozen=True)
class Deletion:
    """One thing taken out: what, of which forward, and the file without it."""

    kind: str
    owner: ClassRef
    file: str
    after: bytes
    call: InnerCall | None = None

    @property
    def label(self) -> str:
        return f"{self.owner.name}: {self.kind}"


def deletions(index: ModelIndex) -> Iterator[Deletion]:
    """Yield every deletion in the forwards of pipeline-parallel classes."""
    seen: set[ClassRef] = set()
    for ref in index.model_classes:
        forward = forward_of(index, ref)
        if forward is None or forward.owner in seen:
            continue
        if not index.is_pipeline_parallel(ref):
            continue
        seen.add(forward.owner)
        source = index.source_of(index.roots[0], forward.file)
        yield from _defaults(forward, source)
        yield from _collectors(forward, source)
        owner = forward.owner if forward.owner in index.model_classes else ref
        for call in inner_calls(index, owner):
            after = _without_tensors(forward, call, source)
            if after is not None:
                yield Deletion("pass-through", forward.owner, forward.file, after, call)


def _offsets(source: bytes) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _span(source: bytes, node: ast.expr | ast.arg) -> tuple[int, int]:
    starts = _offsets(source)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (
        starts[node.lineno - 1] + node.col_offset,
        starts[node.end_lineno - 1] + node.end_col_offset,
    )


def _defaults(forward: Forward, source: bytes) -> Iterator[Deletion]:
    arguments = forward.node.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    pairs = list(
        zip(
            ordered[len(ordered) - len(arguments.defaults) :],
            arguments.defaults,
            strict=True,
        )
    )
    for position, (parameter, default) in enumerate(pairs):
        if parameter.arg == TENSORS and position == 0:
            start, end = _span(source, parameter)[1], _span(source, default)[1]
            after = source[:start] + source[end:]
            yield Deletion("default", forward.owner, forward.file, after)


def _collectors(forward: Forward, source: bytes) -> Iterator[Deletion]:
    one = forward.node.args.kwarg
    if one is None:
        return
    start, end = _span(source, one)
    start = source.rindex(b",", 0, start)
    if source[end : end + 1] == b",":
        # The comma in front stays, as the last one of the list.
        end += 1
        after = source[: start + 1] + source[end:]
    else:
        after = source[:start] + source[end:]
    yield Deletion("**kwargs", forward.owner, forward.file, after)


def _without_tensors(forward: Forward, call: InnerCall, source: bytes) -> bytes | None:
    """Take the tensors out of a call; what follows by position is passed by name."""
    node = call.node
    names = _parameters(call)
    pieces: list[str] = []
    gone = False
    for index, argument in enumerate(node.args):
        text = ast.unparse(argument)
        if isinstance(argument, ast.Name) and argument.id == TENSORS:
            gone = True
        elif gone:
            if index >= len(names):
                return None
            pieces.append(f"{names[index]}={text}")
        else:
            pieces.append(text)
    for keyword in node.keywords:
        text = ast.unparse(keyword.value)
        if keyword.arg == TENSORS:
            gone = True
        else:
            pieces.append(f"{keyword.arg}={text}" if keyword.arg else f"**{text}")
    if not gone:
        return None
    start = _span(source, node.func)[1]
    end = _span(source, node)[1]
    return source[:start] + f"({', '.join(pieces)})".encode() + source[end:]


def _parameters(call: InnerCall) -> list[str]:
    for callee in call.callees:
        if isinstance(call.bind(callee), Bound):
            names = [p.name for p in callee.forward.signature.positional]
            return names[1:]
    return []


def outcome(session: Session, deletion: Deletion) -> tuple[str, str]:
    """Judge the tree without the thing; say how that ended, and why.

    The first word is ``restored``, ``said`` (reported, with the missing proof),
    ``harmless`` (nothing that is called breaks), ``silent`` or ``wrong``.
    """
    before = session.index
    index = before.overlaid({deletion.file: deletion.after})
    forward = forward_of(before, deletion.owner)
    assert forward is not None
    refs = dict.fromkeys((*sharing(before, forward), deletion.owner))
    findings = [
        f
        for f in ForwardKwargs().judge_classes(index, refs)
        if f.class_name == deletion.owner.name and f.module == deletion.owner.module
    ]
    (finding,) = findings
    if not finding.edits:
        if finding.status in ("unproven", "blocked"):
            return "said", finding.message
        return _nothing(deletion, forward, finding)
    again = forward_of(index, deletion.owner)
    assert again is not None
    result = _edited(deletion.after, again, finding)
    mended = before.overlaid({deletion.file: result})
    return _compared(before, mended, deletion, finding)


def _edited(source: bytes, forward: Forward, finding: Finding) -> bytes:
    """Make edits that all lie in one method.

    LibCST takes a second for a file of a thousand lines, and there are hundreds of
    deletions: it is shown the method alone, at its own lines.
    """
    lines = source.splitlines(keepends=True)
    first, last = forward.line - 1, forward.node.end_lineno
    alone = [b"\n"] * first + lines[first:last]
    alone[0] = b"class _:\n"
    edited = apply_edits(b"".join(alone), finding.edits).after  # type: ignore[arg-type]
    method = edited.splitlines(keepends=True)[first:]
    return b"".join([*lines[:first], *method, *lines[last:]])


def _nothing(deletion: Deletion, forward: Forward, finding: Finding) -> tuple[str, str]:
    collected = forward.signature.collects_keywords
    if deletion.kind == "**kwargs" and not forward.loads(collected):
        return "harmless", "a text model's forward, which did nothing with them"
    if finding.status == "exempt":
        return "harmless", finding.message
    return "silent", finding.message


def _compared(
    before: ModelIndex, after: ModelIndex, deletion: Deletion, finding: Finding
) -> tuple[str, str]:
    """Compare signature and calls, each by what they come to, with the untouched.

    Where the untouched forward has a finding of its own, mending that as well is right.
    """
    forward = forward_of(before, deletion.owner)
    assert forward is not None
    result = _come_to(after, deletion.owner)
    if result == _come_to(before, deletion.owner):
        return "restored", finding.status
    source = before.source_of(before.roots[0], deletion.file)
    for own in ForwardKwargs().judge_classes(before, sharing(before, forward)):
        if own.edits and own.class_name == deletion.owner.name:
            mended = before.overlaid({deletion.file: _edited(source, forward, own)})
            if result == _come_to(mended, deletion.owner):
                return "restored", finding.status
    return "wrong", f"{_come_to(before, deletion.owner)} became {result}"


def _come_to(index: ModelIndex, owner: ClassRef) -> object:
    forward = forward_of(index, owner)
    assert forward is not None
    parameters = forward.signature.parameters
    shape = [(p.name, p.kind, p.has_default) for p in parameters]
    return shape, _bindings(index, forward)


def _bindings(index: ModelIndex, forward: Forward) -> list[object]:
    """Return what each inner call passes to each parameter, by source text."""
    found: list[object] = []
    refs = [*sharing(index, forward)]
    for call in inner_calls(index, refs[0] if refs else forward.owner):
        for callee in call.callees[:1]:
            bound = call.bind(callee)
            if not isinstance(bound, Bound):
                found.append((call.text, bound))
                continue
            given = {
                name: ast.unparse(call.node.args[position - 1])
                for name, position in bound.positional.items()
                if position
            }
            given |= {k.arg: ast.unparse(k.value) for k in call.node.keywords if k.arg}
            found.append((call.text, sorted(given.items()), sorted(call.unpacks)))
    return found


# -- the test --------------------------------------------------------------------------

FLOOR = 0.8
"""Of each kind; what 0.33.0 comes to is in the assertions below."""


@pytest.fixture(scope="module")
def tried(request: pytest.FixtureRequest) -> dict[str, list[tuple[str, str, str]]]:
    """Return, by kind, how every deletion of 0.33.0 ended."""
    tree = DirectoryTree(request.getfixturevalue("release")("0.33.0"))
    session = Session(tree, codemods=[ForwardKwargs()])
    session.run()
    found: dict[str, list[tuple[str, str, str]]] = {}
    for deletion in deletions(session.index):
        word, why = outcome(session, deletion)
        found.setdefault(deletion.kind, []).append((word, deletion.label, why))
    return found


@pytest.mark.restore
def test_deletions_of_a_release_are_restored(
    tried: dict[str, list[tuple[str, str, str]]],
    record_property: Callable[[str, object], None],
) -> None:
    rates: dict[str, float] = {}
    for kind, ended in tried.items():
        words = Counter(word for word, _, _ in ended)
        rates[kind] = words["restored"] / len(ended)
        record_property(kind, f"{words['restored']} of {len(ended)} restored")
        assert not [one for one in ended if one[0] in ("wrong", "silent")]
    assert min(rates.values()) >= FLOOR
    assert {kind: len(ended) for kind, ended in tried.items()} == {
        "default": 188,
        "pass-through": 178,
        "**kwargs": 114,
    }


@pytest.mark.restore
def test_every_miss_is_explained(tried: dict[str, list[tuple[str, str, str]]]) -> None:
    missed = [one for ended in tried.values() for one in ended if one[0] != "restored"]
    reasons = Counter("a draft" if "draft" in why else why for _, _, why in missed)
    assert reasons == {
        "a text model's forward, which did nothing with them": 16,
        "a draft": 3,
    }
