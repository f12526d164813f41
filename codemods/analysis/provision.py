"""Does an object of a class have an attribute, and by which line?

Follows hand-ups (``self.x = self.inner.x``) from class to class until a definition is
found, so that a line which only *looks* right is told from one that is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from vlmend.codemods.analysis.guards import covers
from vlmend.codemods.analysis.hidden import hidden_ways
from vlmend.codemods.analysis.inner_classes import inner_classes, text_models
from vlmend.codemods.analysis.interpreter import read_init
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.names import INTERFACES_MODULE
from vlmend.codemods.analysis.roles import dispatcher
from vlmend.codemods.analysis.trace import Trace, Write
from vlmend.codemods.analysis.values import (
    Built,
    Call,
    ClassRef,
    Constant,
    Function,
    Guard,
    Instance,
    LocalFunction,
    Member,
    Method,
    SelfObject,
    Unknown,
    Value,
    bare,
    describe,
    one_of,
    options,
)
from vlmend.codemods.codemod import Evidence


class Verdict(Enum):
    """Whether the attribute is there."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Provision:
    """Whether an object has an attribute, and the lines that show it.

    ``reason`` completes the sentence "the attribute is missing / unknown because ...";
    it is empty where the verdict is ``YES``. ``line`` and ``file`` are where it is set.
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    origin: str = ""
    """``definition``, ``hand-up``, or ``""`` where there is none."""
    stub: bool = False
    """The verdict is ``NO``, but a Protocol's stub method answers to the name."""


def provision(index: ModelIndex, ref: ClassRef, attribute: str) -> Provision:
    """Say whether an object of ``ref`` has ``attribute`` once it is built."""
    return index.remember(
        ("provision", ref, attribute),
        lambda: _provision(index, ref, attribute),
        on_cycle=Provision(Verdict.UNKNOWN, reason=f"{ref.name} contains itself"),
        home=ref.module,
    )


def _provision(index: ModelIndex, ref: ClassRef, attribute: str) -> Provision:
    trace = read_init(index, ref)
    writes = final_writes(trace, attribute) if trace else []
    if writes and covers([write.guards for write in writes]):
        return _written(index, attribute, writes)
    found = declared(index, ref, attribute)
    if found is not None:
        return found
    if writes:
        write = writes[0]
        condition = " and ".join(_guard_text(guard) for guard in write.guards)
        return Provision(
            Verdict.UNKNOWN,
            (evidence_at(index, write, f"sets {attribute} only where {condition}"),),
            f"{ref.name} sets {attribute} only under a condition",
        )
    return _missing(index, ref, attribute, trace)


def _written(index: ModelIndex, attribute: str, writes: Sequence[Write]) -> Provision:
    chain: list[Evidence] = []
    worst = Provision(Verdict.YES, origin="hand-up")
    for write in writes:
        said = f"{write.site.function} sets {attribute} from {describe(write.value)}"
        chain.append(evidence_at(index, write, said))
        found = value_provision(index, write.value)
        chain += found.evidence
        if found.verdict is Verdict.NO or worst.verdict is Verdict.YES:
            worst = found
    origin = "hand-up" if worst.origin != "definition" else "definition"
    return Provision(worst.verdict, tuple(dict.fromkeys(chain)), worst.reason, origin)


def declared(index: ModelIndex, ref: ClassRef, attribute: str) -> Provision | None:
    """Find a class-level definition; the Protocols' own stubs do not count."""
    for owner in index.mro(ref).classes:
        if owner.module == INTERFACES_MODULE:
            continue
        found = index.class_of(owner)
        module = index.module(owner.module)
        assert module is not None
        hollow = ""
        if attribute in found.methods:
            line = found.methods[attribute].line
            body = index.function_node(module, found.methods[attribute]).body
            if all(_does_nothing(node) for node in body):
                continue
            if all(_does_nothing(node) or isinstance(node, ast.Raise) for node in body):
                hollow = f"{owner.name}.{attribute} only raises"
        elif attribute in found.attributes:
            if found.attributes[attribute].annotation_only:
                continue
            line = found.attributes[attribute].line
            if _NOTHING.search(index.lines(module)[line - 1]):
                hollow = f"{owner.name} sets {attribute} to None"
        else:
            continue
        said = f"{owner.name} defines {attribute}"
        here = Evidence(
            index.source_kind(owner.module), index.file_of(owner), line, said
        )
        verdict = Verdict.UNKNOWN if hollow else Verdict.YES
        return Provision(verdict, (here,), hollow, "definition")
    return None


