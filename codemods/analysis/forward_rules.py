"""The five ways in which a forward breaks its contract, each judged for one class.

A rule yields a :class:`Breach`, or nothing. A breach that can be mended says how in
plain words (:class:`Repair`); the codemod turns those into edits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from vlmend.codemods.analysis.forwards import (
    EMBEDS,
    TENSORS,
    Callee,
    Forward,
    InnerCall,
    Taking,
    inner_calls,
    sharing,
    takes_further,
)
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.reach import (
    further_names,
    omissions,
    reaching,
    refusals,
    roles,
)
from vlmend.codemods.analysis.runner_calls import Role, RunnerCall
from vlmend.codemods.analysis.signatures import Bound, Kind
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Evidence, Status


@dataclass(frozen=True, slots=True)
class PassOn:
    """One inner call and what it has to pass: ``name=name``, or ``**unpack``."""

    call: InnerCall
    names: tuple[str, ...] = ()
    unpack: str = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """What would mend a breach.

    Attributes:
        parameters: parameters that the forward gets.
        defaults: parameters that get ``= None``.
        collect: the forward gets ``**kwargs``.
        pass_on: what inner calls get.
    """

    parameters: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    collect: bool = False
    pass_on: tuple[PassOn, ...] = ()


@dataclass(frozen=True, slots=True)
class Breach:
    """One rule that a class breaks (or is suspected to break).

    ``shape`` names the rule in stable words; ``line`` is where the defect is.
    """

    shape: str
    status: Status
    message: str
    line: int
    evidence: tuple[Evidence, ...]
    repair: Repair = field(default=Repair())


def breaches(index: ModelIndex, ref: ClassRef, forward: Forward) -> Iterator[Breach]:
    """Judge one class that is served by target runners."""
    for rule in (
        refuses,
        requires,
        drops,
        does_not_take,
        unpacks_nothing,
        does_not_collect,
        swallows,
    ):
        yield from rule(index, ref, forward)


# -- (c) -------------------------------------------------------------------------------


def requires(index: ModelIndex, ref: ClassRef, forward: Forward) -> Iterator[Breach]:
    """Judge a forward whose ``intermediate_tensors`` have no default.

    Upstream gave such classes the default one by one (#50777 for Gemma3Model).
    """
    if not forward.signature.requires(TENSORS):
        return
    line = _parameter_line(forward, TENSORS)
    shape = f"requires {TENSORS}"
    name = forward.signature.qualified
    here = forward.cite()
    proofs = list(omissions(index, ref, forward, TENSORS))
    if roles(index, ref) == frozenset({Role.DRAFT}):
        # Which draft runner loads which draft is not told by the registry: only what
        # holds for every draft runner is a proof.
        draft_calls = [c for c in reaching(index, ref) if c.names]
        if any(c.keywords.get(TENSORS) is not None for c in draft_calls):
            proofs = []
    following = _without_default_behind(forward, TENSORS)
    if following - {EMBEDS}:
        listed = " and ".join(sorted(following))
        message = (
            f"{name} requires {TENSORS}. Missing proof: a default there would need one "
            f"for {listed}, which every caller may rely on."
        )
        yield Breach(shape, Status.UNPROVEN, message, line, (here,))
        return
    defaults = tuple(
        p.name
        for p in forward.signature.parameters
        if p.name == TENSORS or p.name in following
    )
    repair = Repair(defaults=defaults)
    if proofs:
        proof = proofs[0]
        message = (
            f"{name} requires {TENSORS}, which a {proof.call.role} runner leaves out "
            f"({proof.call.place.file}:{proof.call.place.line}): {proof.error}."
        )
        chain = (here, *proof.cite())
        yield Breach(shape, Status.FIXABLE, message, line, chain, repair)
        return
    calls = [c for c in reaching(index, ref) if c.keywords.get(TENSORS)]
    passed = tuple(_cite_call(c, f"passes {c.text()}") for c in calls[:3])
    why = "every runner that reaches it passes them" if calls else "no runner calls it"
    message = (
        f"{name} requires {TENSORS}; {why}, so only another caller would fail. "
        "Upstream has given such classes the default."
    )
    yield Breach(shape, Status.REVIEW, message, line, (here, *passed), repair)


def _without_default_behind(forward: Forward, name: str) -> set[str]:
    """Return the required positional parameters behind one, which bar a default."""
    signature = forward.signature
    one = signature.parameter(name)
    if one is None or one.kind is Kind.KEYWORD_ONLY:
        return set()
    names = [p.name for p in signature.positional]
    behind = signature.positional[names.index(name) + 1 :]
    return {p.name for p in behind if not p.has_default}


# -- (a) -------------------------------------------------------------------------------


def drops(index: ModelIndex, ref: ClassRef, forward: Forward) -> Iterator[Breach]:
    """Judge a forward that takes the tensors and keeps them from its inner model.

    Upstream: #23815 (GptOss).
    """
    if forward.signature.parameter(TENSORS) is None:
        return
    shape = f"drops {TENSORS}"
    name = forward.signature.qualified
    uses = forward.uses(TENSORS)
    calls = inner_calls(index, ref)
    for call in calls:
        if not _is_plain(forward, call) or call.names(TENSORS):
            continue
        callees = [c for c in call.callees if _would_serve(call, c)]
        lacking = [c for c in callees if not _is_given(call, c)]
        takers = [c for c in lacking if _makes_use(c, TENSORS)]
        if not takers:
            continue
        chain = (
            forward.cite(),
            call.cite(f"{name} calls {call.text} without {TENSORS}"),
            *call.evidence[:_SHOWN],
            *(c.forward.cite() for c in takers[:_SHOWN]),
        )
        refused = _refused_with(call, callees, TENSORS)
        if refused or (len(takers) < len(lacking) and not call.open_choice):
            why = refused or "not every class that it may call makes use of them"
            message = f"{name} keeps {TENSORS} from {call.text}. Missing proof: {why}."
            yield Breach(shape, Status.UNPROVEN, message, call.line, chain)
            return
        message = (
            f"{name} takes {TENSORS} and does not hand them to {call.text}: on "
            "pipeline-parallel ranks after the first the inner model starts from "
            "nothing."
        )
        failure = next((e for c in takers if isinstance(e := call.bind(c), str)), "")
        if failure:
            message = (
                f"{name} takes {TENSORS} and does not hand them to {call.text}, which "
                f"requires them: {failure}."
            )
        status = Status.FIXABLE
        if uses:
            # Another branch hands them on, or they are used in another way.
            status = Status.REVIEW
        repair = Repair(pass_on=(PassOn(call, (TENSORS,)),))
        yield Breach(shape, status, message, call.line, chain, repair)
        return
    if uses or not index.is_pipeline_parallel(ref):
        return
    if calls and all(_serving(call) for call in calls):
        return  # the inner model makes no use of them, or is given them in a dict
    reason = next((c.reason for c in calls if c.reason), "no inner call could be told")
    message = (
        f"{name} takes {TENSORS} and makes no use of them. Missing proof: what it "
        f"calls ({reason})."
    )
    chain = (forward.cite(), *(c.cite(f"calls {c.text}") for c in calls))
    yield Breach(shape, Status.UNPROVEN, message, forward.line, chain)


# -- (b) -------------------------------------------------------------------------------


def does_not_take(
    index: ModelIndex, ref: ClassRef, forward: Forward
) -> Iterator[Breach]:
    """Judge a forward without a parameter that target runners pass."""
    for name in (TENSORS, EMBEDS):
        if forward.signature.parameter(name) is not None:
            continue
        calls = [
            c
            for c in reaching(index, ref)
            if c.role is Role.TARGET and (key := c.keywords.get(name)) and key.sure
        ]
        if calls:
            yield from _does_not_take(index, ref, forward, name, calls)


def _does_not_take(
    index: ModelIndex,
    ref: ClassRef,
    forward: Forward,
    name: str,
    calls: list[RunnerCall],
) -> Iterator[Breach]:
    collected = forward.signature.collects_keywords
    if collected and (name != TENSORS or forward.loads(collected)):
        return  # it travels in **kwargs, or is a matter of what the model can do
    shape = f"does not take {name}"
    qualified = forward.signature.qualified
    call = calls[0]
    error = forward.signature.bind(call.positional + 1, call.names)
    if name == EMBEDS and _is_served(index, ref, forward):
        return  # runners that pass them may not be given such a model
    passed = _cite_call(
        call,
        f"passes {call.text()}"
        + (f": TypeError: {error}" if isinstance(error, str) else ""),
    )
    chain: list[Evidence] = [forward.cite(), passed]
    for inner in inner_calls(index, ref):
        callees = _serving(inner)
        takers = [
            c for c in callees if _makes_use(c, name) and not _is_given(inner, c, name)
        ]
        if not takers or not _is_plain(forward, inner):
            continue
        chain += [
            inner.cite(f"{qualified} calls {inner.text}"),
            *inner.evidence[:_SHOWN],
        ]
        chain += [c.forward.cite() for c in takers[:_SHOWN]]
        refused = _refused_with(inner, callees, name)
        if refused or len(takers) < len(callees):
            why = refused or "not every class that it may call makes use of them"
            message = f"{qualified} does not take {name}. Missing proof: {why}."
            yield Breach(shape, Status.UNPROVEN, message, forward.line, tuple(chain))
            return
        message = (
            f"{qualified} does not take {name}, which target runners pass "
            f"({call.place.file}:{call.place.line}) and {inner.text} takes"
            + (f": {error}." if isinstance(error, str) else ".")
        )
        repair = Repair(parameters=(name,), pass_on=(PassOn(inner, (name,)),))
        yield Breach(shape, Status.FIXABLE, message, forward.line, tuple(chain), repair)
        return
    if isinstance(error, str) and not collected:
        message = (
            f"{qualified} does not take {name}, which target runners pass: {error}. "
            "What would mend it: an inner model that takes them."
        )
        yield Breach(shape, Status.BLOCKED, message, forward.line, tuple(chain))


def _is_served(index: ModelIndex, ref: ClassRef, forward: Forward) -> bool:
    """Say whether some target runner's call binds to the forward as it is."""
    return any(
        not isinstance(forward.signature.bind(c.positional + 1, c.names), str)
        for c in reaching(index, ref)
        if c.role is Role.TARGET and c.names
    )


def refuses(index: ModelIndex, ref: ClassRef, forward: Forward) -> Iterator[Breach]:
    """Judge a forward that refuses what a target runner passes to every model.

    That is the runner's defect: to collect the name would hide it. Tensors and
    embeddings that a class does not take are other rules'.
    """
    for call, name, error in refusals(index, ref, forward):
        if name in (TENSORS, EMBEDS):
            continue
        where = f"{call.place.file}:{call.place.line}"
        message = (
            f"{forward.signature.qualified} refuses {name}, which a target runner "
            f"always passes ({where}): TypeError: {error}. What would mend it: a "
            f"runner that passes {name} to models that take it, and to no others."
        )
        chain = (forward.cite(), _cite_call(call, f"passes {call.text()}"))
        shape = f"refuses {name}"
        yield Breach(shape, Status.BLOCKED, message, forward.line, chain)
        return


# -- (d) -------------------------------------------------------------------------------


def does_not_collect(
    index: ModelIndex, ref: ClassRef, forward: Forward
) -> Iterator[Breach]:
    """Judge a multimodal forward without ``**kwargs``."""
    if forward.signature.collects_keywords or _unpacks_nothing(index, forward):
        return
    name = forward.signature.qualified
    shape = "no **kwargs"
    repair = Repair(collect=True)
    here = forward.cite()
    if not index.is_multimodal(ref):
        return
    proofs = list(further_names(index, ref, forward))
    if not index.is_multimodal(forward.owner):
        # A text model's forward, inherited: it is not for this rule to widen it.
        if proofs:
            call, what = proofs[0]
            message = (
                f"{ref.name} inherits {name}, which takes no **kwargs, and a target "
                f"runner passes such classes {what}. What would mend it: a forward of "
                "its own."
            )
            chain = (here, _cite_call(call, f"passes {what}"))
            yield Breach(shape, Status.BLOCKED, message, forward.line, chain)
        return
    for call, what in proofs:
        message = (
            f"{name} takes no **kwargs, and a target runner of this tree passes such "
            f"classes {what} ({call.place.file}:{call.place.line})."
        )
        chain = (here, _cite_call(call, f"passes {what}"))
        yield Breach(shape, Status.FIXABLE, message, forward.line, chain, repair)
        return
    message = (
        f"{name} takes no **kwargs, as multimodal classes do; no runner of this tree "
        "passes it further names."
    )
    yield Breach(shape, Status.REVIEW, message, forward.line, (here,), repair)


def unpacks_nothing(
    index: ModelIndex, ref: ClassRef, forward: Forward
) -> Iterator[Breach]:
    """Judge a forward of any kind that unpacks ``**kwargs`` and has none."""
    if forward.signature.collects_keywords:
        return
    line = _unpacks_nothing(index, forward)
    if not line:
        return
    name = forward.signature.qualified
    message = (
        f"{name} unpacks **kwargs and does not collect them: NameError: name 'kwargs' "
        f"is not defined, in {ref.name}."
    )
    said = "**kwargs is unpacked and nothing defines it"
    chain = (forward.cite(), Evidence(forward.source, forward.file, line, said))
    repair = Repair(collect=True)
    yield Breach("no **kwargs", Status.FIXABLE, message, forward.line, chain, repair)


def _unpacks_nothing(index: ModelIndex, forward: Forward) -> int:
    """Return the line of ``**kwargs`` in a forward where nothing binds ``kwargs``."""
    module = index.module(forward.owner.module)
    assert module is not None
    first, last = forward.node.lineno - 1, forward.node.end_lineno
    if not any("kwargs" in line for line in index.lines(module)[first:last]):
        return 0  # nearly always, and far quicker than to go through the tree
    bound = {
        n.id
        for n in ast.walk(forward.node)
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    } | {n.arg for n in ast.walk(forward.node) if isinstance(n, ast.arg)}
    if "kwargs" in bound or "kwargs" in module.bindings:
        return 0
    for node in ast.walk(forward.node):
        match node:
            case ast.keyword(None, ast.Name("kwargs")):
                return node.lineno
    return 0


# -- (e) -------------------------------------------------------------------------------


def swallows(index: ModelIndex, ref: ClassRef, forward: Forward) -> Iterator[Breach]:
    """Judge a forward that collects ``**kwargs`` and does nothing with them."""
    collected = forward.signature.collects_keywords
    if not collected or forward.loads(collected) or _discards(forward, collected):
        return
    shape = "swallows **kwargs"
    name = forward.signature.qualified
    if any(_ends(index, one) for one in sharing(index, forward) if one != ref):
        return  # the same lines run for a class whose inner model refuses them
    for call in inner_calls(index, ref):
        callees = _serving(call)
        if not callees or not _is_plain(forward, call):
            continue
        answers = [takes_further(index, c) for c in callees]
        if any(a.taking is Taking.REFUSES for a in answers):
            continue
        doubts = [a.reason for a in answers if a.taking is Taking.UNKNOWN]
        chain = (
            forward.cite(),
            call.cite(f"{name} calls {call.text} without **{collected}"),
            *call.evidence[:_SHOWN],
            *(line for a in answers[:_SHOWN] for line in a.evidence),
        )
        if doubts:
            continue
        message = (
            f"{name} swallows **{collected}, which {call.text} takes and nothing "
            "behind it refuses."
        )
        repair = Repair(pass_on=(PassOn(call, unpack=collected),))
        yield Breach(shape, Status.REVIEW, message, call.line, chain, repair)
        return


def _ends(index: ModelIndex, ref: ClassRef) -> bool:
    """Say whether further keywords would be refused in this class."""
    return any(
        takes_further(index, callee).taking is Taking.REFUSES
        for call in inner_calls(index, ref)
        for callee in _serving(call)
    )


def swallowed_because(
    index: ModelIndex, ref: ClassRef, forward: Forward
) -> tuple[str, tuple[Evidence, ...]] | None:
    """Say why ``**kwargs`` rightly end in a forward, with the callee's signature."""
    collected = forward.signature.collects_keywords
    if not collected or forward.loads(collected):
        return None
    doubt = ""
    for call in inner_calls(index, ref):
        callees = _serving(call)
        # Where a config decides, the callee named like the wrapper is the one to show.
        callees.sort(key=lambda c: -_common(c.forward.owner.name, ref.name))
        for callee in callees:
            answer = takes_further(index, callee)
            if answer.taking is Taking.REFUSES:
                said = f"**{collected} end here: {call.text} would refuse them"
                chain = (call.cite(said), *call.evidence[:_SHOWN], *answer.evidence)
                choice = ""
                if call.open_choice:
                    choice = f" (of {len(callees)} that the config may choose)"
                return f"**{collected} end in it because {answer.reason}{choice}", chain
            doubt = doubt or answer.reason
    if doubt:
        return f"**{collected} end in it, since {doubt}", (forward.cite(),)
    return f"**{collected} end in it; it calls no other forward", (forward.cite(),)


def _common(one: str, other: str) -> int:
    same = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        same += 1
    return same


# -- words that the rules share ------------------------------------------------------

_SHOWN = 3
"""Lines of one kind that evidence shows; an open choice has a hundred."""


def _serving(call: InnerCall) -> list[Callee]:
    """Return the callees that the call binds to as it stands; others cannot serve."""
    return [c for c in call.callees if isinstance(call.bind(c), Bound)]


def _would_serve(call: InnerCall, callee: Callee) -> bool:
    """Say whether the call binds as it stands, or once it passes the tensors."""
    return any(
        isinstance(bound, Bound)
        for bound in (call.bind(callee), call.bind(callee, TENSORS))
    )


def _is_plain(forward: Forward, call: InnerCall) -> bool:
    """Say whether all that a call passes is written in it, ``**kwargs`` aside."""
    own = forward.signature.collects_keywords
    return call.positional is not None and all(u == own for u in call.unpacks)


def _is_given(call: InnerCall, callee: Callee, name: str = TENSORS) -> bool:
    bound = call.bind(callee)
    return isinstance(bound, Bound) and bound.gives(name)


def _makes_use(callee: Callee, name: str) -> bool:
    forward = callee.forward
    return forward.signature.takes(name) and forward.uses(name)


def _refused_with(call: InnerCall, callees: list[Callee], name: str) -> str:
    """Return the ``TypeError`` that a further keyword would cause, if any."""
    for callee in callees:
        if _is_given(call, callee, name):
            continue
        bound = call.bind(callee, name)
        if isinstance(bound, str):
            return bound
    return ""


def _discards(forward: Forward, name: str) -> bool:
    """Say whether a forward deletes its ``**kwargs``, on purpose."""
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Del)
        for n in ast.walk(forward.node)
    )


def _parameter_line(forward: Forward, name: str) -> int:
    one = forward.signature.parameter(name)
    return one.line if one is not None else forward.line


def _cite_call(call: RunnerCall, said: str) -> Evidence:
    statement = f"{call.place.function} {said}"
    return Evidence(call.source, call.place.file, call.place.line, statement)
