"""What all verdicts share: outcomes, runs before and after, and how a run ended.

PROVEN only if *before* shows the defect's own signature and *after*, built from the
same configuration, does not. REFUTED if *after* still shows it, or breaks what worked
before. Everything else is INCONCLUSIVE, with the stage and the reason: an unrelated
crash never counts as "before".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

Facts = Mapping[str, Any]


STAGES: Final = (
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


Ruling = tuple[Outcome, str, str]


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


def unrelated(which: str, facts: Facts) -> Ruling:
    """Rule on a run that ended by something that has nothing to do with the defect."""
    return (
        Outcome.INCONCLUSIVE,
        stage_of(facts),
        f"{which}, the run ended in an unrelated way: {failure(facts) or 'no answer'}",
    )


def broken(scenarios: Sequence[Scenario]) -> Ruling | None:
    """Refute a change after which a run that came to its end no longer does."""
    for run in scenarios:
        reached = STAGES.index(stage_of(run.before))
        if is_ours(run.after) and STAGES.index(stage_of(run.after)) < reached:
            reason = (
                f"with the change, {run.where} ends earlier than without it:"
                f" {failure(run.after)}"
            )
            return Outcome.REFUTED, stage_of(run.after), reason
    return None


def is_ours(facts: Facts) -> bool:
    """Say whether a run ended by the code's own fault, not by a limit of the proof."""
    kind = (facts.get("error") or {}).get("type")
    return kind not in (None, "Timeout", "Killed", "MemoryError", "OutOfMemoryError")


def say_end(facts: Facts) -> str:
    """Say how a run ended."""
    error = failure(facts)
    if error:
        return f"`{error}` in the stage {stage_of(facts)}"
    return "builds" if stage_of(facts) == "done" else "no answer"