_NOTHING = re.compile(r"=\s*None\s*(#.*)?$")


def _does_nothing(node: ast.stmt) -> bool:
    """Say whether a statement is a docstring, ``...`` or ``pass``."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _missing(
    index: ModelIndex, ref: ClassRef, attribute: str, trace: Trace | None
) -> Provision:
    order = index.mro(ref)
    found = index.class_of(ref)
    said = f"nothing in {ref.name} or its bases sets or defines {attribute}"
    here = Evidence(index.source_kind(ref.module), index.file_of(ref), found.line, said)
    doubt = next(hidden_ways(index, ref, attribute, trace), None)
    if doubt is not None:
        return Provision(Verdict.UNKNOWN, (here,), doubt)
    reason = f"{ref.name} has no {attribute}"
    stub = any(
        attribute in index.class_of(owner).methods
        for owner in order.classes
        if owner.module == INTERFACES_MODULE
    )
    return Provision(Verdict.NO, (here,), reason, stub=stub)


def value_provision(index: ModelIndex, value: Value) -> Provision:
    """Say whether a value that was assigned to an attribute is what it should be.

    Args:
        value: the right side.
    """
    found = [_single(index, v) for v in options(bare(value))]
    # ``None`` stands for "not on this rank": it is never alone where the code works.
    real = [f for f in found if f is not None]
    if not real:
        return Provision(Verdict.UNKNOWN, reason=f"{describe(value)} is not followed")
    evidence = tuple(dict.fromkeys(e for f in real for e in f.evidence))
    for verdict in (Verdict.NO, Verdict.UNKNOWN):
        for one in real:
            if one.verdict is verdict:
                return Provision(verdict, evidence, one.reason, one.origin)
    return Provision(Verdict.YES, evidence, origin=real[0].origin)


def _single(index: ModelIndex, value: Value) -> Provision | None:
    match bare(value):
        case Constant(None) | Member(Constant(None)):
            return None
        case Member(inner, name) if not isinstance(bare(inner), SelfObject):
            return object_provision(index, inner, name)
        case Call(Function(_, name)) | Function(_, name):
            return Provision(Verdict.YES, origin="definition", reason="")
        case Call() | LocalFunction() | Method():
            return Provision(Verdict.YES, origin="definition")
    return Provision(Verdict.UNKNOWN, reason=f"{describe(value)} is not followed")


def object_provision(index: ModelIndex, value: Value, attribute: str) -> Provision:
    """Say whether the object that ``value`` stands for has ``attribute``."""
    found: list[Provision] = []
    for option in map(bare, options(resolve_member(index, value))):
        if isinstance(option, Constant) and option.value is None:
            continue
        if not isinstance(option, Instance | Built):
            reason = f"{describe(option)} is not followed"
            found.append(Provision(Verdict.UNKNOWN, reason=reason))
            continue
        classes = inner_classes(index, option)
        if not classes.refs:
            found.append(
                Provision(Verdict.UNKNOWN, classes.evidence, reason=classes.reason)
            )
            continue
        if classes.how == "any":
            one = index.ask(_any_provision, attribute)
            chain = (*classes.evidence, *one.evidence)
            if classes.default is not None:
                usual = provision(index, classes.default, attribute)
                chain = (*chain, *usual.evidence)
            found.append(replace(one, evidence=chain))
            continue
        for ref in classes.refs:
            one = _of_class(index, ref, attribute)
            found.append(replace(one, evidence=(*classes.evidence, *one.evidence)))
    if not found:
        return Provision(Verdict.UNKNOWN, reason=f"{describe(value)} is not followed")
    evidence = tuple(dict.fromkeys(e for f in found for e in f.evidence))
    sound = [one for one in found if one.verdict is Verdict.YES]
    if sound and _is_open_choice(index, value):
        return Provision(Verdict.YES, evidence, origin=sound[0].origin)
    for verdict in (Verdict.NO, Verdict.UNKNOWN):
        for one in found:
            if one.verdict is verdict:
                return Provision(verdict, evidence, one.reason, one.origin)
    return Provision(Verdict.YES, evidence, origin=found[0].origin)


def _of_class(index: ModelIndex, ref: ClassRef, attribute: str) -> Provision:
    """Say whether calling ``ref`` yields an object with ``attribute``."""
    elsewhere = dispatcher(index, ref)
    if elsewhere is not None:
        reason = f"{ref.name}.__new__ returns an object of another class"
        return Provision(Verdict.UNKNOWN, (elsewhere,), reason)
    return provision(index, ref, attribute)


def _is_open_choice(index: ModelIndex, value: Value) -> bool:
    """Say whether a config decides at run time which text model an object is part of.

    Then the text models that lack the attribute do not count against the wrapper; see
    :func:`_any_provision`.
    """
    value = bare(value)
    if isinstance(value, Member):
        return _is_open_choice(index, value.value)
    return any(
        isinstance(option, Built) and inner_classes(index, option).how == "any"
        for option in options(value)
    )


def _any_provision(index: ModelIndex, attribute: str) -> Provision:
    """Say whether the text models that a config may choose have ``attribute``.

    One that is itself a pipeline-parallel class without it is broken by itself, with
    any wrapper or none, and has a finding of its own; it does not count against a
    wrapper that hands up what every sound text model has.
    """

    def compute() -> Provision:
        refs = text_models(index)
        lacking = [
            ref
            for ref in refs
            if provision(index, ref, attribute).verdict is not Verdict.YES
        ]
        if len(lacking) == len(refs):
            return Provision(Verdict.NO, reason=f"no text model has {attribute}")
        chain = tuple(
            Evidence(
                index.source_kind(ref.module),
                index.file_of(ref),
                index.class_of(ref).line,
                f"{ref.name} has no {attribute} with any wrapper: its own defect",
            )
            for ref in lacking
        )
        return Provision(Verdict.YES, chain, origin="definition")

    return index.remember(
        ("any", attribute),
        compute,
        on_cycle=Provision(Verdict.UNKNOWN, reason="the registry refers to itself"),
    )


def resolve_member(index: ModelIndex, value: Value) -> Value:
    """Follow ``object.attribute`` into the ``__init__`` of the object's class."""
    value = bare(value)
    if not isinstance(value, Member):
        return value
    inner = resolve_member(index, value.value)
    found: list[Value] = []
    for option in map(bare, options(inner)):
        if isinstance(option, Instance | Built):
            classes = inner_classes(index, option).refs
            found += [attribute_value(index, ref, value.name) for ref in classes]
        else:
            found.append(Member(option, value.name))
    return one_of(*found) if found else value


def attribute_value(index: ModelIndex, ref: ClassRef, name: str) -> Value:
    """Say what an attribute of a freshly built object of ``ref`` stands for."""
    nothing: Value = Unknown(f"{ref.name}.{name}")

    def compute() -> Value:
        trace = read_init(index, ref)
        writes = final_writes(trace, name) if trace else []
        values = [resolve_member(index, write.value) for write in writes]
        return one_of(*values) if values else nothing

    key = ("attribute", ref, name)
    return index.remember(key, compute, on_cycle=nothing, home=ref.module)


def final_writes(trace: Trace, attribute: str) -> list[Write]:
    """Return the writes whose value may be left at the end of ``__init__``."""
    found: list[Write] = []
    for write in reversed(trace.writes_to(attribute)):
        found.append(write)
        if covers([w.guards for w in found]):
            break
    return list(reversed(found))


def _guard_text(guard: Guard) -> str:
    return guard.text if guard.positive else f"not ({guard.text})"


def evidence_at(index: ModelIndex, write: Write, statement: str) -> Evidence:
    """Cite the line of a write."""
    site = write.site
    return Evidence(index.source_kind(site.module), site.file, site.line, statement)
