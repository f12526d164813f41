"""What the facts of two runs amount to. Nothing is run and nothing is read here.

PROVEN only if *before* shows the defect's own signature and *after*, built from the
same configuration, does not. REFUTED if *after* still shows it, or breaks what worked
before. Everything else is INCONCLUSIVE, with the stage and the reason: an unrelated
crash never counts as "before".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

Facts = Mapping[str, Any]

DELEGATION: Final = "delegate-intermediate-tensors"
ARCHITECTURES: Final = "explicit-architectures"
FORWARD: Final = "forward-kwargs"

ATTRIBUTE: Final = "make_empty_intermediate_tensors"
NO_NAME: Final = "No model architectures are specified"
_STAGES: Final = (
    "import",
    "config",
    "model config",
    "engine config",
    "build",
    "call",
    "done",
)


class Outcome(StrEnum):
    """What a proof has come to."""

    PROVEN = "PROVEN"
    REFUTED = "REFUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Scenario:
    """One run of a class before and after: as which rank of how many."""

    size: int
    rank: int
    before: Facts
    after: Facts

    @property
    def where(self) -> str:
        """Name the pretended rank."""
        return f"PP size {self.size}, rank {self.rank}"


@dataclass(frozen=True)
class Verdict:
    """The outcome for one finding.

    Attributes:
        outcome: see :class:`Outcome`.
        stage: how far the run came that decided it.
        reason: one sentence.
        shown: what each run showed, as (where, before, after) in words.
    """

    outcome: Outcome
    stage: str
    reason: str
    shown: tuple[tuple[str, str, str], ...] = field(default=())


def judge(
    codemod: str, class_name: str, scenarios: Sequence[Scenario], site: str = ""
) -> Verdict:
    """Return the verdict on one finding.

    Args:
        codemod: id of the codemod whose signature is looked for.
        class_name: the class under proof.
        scenarios: the runs; the first is the one that shows the defect.
        site: the file that the finding stands in.
    """
    say, judged = _JUDGES[codemod]
    shown = tuple(
        (s.where, say(s.before, class_name), say(s.after, class_name))
        for s in scenarios
    )
    del site
    outcome, stage, reason = judged(scenarios, class_name)
    return Verdict(outcome, stage, reason, shown)


_Ruling = tuple[Outcome, str, str]


def failure(facts: Facts) -> str:
    """Return a run's error in one line, or nothing."""
    error = facts.get("error")
    if not error:
        return ""
    message = str(error.get("message", ""))
    # Pydantic wraps what a validator raised.
    for start in ("Value error, ", "Assertion failed, "):
        if start in message:
            message = message.partition(start)[2].partition(" [type=")[0]
            return f"{'ValueError' if start[0] == 'V' else 'AssertionError'}: {message}"
    return f"{error.get('type')}: {message}".rstrip(": ")


def stage_of(facts: Facts) -> str:
    """Return the stage that a run ended in."""
    return str(facts.get("stage", "import"))


def _unrelated(which: str, facts: Facts) -> _Ruling:
    return (
        Outcome.INCONCLUSIVE,
        stage_of(facts),
        f"{which}, the run ended in an unrelated way: {failure(facts) or 'no answer'}",
    )


def _broken(scenarios: Sequence[Scenario]) -> _Ruling | None:
    """Refute a change after which a run that came to its end no longer does."""
    for run in scenarios:
        reached = _STAGES.index(stage_of(run.before))
        if _is_ours(run.after) and _STAGES.index(stage_of(run.after)) < reached:
            reason = (
                f"with the change, {run.where} ends earlier than without it:"
                f" {failure(run.after)}"
            )
            return Outcome.REFUTED, stage_of(run.after), reason
    return None


def _is_ours(facts: Facts) -> bool:
    """Say whether a run ended by the code's own fault, not by a limit of the proof."""
    kind = (facts.get("error") or {}).get("type")
    return kind not in (None, "Timeout", "Killed", "MemoryError", "OutOfMemoryError")


# --- D: the tensors that a rank after the first begins with ---------------------------


def _tensors(facts: Facts) -> Mapping[str, Any] | None:
    answer = facts.get("tensors") or {}
    shapes = answer.get("shapes")
    return shapes if isinstance(shapes, Mapping) and shapes else None


def _say_tensors(facts: Facts, class_name: str) -> str:
    del class_name
    shapes = _tensors(facts)
    if shapes:
        listed = ", ".join(f"{key} {shape}" for key, shape in shapes.items())
        return f"`IntermediateTensors` with {listed}"
    if "tensors" in facts:
        kind = facts["tensors"].get("type")
        return "`None`" if kind == "NoneType" else f"a `{kind}` without tensors"
    return _say_end(facts)


def _say_end(facts: Facts) -> str:
    error = failure(facts)
    if error:
        return f"`{error}` in the stage {stage_of(facts)}"
    return "builds" if stage_of(facts) == "done" else "no answer"


def _lacks_tensors(facts: Facts) -> bool:
    """D's own signature: the call answers nothing, or is not there to be made."""
    if "tensors" in facts:
        return _tensors(facts) is None
    message = failure(facts)
    return stage_of(facts) == "call" and ATTRIBUTE in message and "Attribute" in message


