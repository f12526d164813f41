"""Joins the classes that one forward speaks for: the base is fixed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vlmend.codemods.analysis.forward_rules import Breach, PassOn
from vlmend.codemods.analysis.forwards import Forward, inner_calls, sharing
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.signatures import Bound
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Finding, Status

WORST_FIRST = (Status.FIXABLE, Status.BLOCKED, Status.REVIEW, Status.UNPROVEN)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is wrong with one class.

    Attributes:
        ref: the class; after grouping, the one whose forward is at fault.
        forward: the forward that it runs.
        breaches: rules that it breaks, worst first after grouping.
        heirs: further classes that the same fix heals.
    """

    ref: ClassRef
    forward: Forward
    breaches: tuple[Breach, ...]
    heirs: tuple[ClassRef, ...] = ()

    @property
    def owner(self) -> ClassRef:
        """The class that the forward stands in."""
        return self.forward.owner


@dataclass(frozen=True, slots=True)
class Sound:
    """What is said about a class that breaks no rule; plain data."""

    ref: ClassRef
    owner: ClassRef
    finding: Finding


def group_by_forward(
    index: ModelIndex, outcomes: Iterable[Outcome | Sound]
) -> Iterator[Outcome | Sound]:
    """Yield one outcome per class at fault, and one for every class that is not."""
    groups: dict[ClassRef, list[Outcome | Sound]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.owner, []).append(outcome)
    for owner, group in groups.items():
        at_fault = [one for one in group if isinstance(one, Outcome)]
        if at_fault:
            yield _joined(index, owner, at_fault)
        for one in group:
            # A base that is neither registered nor built is told by its heirs' fault.
            if isinstance(one, Sound) and not (at_fault and one.ref == owner):
                yield one


def _joined(index: ModelIndex, owner: ClassRef, group: list[Outcome]) -> Outcome:
    own = next((one for one in group if one.ref == owner), group[0])
    found: dict[str, Breach] = {}
    for one in (own, *group):
        for breach in one.breaches:
            known = found.get(breach.shape)
            if known is None or _rank(breach) < _rank(known):
                found[breach.shape] = breach
    breaches = sorted(
        (_checked(index, own.forward, breach) for breach in found.values()), key=_rank
    )
    heirs = tuple(one.ref for one in group if one.ref != owner)
    return Outcome(owner, own.forward, tuple(breaches), heirs)


def _rank(breach: Breach) -> int:
    return WORST_FIRST.index(breach.status)


def _checked(index: ModelIndex, forward: Forward, breach: Breach) -> Breach:
    """Refuse a repair outside the target, or one that another class cannot take."""
    if breach.status not in (Status.FIXABLE, Status.REVIEW):
        return breach
    owner = forward.owner
    if index.source_kind(owner.module) is not index.roots[0].source:
        message = f"{breach.message} It has to be mended in {owner.name}, outside the "
        return replace(breach, status=Status.BLOCKED, message=f"{message}target.")
    for heir in sharing(index, forward):
        for one in breach.repair.pass_on:
            refusal = _refusal(index, heir, one)
            if refusal:
                why = f" Missing proof: {heir.name} runs it too, and {refusal}."
                return replace(
                    breach, status=Status.UNPROVEN, message=breach.message + why
                )
    return breach


def _refusal(index: ModelIndex, heir: ClassRef, one: PassOn) -> str:
    for call in inner_calls(index, heir):
        if call.line != one.call.line or call.text != one.call.text:
            continue
        for callee in call.callees:
            bound = call.bind(callee)
            if not isinstance(bound, Bound):
                continue
            missing = [n for n in one.names if not bound.gives(n)]
            after = call.bind(callee, *missing)
            if isinstance(after, str):
                return after
            if one.unpack and not callee.forward.signature.collects_keywords:
                return f"{callee.forward.signature.qualified} takes no others"
    return ""
