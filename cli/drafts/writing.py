"""The writes of one draft, in an order in which each can be the last one for a while.

A branch without a pull request, a pull request without labels: whatever a run that is
cut off leaves behind, the next one sees it and completes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.cli.commits import (
    NewCommit,
    make_commit,
    push,
    require_sign_off,
    seal_of,
)
from vlmend.cli.drafts.ground import Ground
from vlmend.cli.drafts.report import Outcome, Report
from vlmend.cli.drafts.state import Act, Plan
from vlmend.cli.drafts.text import Subject, Texts
from vlmend.cli.forge.pulls import Draft, PullRequests

if TYPE_CHECKING:
    from vlmend.cli.drafts.wishes import Wishes


@dataclass(frozen=True)
class Writer:
    """Brings a fork to what was planned.

    Attributes:
        ground: the fork.
        pulls: its pull requests.
        texts: how it is told.
        wishes: as whom, and with which hooks.
        report: what was done.
    """

    ground: Ground
    pulls: PullRequests
    texts: Texts
    wishes: Wishes
    report: Report

    def write(self, subject: Subject, plan: Plan, head: str | None) -> None:
        """Commit, push, open or update, label, and say so.

        Args:
            subject: what it is about.
            plan: what is missing.
            head: where its branch in the fork is; None where there is none.
        """
        change = subject.change
        reopened = (
            plan.act is Act.REOPEN
            and plan.pull is not None
            # GitHub opens one again only while its branch is as it was.
            and self.pulls.reopen(plan.pull.number)
        )
        if plan.push:
            commit = self._commit(subject, head)
            push(self.ground.workspace, commit, change.branch, head)
        if plan.act is Act.UPDATE or reopened:
            assert plan.pull is not None
            draft = plan.pull
            if plan.text:
                self._tell(subject, draft)
        else:
            draft = self._create(subject)
        missing = tuple(n for n in change.labels if n not in draft.labels)
        if missing:
            self.pulls.label(draft.number, missing)
        outcome = Outcome.UPDATED if plan.act is Act.UPDATE else Outcome.CREATED
        outcome = Outcome.REOPENED if reopened else outcome
        why = self.texts.title(change)
        if not subject.searched.complete:
            why += "; the duplicate search is incomplete, its result is unknown"
        self.report.add(outcome, change.branch, draft.url, why)

    def label(self, plan: Plan, branch: str) -> None:
        """Add the labels that are missing, where nothing else is."""
        assert plan.pull is not None
        shown = (branch, plan.pull.url)
        if self.wishes.dry_run:
            self.report.add(Outcome.WOULD, *shown, "add its labels")
            return
        self.pulls.label(plan.pull.number, plan.labels)
        self.report.add(Outcome.UPDATED, *shown, "labels")

    def _tell(self, subject: Subject, draft: Draft) -> None:
        title, body = self.texts.title(subject.change), self.texts.body(subject)
        self.pulls.edit(draft.number, title=title, body=body)

    def _create(self, subject: Subject) -> Draft:
        return self.pulls.create(
            self.ground.pair.consent,
            owner=self.ground.pair.owner,
            branch=subject.change.branch,
            base=self.ground.base,
            title=self.texts.title(subject.change),
            body=self.texts.body(subject),
        )

    def _commit(self, subject: Subject, head: str | None) -> str:
        workspace, identity = self.ground.workspace, self.wishes.identity
        assert identity is not None, "asked for before anything is written"
        signer = str(identity) if self.wishes.signoff else None

        files = subject.change.files
        sealed = seal_of(workspace, self.ground.commit, files)
        message = self.texts.commit(subject, sealed, signer)
        wanted = NewCommit(
            self.ground.commit, files, message, identity, self.wishes.signing
        )
        if self.wishes.hooks is None:
            commit = make_commit(workspace, wanted)
        else:
            from vlmend.cli.hooks import Destination, commit_with_hooks

            url = self.ground.forge.server.git_url(self.ground.pair.fork_name)
            going = Destination(url, subject.change.branch, head)
            commit = commit_with_hooks(workspace, wanted, self.wishes.hooks, going)
        if self.wishes.signoff:
            require_sign_off(workspace, commit, identity)
        return commit
