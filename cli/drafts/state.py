"""What is to be done for one change, given what is there: one pure decision."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vlmend.cli.commits import BranchState
from vlmend.cli.drafts.change import Change
from vlmend.cli.forge.pulls import Draft


class Act(StrEnum):
    """What happens to a pull request."""

    CREATE = "create"
    UPDATE = "update"
    REOPEN = "reopen"
    NOTHING = "nothing"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Plan:
    """One decision.

    Attributes:
        act: what happens.
        push: the branch gets a new commit.
        text: title and text are put in place.
        labels: labels that are missing.
        pull: the pull request that it happens to.
        reason: why it is left alone.
    """

    act: Act
    push: bool = False
    text: bool = False
    labels: tuple[str, ...] = ()
    pull: Draft | None = None
    reason: str = ""


def decide(
    change: Change,
    branch: BranchState | None,
    pulls: Sequence[Draft],
    base: str,
    reopenable: Collection[int] = (),
) -> Plan:
    """Return what brings fork and change together; doing it twice changes nothing.

    Args:
        change: what is wanted.
        branch: what the fork's branch holds; None where there is none.
        pulls: own pull requests from that branch, newest first.
        base: the branch that they should go to.
        reopenable: numbers of closed ones that may be opened again.
    """
    current = next((p for p in pulls if p.state == "open"), None)
    if branch is not None and not branch.ours:
        whose = f"{branch.person} has committed to {change.branch}"
        return Plan(Act.LEAVE, pull=current, reason=whose)
    if current is not None and current.base != base:
        reason = f"it goes to {current.base}, not to {base}"
        return Plan(Act.LEAVE, pull=current, reason=reason)
    push = branch is None or _differs(change, branch.change, branch.fingerprints)
    if current is not None:
        # Without our line, a person has rewritten the text: it is theirs now.
        text = bool(current.change) and _differs(
            change, current.change, current.fingerprints
        )
        labels = tuple(n for n in change.labels if n not in current.labels)
        act = Act.UPDATE if push or text or labels else Act.NOTHING
        return Plan(act, push, text, labels, current)
    closed = next((p for p in pulls if p.number in reopenable and not p.merged), None)
    if closed is not None and branch is not None:
        text = _differs(change, closed.change, closed.fingerprints)
        return Plan(Act.REOPEN, push, text, (), closed)
    return Plan(Act.CREATE, push)


def _differs(change: Change, digest: str, fingerprints: Sequence[str]) -> bool:
    return change.digest != digest or set(change.fingerprints) != set(fingerprints)
