"""The forward that really runs for a class, and the inner forwards that it calls.

A wrapper's ``forward`` prepares inputs and calls another forward: ``super().forward``,
``self.model(...)``, ``self.language_model.model(...)``. Each such call is resolved to
the classes that the object may be of, and so to signatures that it can be bound to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from vlmend.codemods.analysis.facts import descend
from vlmend.codemods.analysis.inner_classes import inner_classes
from vlmend.codemods.analysis.interpreter import Reader, read_init
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.names import INTERFACES_MODULE
from vlmend.codemods.analysis.provision import resolve_member
from vlmend.codemods.analysis.signatures import Bound, Signature, read_signature
from vlmend.codemods.analysis.trace import Event
from vlmend.codemods.analysis.values import (
    Built,
    ClassRef,
    Instance,
    Member,
    Method,
    SelfObject,
    Value,
    bare,
    describe,
    options,
)
from vlmend.codemods.codemod import Evidence, Source

FORWARD = "forward"
TENSORS = "intermediate_tensors"
EMBEDS = "inputs_embeds"
POSITIONS = "positions"


@dataclass(frozen=True, slots=True)
class Forward:
    """One ``forward`` method.

    Attributes:
        owner: the class that it stands in.
        signature: its parameters, ``self`` included.
        decorators: names of its decorators.
    """

    owner: ClassRef
    file: str
    source: Source
    signature: Signature
    decorators: tuple[str, ...]
    node: ast.FunctionDef | ast.AsyncFunctionDef = field(compare=False, repr=False)

    @property
    def line(self) -> int:
        """The line of ``def``."""
        return self.signature.line

    def cite(self) -> Evidence:
        """Return the signature as evidence."""
        said = f"{self.signature.qualified} takes {self.signature.text()}"
        return Evidence(self.source, self.file, self.line, said)

    def uses(self, name: str) -> bool:
        """Say whether the body does more with a parameter than look if it is there."""
        return any(_uses(statement, name) for statement in self.node.body)

    def loads(self, name: str) -> bool:
        """Say whether the body reads a name at all."""
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            for n in descend(self.node)
        )


def forward_of(index: ModelIndex, ref: ClassRef) -> Forward | None:
    """Return the forward that an object of ``ref`` runs; the Protocols' stubs aside."""
    found = index.find_method(ref, FORWARD)
    if found is None or found[0].module == INTERFACES_MODULE:
        return None
    return _forward(index, found[0])


def sharing(index: ModelIndex, forward: Forward) -> tuple[ClassRef, ...]:
    """Return the target's model classes that run this very forward."""
    return index.ask(_sharing, forward.owner)


def _sharing(index: ModelIndex, owner: ClassRef) -> tuple[ClassRef, ...]:
    def compute() -> dict[ClassRef, tuple[ClassRef, ...]]:
        found: dict[ClassRef, list[ClassRef]] = {}
        for ref in index.model_classes:
            method = index.find_method(ref, FORWARD)
            if method is not None:
                found.setdefault(method[0], []).append(ref)
        return {owner: tuple(refs) for owner, refs in found.items()}

    empty: dict[ClassRef, tuple[ClassRef, ...]] = {}
    return index.remember(("sharing",), compute, on_cycle=empty).get(owner, ())


def _forward(index: ModelIndex, owner: ClassRef) -> Forward:
    def compute() -> Forward:
        function = index.class_of(owner).methods[FORWARD]
        module = index.module(owner.module)
        assert module is not None
        node = index.function_node(module, function)
        return Forward(
            owner,
            module.file,
            index.source_kind(owner.module),
            read_signature(node, owner.name),
            function.decorators,
            node,
        )

    found = index.remember(("forward of", owner), compute, on_cycle=None)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class Callee:
    """A forward that an inner call may reach, and the class of its object."""

    ref: ClassRef
    forward: Forward


