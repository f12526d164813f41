"""What a person has said no to: it is not brought back unasked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vlmend.cli.drafts.report import Outcome, Report
from vlmend.cli.forge.pulls import Draft, PullRequests

if TYPE_CHECKING:
    from vlmend.codemods.codemod import Finding


def not_declined(
    findings: Sequence[Finding],
    own: Sequence[Draft],
    pulls: PullRequests,
    report: Report,
) -> list[Finding]:
    """Leave out the findings whose draft a person has closed without a merge.

    Args:
        findings: what is to be mended.
        own: own pull requests, newest first.
        pulls: where they are.
        report: is told what is left out, and who closed it.
    """
    alive = {p for d in own if d.state == "open" for p in d.fingerprints}
    declined: dict[str, Draft] = {}
    wanted = {f.fingerprint for f in findings} - alive
    for draft in own:
        hit = wanted & set(draft.fingerprints) - set(declined)
        if hit and draft.state == "closed" and not draft.merged:
            if pulls.closed_by_us(draft.number):
                wanted -= hit  # newest first: what is older does not count any more
            else:
                declined |= dict.fromkeys(hit, draft)
    for number in dict.fromkeys(d.number for d in declined.values()):
        _tell(next(d for d in own if d.number == number), pulls, report)
    return [f for f in findings if f.fingerprint not in declined]


def _tell(draft: Draft, pulls: PullRequests, report: Report) -> None:
    who = pulls.closer(draft.number) or "somebody"
    when = f" on {draft.closed_at:%Y-%m-%d}" if draft.closed_at else ""
    why = f"closed by {who}{when} without a merge; --reopen brings it back"
    report.add(Outcome.DECLINED, draft.head, draft.url, why)
