"""Which runner calls can reach a class, and which of them it refuses.

Which models a runner can be given is read from the registry: a class that is registered
for speculative decoding alone is only ever a draft; a causal language model may also
serve as an independent draft model, where the tree has a runner for those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.forwards import Forward, forward_of
from vlmend.codemods.analysis.keyword_sets import Key, More
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.registry import SPECULATIVE_DECODING, TEXT_GENERATION
from vlmend.codemods.analysis.runner_calls import Role, RunnerCall, runner_calls
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Evidence


def roles(index: ModelIndex, ref: ClassRef) -> frozenset[Role]:
    """Return what a registered class can be to a runner; nothing if none loads it."""
    tables = {entry.table for entry in index.entries_by_class.get(ref, ())}
    found: set[Role] = set()
    if tables - {SPECULATIVE_DECODING}:
        found.add(Role.TARGET)
    if SPECULATIVE_DECODING in tables:
        found.add(Role.DRAFT)
    if TEXT_GENERATION in tables and not index.is_multimodal(ref):
        found.add(Role.DRAFT_MODEL)
    forward = forward_of(index, ref)
    if found and forward is not None and only_drafted(index, ref, forward) is not None:
        return frozenset({Role.DRAFT})
    return frozenset(found)


def reaching(index: ModelIndex, ref: ClassRef) -> tuple[RunnerCall, ...]:
    """Return the runner calls that can reach a class, independent drafts first."""
    known = roles(index, ref)
    if not known:
        return ()
    needs = frozenset(_needs(index, ref))
    return index.remember(
        ("reaching", known, needs),
        lambda: _reaching(index, known, needs),
        on_cycle=(),
    )


def _needs(index: ModelIndex, ref: ClassRef) -> Iterator[str]:
    """Yield what a target runner must call on such a model to serve it at all."""
    tables = {entry.table for entry in index.entries_by_class.get(ref, ())}
    if all(any(word in table for word in _POOLED) for table in tables):
        yield "pooler"
    for protocol, method in _POSITIONS.items():
        if index.has_base(ref, index.interface(protocol)):
            yield method


def _reaching(
    index: ModelIndex, known: frozenset[Role], needs: frozenset[str]
) -> tuple[RunnerCall, ...]:
    calls = [
        call
        for call in runner_calls(index)
        if call.role in known and (call.role is not Role.TARGET or needs <= call.asks)
    ]
    order = (Role.DRAFT_MODEL, Role.TARGET, Role.DRAFT)
    return tuple(sorted(calls, key=lambda call: order.index(call.role)))


def _served(calls: Iterable[RunnerCall]) -> frozenset[str]:
    """Return every name that some target runner may pass."""
    return frozenset(
        key.name
        for call in calls
        if call.role is Role.TARGET
        for key in call.keywords.keys
    )


def _all_names(call: RunnerCall) -> Iterator[str]:
    if call.role is Role.DRAFT:
        yield from (key.name for key in call.keywords.keys)


def binding(index: ModelIndex, ref: ClassRef, forward: Forward) -> int:
    """Count the reaching runner calls that bind to the forward as it is."""
    calls = reaching(index, ref)
    # Most classes have the same parameters and are reached by the same calls. Nothing
    # is read in there: the answer is about this class no more than about the others.
    shape = tuple((p.name, p.kind, p.has_default) for p in forward.signature.parameters)
    return index.remember(
        ("binding", tuple(c.place for c in calls), shape),
        lambda: sum(
            not isinstance(forward.signature.bind(c.positional + 1, c.names), str)
            for c in calls
            if c.names or c.positional
        ),
        on_cycle=0,
    )


_POOLED = (
    "EMBEDDING",
    "CROSS_ENCODER",
    "CLASSIFICATION",
    "REWARD",
    "LATE_INTERACTION",
    "POOLING",
)
"""Words in the names of the registry's tables of models that generate nothing."""

_POSITIONS = {
    "SupportsMRoPE": "get_mrope_input_positions",
    "SupportsXDRoPE": "get_xdrope_input_positions",
}
"""Protocols of models whose positions the runner has to ask for (since 0.11)."""


def only_drafted(index: ModelIndex, ref: ClassRef, forward: Forward) -> Evidence | None:
    """Return the signature of a class that no target runner could call, a draft's.

    Some backends register their drafts beside their targets.
    """
    calls = runner_calls(index)
    nothing: frozenset[str] = frozenset()
    served = index.remember(
        ("served names",), lambda: _served(runner_calls(index)), on_cycle=nothing
    )
    alien = {
        p.name
        for p in forward.signature.parameters[1:]
        if not p.has_default
        and p.name not in served
        and forward.signature.requires(p.name)
    }
    if not alien or not any(alien <= set(_all_names(c)) for c in calls):
        return None
    listed = " and ".join(sorted(alien))
    said = f"{ref.name}.forward requires {listed}, which draft runners alone pass"
    return Evidence(forward.source, forward.file, forward.line, said)