def _judge_tensors(scenarios: Sequence[Scenario], class_name: str) -> _Ruling:
    del class_name
    main = scenarios[0]
    broken = _broken(scenarios)
    if broken:
        return broken
    if not _lacks_tensors(main.before):
        if _tensors(main.before):
            return (
                Outcome.INCONCLUSIVE,
                stage_of(main.before),
                "the call returns tensors before the change too: nothing to prove",
            )
        return _unrelated("before the change", main.before)
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
            f"with the change, {ATTRIBUTE} still gives {_say_tensors(main.after, '')}",
        )
    if _is_ours(main.after):
        return (
            Outcome.REFUTED,
            stage_of(main.after),
            f"with the change, the call fails: {failure(main.after)}",
        )
    return _unrelated("after the change", main.after)


# --- A: the name that a narrowed view carries -----------------------------------------


def _own_views(facts: Facts, class_name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the views that were made on behalf of a class, by it or below it."""
    for view in facts.get("views") or ():
        functions = [str(frame["function"]) for frame in view["frames"]]
        qualified = any("." in name for name in functions)
        if not qualified or any(n.startswith(f"{class_name}.") for n in functions):
            yield view


def _names(view: Mapping[str, Any]) -> list[str]:
    return list(view.get("after") or ())


def _say_views(facts: Facts, class_name: str) -> str:
    views = list(_own_views(facts, class_name))
    parts: list[str] = []
    for view in views:
        frame = view["frames"][0]
        names = ", ".join(_names(view)) or "no name"
        parts.append(f"{frame['file']}:{frame['line']} makes a view with {names}")
    parts.append(_say_end(facts))
    return "; ".join(parts)


def chain_of(facts: Facts) -> str:
    """Return which of the failures of a nameless view a run ended in, or nothing."""
    error = failure(facts)
    frames = [f["function"] for f in (facts.get("error") or {}).get("frames", ())]
    if NO_NAME in error:
        return NO_NAME
    if error.startswith("IndexError") and any(
        str(f).endswith("_get_transformers_backend_cls") for f in frames
    ):
        return "IndexError from the empty list of architectures"
    return ""


def _judge_views(scenarios: Sequence[Scenario], class_name: str) -> _Ruling:
    seen: list[str] = []
    for run in scenarios:
        nameless = [v for v in _own_views(run.before, class_name) if not _names(v)]
        chain = chain_of(run.before)
        if nameless and chain:
            seen.append(f"{run.where}: {chain}")
    if not seen:
        broken = _broken(scenarios)
        if broken:
            return broken
        if any(stage_of(run.before) == "done" for run in scenarios):
            return (
                Outcome.INCONCLUSIVE,
                "done",
                "no view without a name leads to a failure here: nothing to prove",
            )
        return _unrelated("before the change", scenarios[0].before)
    for run in scenarios:
        fault = _fault_of_views(run.after, class_name)
        if fault:
            return (
                Outcome.REFUTED,
                stage_of(run.after),
                f"with the change, {run.where}: {fault}",
            )
    broken = _broken(scenarios)
    if broken:
        return broken
    for run in scenarios:
        views = list(_own_views(run.after, class_name))
        if not views:
            return _unrelated("after the change", run.after)
        if stage_of(run.after) != "done":
            if _is_ours(run.after):
                return _after_the_view(run, views, seen)
            return _unrelated("after the change", run.after)
    return Outcome.PROVEN, "done", f"without the change {'; '.join(seen)}; gone with it"


def _after_the_view(
    run: Scenario, views: Sequence[Mapping[str, Any]], seen: Sequence[str]
) -> _Ruling:
    """Rule on a build that dies after every view was made with its name."""
    if any(view.get("error") for view in views):
        return _unrelated("after the change", run.after)
    reason = (
        f"without the change {'; '.join(seen)}; with it the view has its name, but the"
        f" build then ends in an unrelated way: {failure(run.after)}"
    )
    return Outcome.INCONCLUSIVE, stage_of(run.after), reason


def _fault_of_views(facts: Facts, class_name: str) -> str:
    """Say what is still, or newly, wrong with the views of a run, or nothing."""
    if chain_of(facts):
        return f"still {chain_of(facts)}"
    for view in _own_views(facts, class_name):
        names = _names(view)
        if not names:
            return "a view still has no name"
        if not view.get("registered", names):
            return f"the view names {', '.join(names)}, which nothing registers"
        kin = view.get("kin") or {}
        if "stranger" in kin:
            return (
                f"the view names {names[0]}, but nothing that was built from it"
                f" descends from {kin['stranger']}"
            )
        if "error" in kin:
            return str(kin["error"])
        error = str(view.get("error", ""))
        if "Pipeline parallelism is not supported" in failure(facts) and error:
            return f"{names[0]} is a class without pipeline parallelism"
    return ""


# --- K: what a runner's call meets ----------------------------------------------------


def _say_calls(facts: Facts, class_name: str) -> str:
    del class_name
    calls = facts.get("calls")
    if calls is None:
        return _say_end(facts)
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


def _judge_calls(scenarios: Sequence[Scenario], class_name: str) -> _Ruling:
    del class_name
    main = scenarios[0]
    if "calls" not in main.before:
        return _unrelated("before the change", main.before)
    if "calls" not in main.after:
        return _broken(scenarios) or _unrelated("after the change", main.after)
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


_Say = Callable[[Facts, str], str]
_Judge = Callable[[Sequence[Scenario], str], _Ruling]
_JUDGES: Final[Mapping[str, tuple[_Say, _Judge]]] = {
    DELEGATION: (_say_tensors, _judge_tensors),
    ARCHITECTURES: (_say_views, _judge_views),
    FORWARD: (_say_calls, _judge_calls),
}
KNOWN: Final = frozenset(_JUDGES)
"""The codemods whose findings can be proven at run time."""
