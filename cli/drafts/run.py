"""The whole of ``vlmend draft``: from a fork to drafts in it, again and again.

Nothing is remembered between runs. What is there, branches and pull requests, is
looked at anew, and :func:`~vlmend.cli.drafts.state.decide` says what is missing. A run
that was cut off anywhere is completed by the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from vlmend.cli.commits import BranchState, Rejected, look_at_branch
from vlmend.cli.console import note
from vlmend.cli.drafts.around import question_about, surroundings
from vlmend.cli.drafts.change import Change
from vlmend.cli.drafts.closing import Closer
from vlmend.cli.drafts.declined import not_declined
from vlmend.cli.drafts.ground import Ground
from vlmend.cli.drafts.preview import dry_run
from vlmend.cli.drafts.proving import (
    Proven,
    kept_tests,
    remembered,
    with_tests,
)
from vlmend.cli.drafts.report import Outcome, Report
from vlmend.cli.drafts.scopes import group
from vlmend.cli.drafts.shapes import shape_of
from vlmend.cli.drafts.state import Act, decide
from vlmend.cli.drafts.text import Subject, Texts
from vlmend.cli.drafts.wishes import Wishes
from vlmend.cli.drafts.writing import Writer
from vlmend.cli.errors import EXIT_REFUSED, EXIT_TROUBLE, Refused, UserError
from vlmend.cli.forge.calls import LimitReached
from vlmend.cli.forge.duplicates import DuplicateSearch, Searched
from vlmend.cli.forge.pulls import Draft, PullRequests

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged
    from vlmend.codemods.codemod import Finding

_TRIES: Final = 3
"""How often a scope is looked at again when somebody moved its branch meanwhile."""


@dataclass
class DraftRun:
    """One run over one fork.

    Attributes:
        ground: the fork, cloned and fetched.
        judged: its base, judged.
        wishes: what is wanted.
        report: what was done.
    """

    ground: Ground
    judged: Judged
    wishes: Wishes
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        self.texts = Texts(self.wishes.templates)
        self.pulls = PullRequests(self.ground.forge, self.ground.pair.fork)
        self.duplicates = DuplicateSearch(
            self.ground.forge,
            self.ground.pair.upstream,
            self.ground.workspace,
            self.ground.upstream_commit,
            self.ground.pair.owner,
        )
        self.writer = Writer(
            self.ground, self.pulls, self.texts, self.wishes, self.report
        )
        self._left: list[Change] = []

    def run(self, findings: Sequence[Finding]) -> int:
        """Bring the fork's drafts in line with ``findings``; return the exit code."""
        own = self.pulls.own()
        self.close_fixed(own)
        wanted = list(findings)
        if not self.wishes.reopen:
            wanted = not_declined(findings, own, self.pulls, self.report)
        changes = self._changes(wanted, own)
        self._left = list(changes)
        code = 0
        try:
            for change in changes:
                code = max(code, self._one(change, own), key=_worse)
                self._left.remove(change)
        except LimitReached as error:
            self._stop(error)
            return EXIT_REFUSED
        return code

    def close_fixed(self, own: Sequence[Draft]) -> int:
        """Close own drafts whose findings are gone from the base; return how many."""
        closer = Closer(
            self.ground,
            self.judged,
            self.pulls,
            self.texts,
            self.report,
            self.wishes.dry_run,
        )
        return closer.close_fixed(own)

    def _stop(self, error: LimitReached) -> None:
        note(f"vlmend: {error.message}")
        done = self.report.count(
            Outcome.CREATED, Outcome.UPDATED, Outcome.REOPENED, Outcome.CLOSED
        )
        left = ", ".join(change.branch for change in self._left) or "nothing"
        note(f"        done: {done}; left: {left}; run the same command later")

    def _changes(
        self, findings: Sequence[Finding], own: Sequence[Draft]
    ) -> list[Change]:
        homes = {
            fingerprint: draft.head.split("/", 2)[2]
            for draft in own
            if draft.state == "open" and draft.head.count("/") == 2
            for fingerprint in draft.fingerprints
        }
        groups = group(findings, self.wishes.group_by, homes)
        found: list[Change] = []
        for (codemod, scope), members in groups.items():
            patches = self.judged.patches(members)
            if patches:
                found.append(Change(codemod, scope, tuple(patches)))
        # What is there already comes first: a cap on new ones must not starve it.
        open_heads = {d.head for d in own if d.state == "open"}
        return sorted(found, key=lambda c: (c.branch not in open_heads, c.branch))

    # --- one change ------------------------------------------------------------------

    def _one(self, change: Change, own: Sequence[Draft]) -> int:
        for _ in range(_TRIES):
            try:
                return self._bring_about(change, own)
            except Rejected as error:
                note(f"vlmend: {error.message}; looking again")
                self.ground.refetch()
                own = self.pulls.own()
            except LimitReached:
                raise
            except Refused as error:
                self.report.add(Outcome.LEFT_ALONE, change.branch, "", error.message)
                return EXIT_REFUSED
            except UserError as error:
                self._failed(change, error)
                return EXIT_TROUBLE
        self.report.add(
            Outcome.LEFT_ALONE, change.branch, "", "its branch keeps moving"
        )
        return EXIT_REFUSED

    def _failed(self, change: Change, error: UserError) -> None:
        hint = f" ({error.hint})" if error.hint else ""
        self.report.add(Outcome.FAILED, change.branch, "", f"{error.message}{hint}")

    def _bring_about(self, change: Change, own: Sequence[Draft]) -> int:
        head = self.ground.branches().get(change.branch)
        branch = self._look_at(head)
        mine = [draft for draft in own if draft.head == change.branch]
        plan = decide(
            change, branch, mine, self.ground.base, self._reopenable(change, mine)
        )
        shown = (change.branch, plan.pull.url if plan.pull else "")
        if plan.act is Act.LEAVE:
            self.report.add(Outcome.LEFT_ALONE, *shown, plan.reason)
            return 0
        if plan.act in (Act.CREATE, Act.REOPEN) and self._held_back(change, own):
            return 0
        change, proven = self._proven(change, branch)
        plan = decide(
            change, branch, mine, self.ground.base, self._reopenable(change, mine)
        )
        if plan.act is Act.NOTHING:
            self.report.add(Outcome.UNCHANGED, *shown)
            return 0
        if plan.act is Act.UPDATE and not plan.push and not plan.text:
            self.writer.label(plan, change.branch)
            return 0
        searched = self.duplicates.search(question_about(change, self.judged))
        if any(draft.state == "open" for draft in searched.ours):
            theirs = next(d for d in searched.ours if d.state == "open")
            self.report.add(
                Outcome.UPSTREAM, change.branch, theirs.url, "open upstream"
            )
            return 0
        if searched.hits and self.wishes.not_duplicate is None:
            return self._duplicate(change, searched)
        subject = replace(self._subject(change, searched), proven=proven)
        if self.wishes.dry_run:
            message = self.texts.commit(subject, "0" * 12, None)
            dry_run(self.report, subject, plan, self.texts, message)
            return 0
        self.writer.write(subject, plan, head)
        return 0

    def _proven(
        self, change: Change, branch: BranchState | None
    ) -> tuple[Change, Proven]:
        """Run the change if that is asked for, or recall; tests become a part of it.

        Raises:
            Refused: it was refuted.
        """
        prover = self.wishes.prover
        workspace = self.ground.workspace
        if prover is None:
            change = kept_tests(workspace, change, branch)
            proven = remembered(self.judged, change)
            proven.require_not_refuted()
            return change, proven
        proven = prover.prove(self.judged, change)
        proven.require_not_refuted()
        if proven.offered:
            return with_tests(change, proven), proven
        if prover.with_test:
            change = kept_tests(workspace, change, branch)
        return change, proven

    def _look_at(self, head: str | None) -> BranchState | None:
        return None if head is None else look_at_branch(self.ground.workspace, head)

    def _reopenable(self, change: Change, mine: Sequence[Draft]) -> list[int]:
        closed = [d for d in mine if d.state == "closed" and not d.merged]
        if any(d.state == "open" for d in mine) or not closed:
            return []
        newest = closed[0]
        same = set(newest.fingerprints) & set(change.fingerprints)
        return [newest.number] if same else []

    def _held_back(self, change: Change, own: Sequence[Draft]) -> bool:
        new = self.report.count(Outcome.CREATED, Outcome.REOPENED, Outcome.WOULD)
        closed = self.report.count(Outcome.CLOSED)
        alive = sum(d.state == "open" for d in own) - closed + new
        why = ""
        if new >= self.wishes.max_new:
            why = f"enough new drafts for one run (--max-new {self.wishes.max_new})"
        elif alive >= self.wishes.max_open:
            why = f"enough drafts are open (--max-open {self.wishes.max_open})"
        if why:
            self.report.add(Outcome.HELD_BACK, change.branch, "", why)
        return bool(why)

    def _duplicate(self, change: Change, searched: Searched) -> int:
        told = "; ".join(
            f"{hit.kind} #{hit.number} {hit.why} ({hit.url})" for hit in searched.hits
        )
        why = f"{told}. If it is none: --not-duplicate REASON"
        self.report.add(Outcome.DUPLICATE, change.branch, "", why)
        return EXIT_REFUSED

    def _subject(self, change: Change, searched: Searched) -> Subject:
        workspace, commit = self.ground.workspace, self.ground.commit
        return Subject(
            change=change,
            around=surroundings(change, self.judged.result),
            searched=searched,
            web=self.ground.forge.server.web,
            repository=self.ground.pair.fork_name,
            base=commit,
            shape=shape_of(lambda path: workspace.read(commit, path)),
            not_duplicate=self.wishes.not_duplicate,
            knows=lambda arrived: workspace.is_ancestor(arrived, commit),
        )


def _worse(code: int) -> int:
    """Order exit codes: trouble, then refusal, then success."""
    return {0: 0, EXIT_REFUSED: 1, EXIT_TROUBLE: 2}.get(code, 2)