@dataclass(frozen=True, slots=True)
class Omission:
    """A runner call that leaves a required parameter out.

    ``error`` is the text of the ``TypeError``; ``condition`` says when the parameter is
    left out, and is empty where it always is.
    """

    call: RunnerCall
    error: str
    condition: str

    def cite(self) -> Iterator[Evidence]:
        """Return the proof: what is passed, what is missing, what Python says."""
        call = self.call
        yield from call.reason
        for place in reversed(call.via):
            said = f"{place.function} calls the helper that calls the model"
            yield Evidence(call.source, place.file, place.line, said)
        when = f" where {self.condition}" if self.condition else ""
        said = (
            f"{call.place.function} passes {call.text()}{when}: TypeError: {self.error}"
        )
        yield Evidence(call.source, call.place.file, call.place.line, said)


def omissions(
    index: ModelIndex, ref: ClassRef, forward: Forward, name: str
) -> Iterator[Omission]:
    """Yield the reaching calls that fail for want of one parameter, and of no other."""
    for call in reaching(index, ref):
        found = _omission(forward, call, name)
        if found is not None:
            yield found


def _omission(forward: Forward, call: RunnerCall, name: str) -> Omission | None:
    signature = forward.signature
    key = call.keywords.get(name)
    if key is not None and key.sure:
        return None
    if key is None and call.keywords.more and not call.names:
        return None  # what it passes is not known at all
    passed = [n for n in call.names if n != name]
    passed += [k.name for k in call.conditional if signature.takes(k.name)]
    passed = [n for n in dict.fromkeys(passed) if n != name]
    positional = call.positional + 1
    if isinstance(signature.bind(positional, [*passed, name]), str):
        return None  # it fails, or is not meant for this class, for another reason
    error = signature.bind(positional, passed)
    if not isinstance(error, str):
        return None
    condition = _negated(key.condition) if key is not None else ""
    return Omission(call, error, condition)


def _negated(condition: str) -> str:
    if condition.startswith("not ") and " and " not in condition:
        return condition.removeprefix("not ")
    return f"not ({condition})"


def refusals(
    index: ModelIndex, ref: ClassRef, forward: Forward
) -> Iterator[tuple[RunnerCall, str, str]]:
    """Yield what target runners always pass and the forward refuses.

    Each with the name and the text of the ``TypeError``. A call that always passes
    encoder inputs serves encoder-decoder models alone.
    """
    if forward.signature.collects_keywords:
        return
    calls = reaching(index, ref)
    if binding(index, ref, forward) == len(calls):
        return  # nearly always; and that is known for all classes of this shape
    for call in calls:
        if call.role is not Role.TARGET or any(
            name.startswith("encoder_") for name in call.names
        ):
            continue
        error = forward.signature.bind(call.positional + 1, call.names)
        for name in call.names:
            if isinstance(error, str) and f"unexpected keyword argument '{name}'" in (
                error
            ):
                yield call, name, error


def further_names(
    index: ModelIndex, ref: ClassRef, forward: Forward
) -> Iterator[tuple[RunnerCall, str]]:
    """Yield what target runners pass to such a class beyond its parameters.

    Only what is known to apply to this class counts: raw multimodal inputs for classes
    that take no others, and token types for cross-encoders.
    """
    for call in reaching(index, ref):
        if call.role is not Role.TARGET:
            continue
        for key in call.keywords.keys:
            if not forward.signature.takes(key.name) and _applies(index, ref, key):
                yield call, f"{key.name} ({key.condition})"
        for more in call.keywords.more:
            if _applies(index, ref, more):
                yield call, f"further names ({more.condition or more.what})"


def _applies(index: ModelIndex, ref: ClassRef, one: Key | More) -> bool:
    if "raw_input_only" in one.condition:
        return _declares(index, ref, "supports_multimodal_raw_input_only")
    if isinstance(one, More):
        # Through 0.10, V0 runners hand every multimodal input to the model itself.
        return "MultiModalKwargs" in one.what and index.is_multimodal(ref)
    if one.name == "token_type_ids":
        return index.has_base(ref, index.interface("SupportsCrossEncoding"))
    return False


def _declares(index: ModelIndex, ref: ClassRef, name: str) -> bool:
    """Say whether a class, the Protocols aside, sets a class attribute to ``True``."""
    from vlmend.codemods.analysis.names import INTERFACES_MODULE

    for owner in index.mro(ref).classes:
        found = index.class_of(owner)
        if owner.module == INTERFACES_MODULE:
            continue
        attribute = found.attributes.get(name)
        if attribute is not None and not attribute.annotation_only:
            module = index.module(owner.module)
            assert module is not None
            lines = index.lines(module)[attribute.line - 1 : attribute.end_line]
            return "True" in "".join(lines)
    return False