@dataclass(frozen=True, slots=True)
class InnerCall:
    """A call of another forward, written in a forward.

    Attributes:
        text: what is called, as written (``self.language_model.model``).
        callees: the forwards it may reach; empty where ``reason`` says why not.
        open_choice: a config decides at run time which of ``callees`` it is.
        evidence: the lines that lead from the text to the callees.
    """

    text: str
    file: str
    line: int
    source: Source
    callees: tuple[Callee, ...]
    open_choice: bool
    reason: str
    evidence: tuple[Evidence, ...]
    node: ast.Call = field(compare=False, repr=False)

    @property
    def positional(self) -> int | None:
        """How many arguments go by position, ``self`` included; ``None``: open."""
        if any(isinstance(argument, ast.Starred) for argument in self.node.args):
            return None
        return len(self.node.args) + 1

    @property
    def keywords(self) -> tuple[str, ...]:
        """What it passes by name."""
        return tuple(k.arg for k in self.node.keywords if k.arg)

    @property
    def unpacks(self) -> tuple[str, ...]:
        """The source of each ``**mapping`` that it passes."""
        return tuple(ast.unparse(k.value) for k in self.node.keywords if k.arg is None)

    def names(self, name: str) -> bool:
        """Say whether a local name is among what is passed."""
        passed = [*self.node.args, *(k.value for k in self.node.keywords)]
        return any(isinstance(n, ast.Name) and n.id == name for n in passed)

    def bind(self, callee: Callee, *more: str) -> Bound | str | None:
        """Bind the call, with further keywords, to a callee.

        Returns:
            What goes where, the ``TypeError`` text, or ``None`` where ``*args`` hides
            what is passed. Names in ``**mapping`` are not known and not counted.
        """
        if self.positional is None:
            return None
        return callee.forward.signature.bind(self.positional, (*self.keywords, *more))

    def cite(self, statement: str) -> Evidence:
        """Return the call's line as evidence."""
        return Evidence(self.source, self.file, self.line, statement)


def inner_calls(index: ModelIndex, ref: ClassRef) -> tuple[InnerCall, ...]:
    """Return the calls of other forwards that ``ref``'s forward makes itself.

    A call counts where it hands on the positions or the intermediate tensors, which no
    encoder or embedding takes, or where it is ``super().forward``.
    """
    return index.remember(
        ("inner calls", ref),
        lambda: tuple(
            call for call in all_calls(index, ref) if _is_inner(call, index, ref)
        ),
        on_cycle=(),
    )


def all_calls(index: ModelIndex, ref: ClassRef) -> tuple[InnerCall, ...]:
    """Return every call that ``ref``'s forward makes itself, of whatever object."""
    return index.remember(
        ("all calls", ref), lambda: tuple(_all_calls(index, ref)), on_cycle=()
    )


def _all_calls(index: ModelIndex, ref: ClassRef) -> Iterator[InnerCall]:
    forward = forward_of(index, ref)
    if forward is None:
        return
    function = index.class_of(forward.owner).methods[FORWARD]
    reader = Reader(index, ref, attributes=read_init(index, ref))
    trace = reader.read(forward.owner, function, {})
    nodes = {id(n) for n in descend(forward.node) if isinstance(n, ast.Call)}
    events: dict[int, Event] = {}
    for event in trace.events:
        if id(event.node) in nodes:
            events.setdefault(id(event.node), event)
    for event in events.values():
        yield _resolved(index, ref, forward, event)


def _resolved(
    index: ModelIndex, ref: ClassRef, forward: Forward, event: Event
) -> InnerCall:
    callees: dict[Callee, None] = {}
    evidence: list[Evidence] = []
    reason = ""
    value = _called_object(event.function)
    for option in options(value):
        if _is_super_forward(option):
            assert isinstance(option, Method)
            callees[Callee(ref, _forward(index, option.owner))] = None
            continue
        refs, lines, why = _classes(index, option)
        evidence += lines
        reason = reason or why
        for one in refs:
            inner = forward_of(index, one)
            if inner is not None:
                callees[Callee(one, inner)] = None
            else:
                reason = reason or f"{one.name} has no forward in the tree"
    open_choice = _is_open_choice(index, value)
    return InnerCall(
        text=ast.unparse(event.node.func),
        file=forward.file,
        line=event.node.lineno,
        source=forward.source,
        callees=tuple(callees),
        open_choice=open_choice,
        reason="" if callees and open_choice else reason,
        evidence=tuple(dict.fromkeys(evidence)),
        node=event.node,
    )


