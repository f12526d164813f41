"""What the facts of two runs amount to. Nothing is run and nothing is read here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vlmend.cli.proof.call_rules import judge_calls, say_calls
from vlmend.cli.proof.ruling import (
    Facts,
    Outcome,
    Ruling,
    Scenario,
    Verdict,
    failure,
    stage_of,
)
from vlmend.cli.proof.tensor_rules import judge_tensors, say_tensors
from vlmend.cli.proof.view_rules import judge_views, say_views

__all__ = [
    "ARCHITECTURES",
    "DELEGATION",
    "FORWARD",
    "KNOWN",
    "Outcome",
    "Scenario",
    "Verdict",
    "failure",
    "judge",
    "stage_of",
]

DELEGATION: Final = "delegate-intermediate-tensors"
ARCHITECTURES: Final = "explicit-architectures"
FORWARD: Final = "forward-kwargs"


def judge(codemod: str, class_name: str, scenarios: Sequence[Scenario]) -> Verdict:
    """Return the verdict on one finding.

    Args:
        codemod: id of the codemod whose signature is looked for.
        class_name: the class under proof.
        scenarios: the runs; the first is the one that shows the defect.
    """
    say, judged = _JUDGES[codemod]
    shown = tuple(
        (s.where, say(s.before, class_name), say(s.after, class_name))
        for s in scenarios
    )
    outcome, stage, reason = judged(scenarios, class_name)
    return Verdict(outcome, stage, reason, shown)


_Say = Callable[[Facts, str], str]
_Judge = Callable[[Sequence[Scenario], str], Ruling]
_JUDGES: Final[Mapping[str, tuple[_Say, _Judge]]] = {
    DELEGATION: (say_tensors, judge_tensors),
    ARCHITECTURES: (say_views, judge_views),
    FORWARD: (say_calls, judge_calls),
}
KNOWN: Final = frozenset(_JUDGES)
"""The codemods whose findings can be proven at run time."""
