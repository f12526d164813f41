"""D: whether a rank after the first is handed the tensors that it begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vlmend.cli.proof.ruling import (
    Facts,
    Outcome,
    Ruling,
    Scenario,
    broken,
    failure,
    is_ours,
    say_end,
    stage_of,
    unrelated,
)

ATTRIBUTE: Final = "make_empty_intermediate_tensors"


def _tensors(facts: Facts) -> Mapping[str, Any] | None:
    answer = facts.get("tensors") or {}
    shapes = answer.get("shapes")
    return shapes if isinstance(shapes, Mapping) and shapes else None


def say_tensors(facts: Facts, class_name: str) -> str:
    """Say what the call for the first tensors gave."""
    del class_name
    shapes = _tensors(facts)
    if shapes:
        listed = ", ".join(f"{key} {shape}" for key, shape in shapes.items())
        return f"`IntermediateTensors` with {listed}"
    if "tensors" in facts:
        kind = facts["tensors"].get("type")
        return "`None`" if kind == "NoneType" else f"a `{kind}` without tensors"
    return say_end(facts)


def _lacks_tensors(facts: Facts) -> bool:
    """D's own signature: the call answers nothing, or is not there to be made."""
    if "tensors" in facts:
        return _tensors(facts) is None
    message = failure(facts)
    return stage_of(facts) == "call" and ATTRIBUTE in message and "Attribute" in message


def judge_tensors(scenarios: Sequence[Scenario], class_name: str) -> Ruling:
    """Rule on the runs of one class, the first of which shows the defect."""
    del class_name
    main = scenarios[0]
    worse = broken(scenarios)
    if worse:
        return worse
    if not _lacks_tensors(main.before):
        if _tensors(main.before):
            return (
                Outcome.INCONCLUSIVE,
                stage_of(main.before),
                "the call returns tensors before the change too: nothing to prove",
            )
        return unrelated("before the change", main.before)
    if _tensors(main.after):
        return (
            Outcome.PROVEN,
            "call",
            f"{ATTRIBUTE} returns tensors with the change and nothing without it",
        )
    if _lacks_tensors(main.after):
        return (
            Outcome.REFUTED,
            stage_of(main.after),
            f"with the change, {ATTRIBUTE} still gives {say_tensors(main.after, '')}",
        )
    if is_ours(main.after):
        return (
            Outcome.REFUTED,
            stage_of(main.after),
            f"with the change, the call fails: {failure(main.after)}",
        )
    return unrelated("after the change", main.after)
