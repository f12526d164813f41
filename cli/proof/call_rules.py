"""K: whether a runner's call binds, and whether what it passes arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlmend.cli.proof.ruling import (
    Facts,
    Outcome,
    Ruling,
    Scenario,
    broken,
    say_end,
    unrelated,
)


def say_calls(facts: Facts, class_name: str) -> str:
    """Say what became of each call."""
    del class_name
    calls = facts.get("calls")
    if calls is None:
        return say_end(facts)
    return "; ".join(_say_call(call) for call in calls)


def _say_call(call: Mapping[str, Any]) -> str:
    keys = ", ".join(call["keywords"])
    trouble = binding_error(call)
    if trouble:
        return f"forward({keys}): `{trouble}`"
    got = arrived(call)
    lost = [key for key in call["keywords"] if key not in got]
    return (
        f"forward({keys}): {'all arrives' if not lost else 'lost: ' + ', '.join(lost)}"
    )


def binding_error(call: Mapping[str, Any]) -> str:
    """Return the TypeError of a call that does not bind, or nothing."""
    error = call.get("error") or {}
    message = str(error.get("message", ""))
    if error.get("type") == "TypeError" and (
        "required positional argument" in message
        or "required keyword-only argument" in message
        or "unexpected keyword argument" in message
    ):
        return f"TypeError: {message}"
    return ""


def arrived(call: Mapping[str, Any]) -> set[str]:
    """Return which arguments a spy was handed."""
    return {v for arrival in call.get("arrived", ()) for v in arrival["values"]}


def _flaws(facts: Facts) -> dict[tuple[str, ...], str]:
    """Return what is wrong with each call: it does not bind, or loses something."""
    found: dict[tuple[str, ...], str] = {}
    for call in facts.get("calls") or ():
        keys = tuple(call["keywords"])
        trouble = binding_error(call)
        if trouble:
            found[keys] = trouble
        elif call.get("arrived"):
            lost = [key for key in call["keywords"] if key not in arrived(call)]
            if lost:
                found[keys] = f"{', '.join(lost)} reaches no inner model"
    return found


def judge_calls(scenarios: Sequence[Scenario], class_name: str) -> Ruling:
    """Rule on the runs of one class, the first of which shows the defect."""
    del class_name
    main = scenarios[0]
    if "calls" not in main.before:
        return unrelated("before the change", main.before)
    if "calls" not in main.after:
        return broken(scenarios) or unrelated("after the change", main.after)
    before, after = _flaws(main.before), _flaws(main.after)
    fresh = {keys: text for keys, text in after.items() if before.get(keys) != text}
    if fresh:
        text = next(iter(fresh.values()))
        return Outcome.REFUTED, "call", f"with the change, a call goes wrong: {text}"
    if not before:
        return Outcome.INCONCLUSIVE, "call", "every call arrives: nothing to prove"
    mended = [text for keys, text in before.items() if keys not in after]
    if not mended:
        text = next(iter(after.values()))
        return Outcome.REFUTED, "call", f"with the change, still {text}"
    return Outcome.PROVEN, "call", f"without the change: {mended[0]}; gone with it"
