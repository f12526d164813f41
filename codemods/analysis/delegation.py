"""Where a missing hand-up belongs, and whether it would be right there.

A statement in an ``__init__`` acts on every class that runs it. So the place is found
first (the class whose ``__init__`` builds the language model), and then every class
that runs that ``__init__`` has to be able to take the statement.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vlmend.codemods.analysis.inner_classes import inner_classes
from vlmend.codemods.analysis.interpreter import read_init
from vlmend.codemods.analysis.language_model import language_model
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.placement import last_safe_statement
from vlmend.codemods.analysis.provision import (
    Provision,
    Verdict,
    declared,
    final_writes,
    object_provision,
    provision,
    resolve_member,
)
from vlmend.codemods.analysis.roles import abstract_base, dispatcher
from vlmend.codemods.analysis.trace import Trace, Write
from vlmend.codemods.analysis.values import (
    Built,
    ClassRef,
    Constant,
    Instance,
    Value,
    bare,
    one_of,
    options,
)
from vlmend.codemods.codemod import Evidence, Status


@dataclass(frozen=True, slots=True)
class Plan:
    """A hand-up that is proven for the class whose ``__init__`` gets it.

    Attributes:
        ref: that class.
        attribute: the attribute of ``self`` that holds the language model.
        line: where the language model is built.
        function_line: line of the ``def __init__``.
        after_line: first line of the statement that the new one follows.
        evidence: the chain, without the contract's own lines.
        heirs: further classes that the statement heals.
    """

    ref: ClassRef
    attribute: str
    line: int
    function_line: int
    after_line: int
    evidence: tuple[Evidence, ...]
    heirs: tuple[ClassRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no statement is written for a class.

    ``status`` is ``blocked`` (the reason says what would mend it) or ``unproven`` (the
    reason says which fact is missing).
    """

    ref: ClassRef
    status: Status
    reason: str
    line: int
    evidence: tuple[Evidence, ...]
    heirs: tuple[ClassRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """A class without the attribute, and what could be found out about it."""

    ref: ClassRef
    outcome: Plan | Refusal


def plan_hand_up(index: ModelIndex, ref: ClassRef, hand_up: str) -> Missing:
    """Look for a proven hand-up for one class, by itself.

    Args:
        ref: a pipeline-parallel class without the attribute.
        hand_up: the attribute's name.
    """
    return Missing(ref, _plan(index, ref, hand_up))


def _plan(index: ModelIndex, ref: ClassRef, hand_up: str) -> Plan | Refusal:
    chain = [_promise(index, ref)]
    trace = read_init(index, ref)
    if trace is None:
        reason = f"no __init__ of {ref.name} can be read."
        return Refusal(ref, Status.UNPROVEN, reason, 0, tuple(chain))
    chain += _init_chain(index, trace)
    absence = provision(index, ref, hand_up)
    chain += absence.evidence
    doubts = (*index.mro(ref).doubts, *trace.gaps)
    if absence.verdict is Verdict.UNKNOWN or doubts:
        reason = f"{(absence.reason or doubts[0])}."
        return Refusal(ref, Status.UNPROVEN, reason, 0, tuple(chain))
    inner = language_model(index, ref, trace)
    chain += inner.evidence
    if not inner.attribute:
        return Refusal(ref, Status.UNPROVEN, f"{inner.reason}.", 0, tuple(chain))
    value = one_of(*(write.value for write in inner.writes))
    found = object_provision(index, value, hand_up)
    chain += found.evidence
    write = inner.writes[-1]
    if found.verdict is not Verdict.YES:
        return _inner_lacks(index, ref, value, found, hand_up, write, chain)
    nothing = _may_be_none(index, inner.writes)
    if nothing is not None:
        reason = f"{nothing.statement}, and then has nothing to hand up."
        chain.append(nothing)
        line = _line_in_file(index, ref, write)
        return Refusal(ref, Status.UNPROVEN, reason, line, tuple(chain))
    return _place(index, ref, inner.attribute, inner.writes, chain)


def _promise(index: ModelIndex, ref: ClassRef) -> Evidence:
    line = index.class_of(ref).line
    said = f"{ref.name} has SupportsPP among its bases"
    return Evidence(index.source_kind(ref.module), index.file_of(ref), line, said)


def _init_chain(index: ModelIndex, trace: Trace) -> Iterator[Evidence]:
    """Cite each ``__init__`` that runs, in order."""
    for step in trace.steps:
        if step.function == "__init__":
            source = index.source_kind(step.owner.module)
            said = f"{step.owner.name}.__init__ runs"
            yield Evidence(source, step.file, step.line, said)


def _inner_lacks(
    index: ModelIndex,
    ref: ClassRef,
    value: Value,
    found: Provision,
    hand_up: str,
    write: Write,
    chain: list[Evidence],
) -> Refusal:
    line = _line_in_file(index, ref, write)
    if found.verdict is Verdict.UNKNOWN:
        reason = f"whether self.{write.attribute} has it ({found.reason})."
        return Refusal(ref, Status.UNPROVEN, reason, line, tuple(chain))
    remedy = (
        f"No rewrite of {ref.name} mends this, because {found.reason}: handing it up "
        "would fail at start-up even without pipeline parallelism. What would mend it: "
        f"set {hand_up} in the inner model first."
    )
    for inner in _classes(index, value):
        near = _misspelled(index, inner, hand_up)
        if near is not None:
            chain.append(near)
            remedy += f" ({near.statement}.)"
    return Refusal(ref, Status.BLOCKED, remedy, line, tuple(chain))


def _may_be_none(index: ModelIndex, writes: Iterable[Write]) -> Evidence | None:
    """Find a statement that may leave ``None`` where the inner model should be."""
    for write in writes:
        for option in map(bare, options(write.value)):
            if isinstance(option, Constant) and option.value is None:
                said = f"self.{write.attribute} may be None"
                return _cite(index, write, said)
    return None


def _classes(index: ModelIndex, value: Value) -> Iterator[ClassRef]:
    for option in options(resolve_member(index, value)):
        if isinstance(option, Instance | Built):
            found = inner_classes(index, option)
            if found.how != "any":
                yield from found.refs


def _misspelled(index: ModelIndex, ref: ClassRef, hand_up: str) -> Evidence | None:
    """Find an attribute of the inner model that is nearly named like the right one."""
    trace = read_init(index, ref)
    for write in trace.writes if trace else ():
        if write.attribute == hand_up:
            return None
        if difflib.SequenceMatcher(None, write.attribute, hand_up).ratio() > 0.8:
            said = f"{ref.name} sets {write.attribute}, which looks like a misspelling"
            return _cite(index, write, said)
    return None


def _place(
    index: ModelIndex,
    ref: ClassRef,
    attribute: str,
    writes: tuple[Write, ...],
    chain: list[Evidence],
) -> Plan | Refusal:
    """Find the ``__init__`` and the statement that the hand-up follows."""
    line = _line_in_file(index, ref, writes[-1])
    owner = writes[-1].init
    if owner is None:
        reason = f"which __init__ self.{attribute} is set by."
        return Refusal(ref, Status.UNPROVEN, reason, line, tuple(chain))
    if index.source_kind(owner.module) is not index.roots[0].source:
        reason = f"{owner.name} lies outside the target and has to be mended there."
        return Refusal(ref, Status.BLOCKED, reason, line, tuple(chain))
    place = last_safe_statement(index, owner, writes)
    if isinstance(place, str):
        return Refusal(ref, Status.UNPROVEN, f"{place}.", line, tuple(chain))
    function_line, after_line = place
    line = _line_in_file(index, owner, writes[-1])
    return Plan(owner, attribute, line, function_line, after_line, tuple(chain))


def _line_in_file(index: ModelIndex, ref: ClassRef, write: Write) -> int:
    """Return a write's line, or the class's where the write is in another file."""
    if write.site.file == index.file_of(ref):
        return write.site.line
    return index.class_of(ref).line


def group_by_place(
    index: ModelIndex, missing: Iterable[Missing], hand_up: str
) -> Iterator[Plan | Refusal]:
    """Join the classes that one statement heals, and refuse what it would harm.

    Yields one plan for every place and one refusal for every class without a plan.
    """
    plans: dict[tuple[ClassRef, str], list[Missing]] = {}
    for one in missing:
        if isinstance(one.outcome, Plan):
            key = (one.outcome.ref, one.outcome.attribute)
            plans.setdefault(key, []).append(one)
        else:
            yield one.outcome
    for (owner, attribute), group in plans.items():
        harmed = _harmed(index, owner, attribute, hand_up)
        if harmed is not None:
            for one in group:
                assert isinstance(one.outcome, Plan)
                yield _refuse(one.ref, one.outcome, harmed)
            continue
        own = next((one for one in group if one.ref == owner), group[0])
        assert isinstance(own.outcome, Plan)
        heirs = tuple(one.ref for one in group if one.ref != owner)
        yield replace(own.outcome, heirs=heirs)


def _refuse(ref: ClassRef, plan: Plan, harmed: Evidence) -> Refusal:
    reason = (
        f"the statement belongs in {plan.ref.name}.__init__, but {harmed.statement}."
    )
    chain = (*plan.evidence, harmed)
    return Refusal(ref, Status.UNPROVEN, reason, plan.line, chain)


def _harmed(
    index: ModelIndex, owner: ClassRef, attribute: str, hand_up: str
) -> Evidence | None:
    """Find a class that runs ``owner.__init__`` and could not take the statement."""
    for heir in index.heirs(owner):
        trace = read_init(index, heir)
        if trace is None or abstract_base(index, heir) or dispatcher(index, heir):
            continue
        if not any(s.owner == owner and s.function == "__init__" for s in trace.steps):
            continue
        own = declared(index, heir, hand_up)
        if own is not None:
            said = f"{heir.name} runs it too and has a {hand_up} of its own"
            return replace(own.evidence[0], statement=said)
        writes = final_writes(trace, attribute)
        if not writes:
            continue
        nothing = _may_be_none(index, writes)
        if nothing is not None:
            said = f"{heir.name} runs it too and {nothing.statement} there"
            return replace(nothing, statement=said)
        value = one_of(*(write.value for write in writes))
        found = object_provision(index, value, hand_up)
        if found.verdict is not Verdict.YES:
            said = f"{heir.name} runs it too and {found.reason}"
            return _cite(index, writes[-1], said)
    return None


def _cite(index: ModelIndex, write: Write, statement: str) -> Evidence:
    site = write.site
    return Evidence(index.source_kind(site.module), site.file, site.line, statement)
