"""From a draft in the fork to a draft upstream: every step is a person's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from vlmend.cli.commits import (
    SIGN_OFF,
    Identity,
    NewCommit,
    make_commit,
    push,
    require_sign_off,
    seal_of,
    trailer,
)
from vlmend.cli.console import PIPED_WIDTH, note, printable
from vlmend.cli.drafts.around import question_about, surroundings
from vlmend.cli.drafts.change import AddedFile, Change
from vlmend.cli.drafts.ground import Ground, judged_at
from vlmend.cli.drafts.history import defects
from vlmend.cli.drafts.proving import remembered
from vlmend.cli.drafts.shapes import shape_of
from vlmend.cli.drafts.text import Subject, TestRun, Texts
from vlmend.cli.errors import Refused, UserError
from vlmend.cli.forge.consent import PersonalConsent
from vlmend.cli.forge.duplicates import DuplicateSearch, Searched
from vlmend.cli.forge.places import same_repository
from vlmend.cli.forge.pulls import BRANCH_PREFIX, Draft, PullRequests
from vlmend.cli.report import diff
from vlmend.cli.report.words import chain, strong
from vlmend.codemods.engine import FilePatch

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged


@dataclass
class Publication:
    """One draft on its way upstream.

    Attributes:
        ground: the fork.
        draft: the pull request inside the fork.
        identity: the person.
        texts: how it is told.
        not_duplicate: why a hit is none.
        signing: how the person's commits are signed.
    """

    ground: Ground
    draft: Draft
    identity: Identity
    texts: Texts
    not_duplicate: str | None = None
    signing: tuple[str, ...] = ()

    def run(self) -> str:
        """Ask, re-commit, push, and open; return the address upstream.

        Raises:
            Refused: the person does not agree, or it is a duplicate.
            UserError: something cannot be done.
        """
        head = self._head()
        self._require_the_defect_upstream()
        parent = self.ground.workspace.merge_base(head, self.ground.upstream_commit)
        if parent is None:
            raise UserError(
                f"{self.draft.head}: has no history in common with upstream"
            )
        codemod = self.draft.head.split("/")[1]
        label = f"{self.ground.pair.upstream_name} at {parent[:12]}"
        with judged_at(
            self.ground.workspace, "fork", parent, label, [codemod]
        ) as judged:
            change = self._change(judged, parent, head)
            question = question_about(change, judged)
            around = surroundings(change, judged.result)
            proven = remembered(judged, change)
        proven.require_not_refuted()
        self._review(change)
        tests = list(_ask_for_tests())
        if not tests:
            raise Refused("upstream wants the tests run; nothing was opened")
        self._confirm_identity()
        searched = self._search().search(question)
        there = next((d for d in searched.ours if d.state == "open"), None)
        if there is not None:
            note("it is open upstream already")
            return there.url
        self._settle_duplicates(searched)
        workspace = self.ground.workspace
        subject = Subject(
            change=change,
            around=around,
            searched=searched,
            web=self.ground.forge.server.web,
            repository=self.ground.pair.upstream_name,
            base=parent,
            shape=shape_of(
                lambda path: workspace.read(self.ground.upstream_commit, path)
            ),
            not_duplicate=self.not_duplicate,
            tests=tests,
            proven=proven,
        )
        title, body = self.texts.title(change), self.texts.body(subject)
        click.echo(f"\n{strong(printable(title))}\n\n{printable(body)}", err=True)
        consent = PersonalConsent.ask(self.ground.pair.upstream)
        self._recommit(subject, parent, head)
        opened = PullRequests(self.ground.forge, self.ground.pair.upstream).create(
            consent,
            owner=self.ground.pair.owner,
            branch=self.draft.head,
            base=self.ground.upstream_branch,
            title=title,
            body=body,
            head_repository=str(self.ground.pair.fork.name),
        )
        return opened.url

    # --- what is published -----------------------------------------------------------

    def _head(self) -> str:
        draft = self.draft
        inside = same_repository(draft.head_repository, self.ground.pair.fork_name)
        if not (inside and draft.head.startswith(BRANCH_PREFIX)):
            raise Refused(f"#{draft.number}: is not one of vlmend's drafts")
        if draft.state != "open":
            raise Refused(f"#{draft.number}: is closed")
        if not draft.fingerprints:
            raise Refused(f"#{draft.number}: its text no longer says what it mends")
        head = self.ground.branches().get(draft.head)
        if head is None:
            raise UserError(f"{draft.head}: the branch is gone")
        return head

    def _require_the_defect_upstream(self) -> None:
        ground = self.ground
        label = f"{ground.pair.upstream_name}@{ground.upstream_branch}"
        codemod = self.draft.head.split("/")[1]
        with judged_at(
            ground.workspace, "upstream", ground.upstream_commit, label, [codemod]
        ) as judged:
            left = set(self.draft.fingerprints) & set(defects(judged.result))
        if not left:
            raise Refused(
                f"{label}: no longer has the defect; there is nothing to publish",
                hint="vlmend close-fixed closes the draft",
            )

    def _change(self, judged: Judged, parent: str, head: str) -> Change:
        """Return the change as it really is on the branch, whoever wrote it."""
        workspace = self.ground.workspace
        own_base = workspace.merge_base(head, self.ground.commit) or parent
        changed = workspace.changed(own_base, head)
        if set(workspace.changed(parent, own_base)) & set(changed):
            raise Refused(
                f"{self.draft.head}: the fork's files differ from upstream's",
                hint="bring the fork's branch in line with upstream, then draft again",
            )
        workspace.bring_versions("fork", {parent: [*changed], head: [*changed]})
        wanted = set(self.draft.fingerprints)
        findings = [f for f in judged.result.findings if f.fingerprint in wanted]
        patches: list[FilePatch] = []
        tests: list[AddedFile] = []
        for path in changed:
            before, after = workspace.read(parent, path), workspace.read(head, path)
            if before is None and after is not None and path.startswith("tests/"):
                tests.append(AddedFile(path, after))
                continue
            if before is None or after is None:
                raise Refused(
                    f"{path}: is new or gone; vlmend only changes files and adds tests"
                )
            here = tuple(f for f in findings if any(e.file == path for e in f.edits))
            patches.append(FilePatch(path, before, after, here))
        _, codemod, scope = self.draft.head.split("/", 2)
        return Change(codemod, scope, tuple(patches), tuple(tests))

    def _search(self) -> DuplicateSearch:
        ground = self.ground
        return DuplicateSearch(
            ground.forge,
            ground.pair.upstream,
            ground.workspace,
            ground.upstream_commit,
            ground.pair.owner,
        )

    # --- what the person says --------------------------------------------------------

    def _review(self, change: Change) -> None:
        hunks = [(p, h) for p in change.parts for h in _hunks(p)]
        for number, (patch, hunk) in enumerate(hunks, start=1):
            click.echo(f"\n[{number}/{len(hunks)}] {printable(patch.file)}", err=True)
            findings = patch.findings if isinstance(patch, FilePatch) else ()
            for finding in findings:
                for line in diff.reason(finding, PIPED_WIDTH):
                    click.echo(line, err=True)
                for line in chain(finding.evidence, PIPED_WIDTH, "  "):
                    click.echo(line, err=True)
            if isinstance(patch, AddedFile):
                click.echo("a test that comes with this change", err=True)
            elif not findings:
                click.echo("a person's change; vlmend has no proof for it", err=True)
            for line in hunk:
                click.echo(diff.painted(line), err=True)
            if not agrees("Do you understand this change, and is it right?"):
                raise Refused("you did not agree to a change; nothing was opened")

    def _confirm_identity(self) -> None:
        told = printable(str(self.identity))
        if not agrees(f"Author, committer and sign-off will be {told}. Is that you?"):
            raise Refused(
                "nothing was opened",
                hint="git config user.name and user.email say who you are",
            )

    def _settle_duplicates(self, searched: Searched) -> None:
        for hit in searched.hits:
            note(f"possible duplicate: {hit.kind} #{hit.number} {hit.why}: {hit.url}")
        if searched.hits and self.not_duplicate is None:
            raise Refused(
                "somebody seems to be at it already; nothing was opened",
                hint="if it is none: --not-duplicate REASON",
            )
        if not searched.complete:
            for search in searched.searches:
                if search.found is None:
                    note(f"unknown: {search.question} {search.note}")
            if not agrees("The duplicate search is incomplete. Did you look yourself?"):
                raise Refused("the duplicate search is incomplete; nothing was opened")

    # --- what is written -------------------------------------------------------------

    def _recommit(self, subject: Subject, parent: str, head: str) -> None:
        workspace = self.ground.workspace
        signed = trailer(workspace, head, SIGN_OFF)
        parents = workspace.git.run("log", "-1", "--format=%P", head).split()
        if signed == [str(self.identity)] and parents == [parent]:
            return  # an earlier run came this far
        files = subject.change.files
        sealed = seal_of(workspace, parent, files)
        message = self.texts.commit(subject, sealed, str(self.identity))
        wanted = NewCommit(parent, files, message, self.identity, self.signing)
        commit = make_commit(workspace, wanted)
        require_sign_off(workspace, commit, self.identity)
        push(workspace, commit, self.draft.head, head)


def _hunks(patch: FilePatch | AddedFile) -> Iterator[Sequence[str]]:
    hunk: list[str] = []
    for line in patch.diff().splitlines():
        if line.startswith("@@") and hunk:
            yield hunk
            hunk = []
        if line.startswith("@@") or hunk:
            hunk.append(line)
    if hunk:
        yield hunk


def _ask_for_tests() -> Iterator[TestRun]:
    click.echo("\nUpstream wants the tests run, and their results.", err=True)
    while command := answer("A command that you ran (nothing ends the list): "):
        result = answer("What came of it: ")
        if not result:
            raise Refused("a test without a result says nothing; nothing was opened")
        yield TestRun(command, result)


def answer(question: str) -> str:
    """Ask the person at the terminal.

    Raises:
        UserError: the input ended.
    """
    click.echo(question, nl=False, err=True)
    typed = sys.stdin.readline()
    if not typed:
        raise UserError("no answer; nothing was opened")
    return typed.strip()


def agrees(question: str) -> bool:
    """Ask for a yes; anything else is a no."""
    return answer(f"{question} [y/N] ").casefold() in ("y", "yes")