def _called_object(value: Value) -> Value:
    """Return the object whose forward a call runs: ``x(...)`` or ``x.forward(...)``."""
    value = bare(value)
    if isinstance(value, Member) and value.name == FORWARD:
        return value.value
    return value


def _is_super_forward(value: Value) -> bool:
    return (
        isinstance(value, Method)
        and value.name == FORWARD
        and isinstance(value.bound_to, SelfObject)
    )


_Candidates = tuple[tuple[ClassRef, ...], tuple[Evidence, ...], str]
"""Classes, the lines that lead to them, and why there are no others."""


def _classes(index: ModelIndex, value: Value) -> _Candidates:
    """Tell the classes that a called object may be of."""
    value = bare(value)
    if isinstance(value, Instance | Built):
        found = inner_classes(index, value)
        return found.refs, found.evidence, found.reason
    if not isinstance(value, Member):
        return (), (), f"{describe(value)} is not followed"
    cyclic: _Candidates = ((), (), f"{describe(value)} refers to itself")
    return index.remember(
        ("called", value), lambda: _member_classes(index, value), on_cycle=cyclic
    )


def _member_classes(index: ModelIndex, value: Member) -> _Candidates:
    refs: dict[ClassRef, None] = {}
    evidence: list[Evidence] = list(_holder(index, value.value))
    reason = ""
    for option in map(bare, options(resolve_member(index, value))):
        if isinstance(option, Instance | Built):
            found = inner_classes(index, option)
            refs.update(dict.fromkeys(found.refs))
            if len(evidence) < _ENOUGH:
                evidence += found.evidence
            reason = reason or found.reason
        else:
            reason = reason or f"{describe(option)} is not followed"
    return tuple(refs), tuple(evidence), reason


def _holder(index: ModelIndex, value: Value) -> Iterator[Evidence]:
    """Cite how the object that holds the called one is built."""
    for option in map(bare, options(bare(value))):
        if isinstance(option, Member):
            yield from _holder(index, option.value)
        elif isinstance(option, Instance | Built):
            yield from inner_classes(index, option).evidence


_ENOUGH = 6
"""Evidence of one call that a person reads; an open choice has over a hundred lines."""


def _is_open_choice(index: ModelIndex, value: Value) -> bool:
    value = bare(value)
    if isinstance(value, Member):
        return _is_open_choice(index, value.value)
    return any(
        isinstance(option, Built) and inner_classes(index, option).how == "any"
        for option in options(value)
    )


def _is_inner(call: InnerCall, index: ModelIndex, ref: ClassRef) -> bool:
    if call.text.startswith("super(") and call.text.endswith(f".{FORWARD}"):
        return bool(call.callees)
    if not call.text.startswith("self.") and not call.callees:
        return False
    words = {k.arg for k in call.node.keywords} & {POSITIONS, TENSORS}
    passed = [*call.node.args, *(k.value for k in call.node.keywords)]
    words |= {n.id for n in passed if isinstance(n, ast.Name)} & {POSITIONS, TENSORS}
    if call.unpacks:
        words |= {"**"}
    if not words:
        return False
    if call.callees:
        return True
    # A helper method of the class itself, or a method of a part, is no forward.
    name = call.text.split(".")
    return len(name) == 2 and index.find_method(ref, name[1]) is None


