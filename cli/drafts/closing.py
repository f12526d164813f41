"""What is mended already: own drafts whose findings are gone from the base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.cli.drafts.ground import Ground
from vlmend.cli.drafts.history import is_gone, reasons
from vlmend.cli.drafts.report import Outcome, Report
from vlmend.cli.drafts.text import Texts
from vlmend.cli.forge.pulls import Draft, PullRequests
from vlmend.codemods.codemod import Status

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged


@dataclass(frozen=True)
class Closer:
    """Closes drafts of one fork, saying which commit did it.

    Attributes:
        ground: the fork.
        judged: its base, judged.
        pulls: the fork's pull requests.
        texts: how it is told.
        report: what was done.
        dry_run: only say it.
    """

    ground: Ground
    judged: Judged
    pulls: PullRequests
    texts: Texts
    report: Report
    dry_run: bool = False

    def close_fixed(self, own: Sequence[Draft]) -> int:
        """Close own drafts whose findings are gone from the base; return how many."""
        ran = {codemod.id for codemod in self.judged.codemods}
        return sum(
            self._settle(draft)
            for draft in own
            if draft.state == "open"
            and draft.base == self.ground.base
            and draft.head.split("/")[1] in ran
            and is_gone(draft.fingerprints, self.judged.result)
        )

    def _settle(self, draft: Draft) -> int:
        why = self._not_mended(draft)
        if why:
            self.report.add(Outcome.LEFT_ALONE, draft.head, draft.url, why)
            return 0
        found = reasons(self.ground, draft, [draft.head.split("/")[1]])
        told = "; ".join(reason.text for reason in found)
        if self.dry_run:
            self.report.add(Outcome.WOULD, draft.head, draft.url, f"close: {told}")
            return 0
        comment = self.texts.closing([reason.markdown for reason in found])
        self.pulls.close(draft.number, comment)
        self.report.add(Outcome.CLOSED, draft.head, draft.url, told)
        return 1

    def _not_mended(self, draft: Draft) -> str:
        """Return why a finding that is not found is not mended, or nothing."""
        unread = {error.file for error in self.judged.result.errors}
        workspace = self.ground.workspace
        files = workspace.changed(f"{draft.head_sha}~1", draft.head_sha)
        if unread & set(files) or "" in unread:
            return "its file cannot be read on the base"
        unwanted = {
            f.fingerprint
            for f in self.judged.result.findings
            if f.status is Status.SUPPRESSED
        }
        if unwanted & set(draft.fingerprints):
            return "the base asks not to see what it mends; close it if that is meant"
        return ""
