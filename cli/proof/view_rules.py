"""A: whether a narrowed view of the configuration carries a name that stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

NO_NAME: Final = "No model architectures are specified"


def _own_views(facts: Facts, class_name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the views that were made on behalf of a class, by it or below it."""
    for view in facts.get("views") or ():
        functions = [str(frame["function"]) for frame in view["frames"]]
        qualified = any("." in name for name in functions)
        if not qualified or any(n.startswith(f"{class_name}.") for n in functions):
            yield view


def _names(view: Mapping[str, Any]) -> list[str]:
    return list(view.get("after") or ())


def say_views(facts: Facts, class_name: str) -> str:
    """Say which views were made, and with which names."""
    views = list(_own_views(facts, class_name))
    parts: list[str] = []
    for view in views:
        frame = view["frames"][0]
        names = ", ".join(_names(view)) or "no name"
        parts.append(f"{frame['file']}:{frame['line']} makes a view with {names}")
    parts.append(say_end(facts))
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


def judge_views(scenarios: Sequence[Scenario], class_name: str) -> Ruling:
    """Rule on the runs of one class, the first of which shows the defect."""
    seen: list[str] = []
    for run in scenarios:
        nameless = [v for v in _own_views(run.before, class_name) if not _names(v)]
        chain = chain_of(run.before)
        if nameless and chain:
            seen.append(f"{run.where}: {chain}")
    if not seen:
        worse = broken(scenarios)
        if worse:
            return worse
        if any(stage_of(run.before) == "done" for run in scenarios):
            return (
                Outcome.INCONCLUSIVE,
                "done",
                "no view without a name leads to a failure here: nothing to prove",
            )
        return unrelated("before the change", scenarios[0].before)
    for run in scenarios:
        fault = _fault_of_views(run.after, class_name)
        if fault:
            return (
                Outcome.REFUTED,
                stage_of(run.after),
                f"with the change, {run.where}: {fault}",
            )
    worse = broken(scenarios)
    if worse:
        return worse
    for run in scenarios:
        views = list(_own_views(run.after, class_name))
        if not views:
            return unrelated("after the change", run.after)
        if stage_of(run.after) != "done":
            if is_ours(run.after):
                return _after_the_view(run, views, seen)
            return unrelated("after the change", run.after)
    return Outcome.PROVEN, "done", f"without the change {'; '.join(seen)}; gone with it"


def _after_the_view(
    run: Scenario, views: Sequence[Mapping[str, Any]], seen: Sequence[str]
) -> Ruling:
    """Rule on a build that dies after every view was made with its name."""
    if any(view.get("error") for view in views):
        return unrelated("after the change", run.after)
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