class Taking(Enum):
    """What becomes of further keywords that are handed to a forward."""

    TAKES = "takes"
    REFUSES = "refuses"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a forward takes further keywords, and the lines that show it."""

    taking: Taking
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""


def takes_further(index: ModelIndex, callee: Callee) -> Answer:
    """Say whether a forward takes further keywords, followed to where they end."""
    return index.remember(
        ("takes further", callee.ref, callee.forward.owner),
        lambda: _takes_further(index, callee),
        on_cycle=Answer(Taking.TAKES),
        home=callee.ref.module,
    )


def _takes_further(index: ModelIndex, callee: Callee) -> Answer:
    # Asked for again, so that the index notes what the answer is read from.
    forward = _forward(index, callee.forward.owner)
    name = forward.signature.collects_keywords
    here = forward.cite()
    if not name:
        return Answer(Taking.REFUSES, (here,), f"{_named(forward)} takes no others")
    if not forward.loads(name):
        return Answer(Taking.TAKES, (here,))
    doubt = ""
    chain: list[Evidence] = [here]
    handed = [
        n
        for n in ast.walk(forward.node)
        if isinstance(n, ast.Call)
        and any(
            k.arg is None and isinstance(k.value, ast.Name) and k.value.id == name
            for k in n.keywords
        )
    ]
    if _escapes(forward.node, name):
        doubt = f"{_named(forward)} puts **{name} to a use that is not followed"
    known = {id(call.node): call for call in _calls_of(index, callee)}
    for node in handed:
        call = known.get(id(node))
        if call is None or not call.callees:
            doubt = doubt or (
                f"what {_named(forward)} calls as {ast.unparse(node.func)} with "
                f"**{name} is not known"
            )
            continue
        chain.append(call.cite(f"{_named(forward)} hands **{name} to {call.text}"))
        for inner in call.callees:
            answer = takes_further(index, inner)
            if answer.taking is Taking.REFUSES:
                return Answer(Taking.REFUSES, (*chain, *answer.evidence), answer.reason)
            doubt = doubt or answer.reason
    if doubt:
        return Answer(Taking.UNKNOWN, tuple(chain), doubt)
    return Answer(Taking.TAKES, tuple(chain))


def _calls_of(index: ModelIndex, callee: Callee) -> tuple[InnerCall, ...]:
    own = forward_of(index, callee.ref)
    if own is not None and own.owner == callee.forward.owner:
        return all_calls(index, callee.ref)
    # The forward of a base, reached by super(): what it calls depends on the class.
    return ()


def _named(forward: Forward) -> str:
    return forward.signature.qualified


def _escapes(node: ast.AST, name: str) -> bool:
    """Say whether a dict of keywords is used other than by unpacking or looking in."""
    for child in ast.walk(node):
        match child:
            case ast.Call(_, arguments, keywords):
                values = [*arguments, *(k.value for k in keywords if k.arg)]
                if any(isinstance(v, ast.Name) and v.id == name for v in values):
                    return True
            case ast.Assign(_, ast.Name(other)) | ast.Return(ast.Name(other)):
                if other == name:
                    return True
            case ast.Dict(keys, values):
                merged = [v for k, v in zip(keys, values, strict=True) if k is None]
                if any(isinstance(v, ast.Name) and v.id == name for v in merged):
                    return True
    return False


def _uses(node: ast.AST, name: str) -> bool:
    """Say whether a name is read other than to look whether it is ``None``."""
    match node:
        case ast.Name(found, ast.Load()):
            return found == name
        case ast.Compare(left, _, comparators):
            sides = (left, *comparators)
            return any(_uses(s, name) for s in sides if not isinstance(s, ast.Name))
        case ast.If(test, body, orelse):
            return _uses_in_test(test, name) or any(
                _uses(statement, name) for statement in (*body, *orelse)
            )
        case ast.IfExp(test, body_, orelse_):
            return (
                _uses_in_test(test, name) or _uses(body_, name) or _uses(orelse_, name)
            )
        case ast.Assert(test):
            return _uses_in_test(test, name)
    return any(_uses(child, name) for child in ast.iter_child_nodes(node))


def _uses_in_test(test: ast.expr, name: str) -> bool:
    match test:
        case ast.Name():
            return False
        case ast.UnaryOp(ast.Not(), operand):
            return _uses_in_test(operand, name)
        case ast.BoolOp(_, values):
            return any(_uses_in_test(value, name) for value in values)
    return _uses(test, name)
