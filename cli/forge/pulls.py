"""Pull requests: looked up, opened, changed, closed. Each step can be repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from vlmend.cli.console import note
from vlmend.cli.errors import Refused, UserError
from vlmend.cli.forge.calls import ForgeError
from vlmend.cli.forge.client import Forge
from vlmend.cli.forge.consent import Consent
from vlmend.cli.forge.places import same_repository

if TYPE_CHECKING:
    from github.PullRequest import PullRequest
    from github.Repository import Repository

BRANCH_PREFIX: Final = "vlmend/"
_OWN_LINE: Final = re.compile(
    r"Change `(?P<change>[0-9a-f]{12})`, fingerprints? "
    r"(?P<fingerprints>`[0-9a-f]{16}`(?:, `[0-9a-f]{16}`)*)"
)
CLOSING: Final = "Closed by vlmend:"
"""What our own closing comments begin with."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One pull request as a run sees it.

    Attributes:
        head: the branch's name.
        head_label: ``owner:branch``.
        change: the digest in the visible line, empty where there is none.
        fingerprints: those in the visible line.
    """

    number: int
    url: str
    title: str
    body: str
    state: str
    merged: bool
    draft: bool
    base: str
    head: str
    head_label: str
    head_sha: str
    head_repository: str
    user: str
    labels: tuple[str, ...]
    change: str
    fingerprints: tuple[str, ...]
    closed_at: datetime | None


def own_line(change: str, fingerprints: Sequence[str]) -> str:
    """Return the visible line that says what a pull request stands for."""
    noun = "fingerprint" if len(fingerprints) == 1 else "fingerprints"
    names = ", ".join(f"`{one}`" for one in sorted(fingerprints))
    return f"Change `{change}`, {noun} {names}"


def seen(pull: PullRequest) -> Draft:
    """Return what is needed of PyGithub's object, without further calls."""
    body = str(pull.body or "")
    found = _OWN_LINE.search(body)
    prints = re.findall(r"[0-9a-f]{16}", found["fingerprints"]) if found else []
    # GitHub says null for what was deleted; PyGithub's types do not.
    origin = getattr(pull.head, "repo", None)
    author = getattr(pull, "user", None)
    return Draft(
        number=pull.number,
        url=str(pull.html_url),
        title=str(pull.title),
        body=body,
        state=str(pull.state),
        merged=pull.merged_at is not None,
        draft=bool(pull.draft),
        base=str(pull.base.ref),
        head=str(pull.head.ref),
        head_label=str(pull.head.label),
        head_sha=str(pull.head.sha),
        head_repository="" if origin is None else str(origin.full_name),
        user="" if author is None else str(author.login),
        labels=tuple(str(label.name) for label in pull.labels),
        change=found["change"] if found else "",
        fingerprints=tuple(prints),
        closed_at=pull.closed_at,
    )


class PullRequests:
    """The pull requests of one repository."""

    def __init__(self, forge: Forge, repository: Repository) -> None:
        self._forge = forge
        self._repository = repository
        self.name = str(repository.full_name)

    def own(self, state: str = "all") -> list[Draft]:
        """List those that vlmend opened inside this repository, newest first."""
        listed = self._forge.calls.read(
            f"list the pull requests of {self.name}",
            lambda: self._listed(self._repository.get_pulls(state=state)),
        )
        if not listed:
            self._require_same_name(
                self._forge.calls.read(
                    f"look up {self.name}",
                    lambda: self._forge.github.get_repo(self.name).full_name,
                )
            )
        return [
            pull
            for pull in listed
            if pull.head.startswith(BRANCH_PREFIX)
            and same_repository(pull.head_repository, self.name)
        ]

    def open_ones(self) -> list[Draft]:
        """List every open one."""
        return self._forge.calls.read(
            f"list the open pull requests of {self.name}",
            lambda: self._listed(self._repository.get_pulls(state="open")),
        )

    def with_head(self, owner: str, branch: str, state: str = "all") -> list[Draft]:
        """List those from ``owner:branch``, newest first."""
        label = f"{owner}:{branch}"
        listed = self._forge.calls.read(
            f"look for pull requests of {label} in {self.name}",
            lambda: self._listed(self._repository.get_pulls(state=state, head=label)),
        )
        # The filter can miss, and a server may not know it: the label decides.
        return [p for p in listed if p.head_label.casefold() == label.casefold()]

    def _listed(self, pulls: Iterable[PullRequest]) -> list[Draft]:
        """Return a list, unless it is one that nobody asked for.

        PyGithub follows a redirect without the query: closed ones would be missing.

        Raises:
            UserError: the repository has another name by now.
        """
        found = list(pulls)
        for pull in found:
            self._require_same_name(pull.base.repo.full_name)
        return [seen(pull) for pull in found]

    def _require_same_name(self, name: str) -> None:
        if not same_repository(name, self.name):
            raise self._renamed(f" to {name}")

    def _renamed(self, to: str = "") -> UserError:
        return UserError(
            f"{self.name}: was renamed{to} meanwhile",
            hint="run the same command again; it goes on where it stopped",
        )

    def get(self, number: int) -> Draft:
        """Return one."""
        return seen(self._handle(number))

    def create(
        self,
        consent: Consent,
        *,
        owner: str,
        branch: str,
        base: str,
        title: str,
        body: str,
        head_repository: str | None = None,
    ) -> Draft:
        """Open a draft, or return the open one that is there already.

        The only call in vlmend that opens a pull request stands here, behind consent.

        Args:
            consent: who allowed it; for the fork itself, or for this repository.
            owner: whose branch.
            branch: the branch.
            base: the branch that receives it.
            title: one line.
            body: Markdown.
            head_repository: the bare name of the fork, where the branch is elsewhere.

        Raises:
            Refused: the consent is not for this repository.
            UserError: the forge says no.
        """
        if not consent.permits(self._repository):
            raise Refused(f"nobody agreed to a pull request in {self.name}")
        elsewhere = head_repository is not None
        modifiable = elsewhere

        def landed() -> Draft | None:
            found = self.with_head(owner, branch, "open")
            return next((p for p in found if p.base == base), None)

        def act() -> Draft:
            words: dict[str, str] = {}
            if head_repository is not None:
                words["head_repo"] = head_repository
            made = self._repository.create_pull(
                base,
                f"{owner}:{branch}" if elsewhere else branch,
                title=title,
                body=body,
                draft=True,
                maintainer_can_modify=modifiable,
                **words,  # type: ignore[arg-type]
            )
            # PyGithub takes "moved, ask there" for an answer, and makes nothing of it.
            if not made.number:
                raise self._renamed()
            return seen(made)

        there = landed()
        if there is not None:
            return there
        what = f"open a draft pull request in {self.name}"
        while True:
            try:
                return self._forge.calls.write(what, act, landed)
            except ForgeError as error:
                told = error.told.casefold()
                if error.status == 422 and "already exists" in told:
                    there = landed()
                    if there is not None:
                        return there
                if error.status == 422 and "fork_collab" in told and modifiable:
                    modifiable = False
                    continue
                if error.status == 422 and "draft" in told:
                    raise UserError(
                        f"{self.name}: drafts are not supported in this repository, and"
                        " vlmend opens nothing else",
                        hint=f"the branch {branch} is pushed; open it by hand",
                    ) from None
                raise

    def edit(self, number: int, *, title: str, body: str) -> None:
        """Put title and text in place."""
        self._forge.calls.write(
            f"update {self.name}#{number}",
            lambda: self._pull(number).edit(title=title, body=body),
        )

    def label(self, number: int, names: Sequence[str]) -> None:
        """Add labels; a repository that refuses them keeps its pull request."""
        try:
            _, told = self._forge.calls.write(
                f"label {self.name}#{number}",
                partial(
                    # PyGithub sends a bare list, which GitHub's description forbids.
                    self._forge.github.requester.requestJsonAndCheck,
                    "POST",
                    f"{self._repository.url}/issues/{number}/labels",
                    input={"labels": list(names)},
                ),
            )
            if not isinstance(told, list):
                raise self._renamed()
        except ForgeError as error:
            if error.status not in (403, 404, 410, 422):
                raise
            note(f"{self.name}#{number}: no labels: {error.message}")

    def close(self, number: int, comment: str) -> None:
        """Say why, once, and close."""
        self._comment_once(number, comment)
        self._forge.calls.write(
            f"close {self.name}#{number}",
            lambda: self._pull(number).edit(state="closed"),
        )

    def reopen(self, number: int) -> bool:
        """Open a closed one again; False where GitHub does not allow that any more."""
        try:
            self._forge.calls.write(
                f"reopen {self.name}#{number}",
                lambda: self._pull(number).edit(state="open"),
            )
        except ForgeError as error:
            if error.status != 422:
                raise
            return False
        return True

    def _comment_once(self, number: int, comment: str) -> None:
        def said() -> str | None:
            return next((c for c in self.comments(number) if c == comment), None)

        if said() is None:
            self._forge.calls.write(
                f"comment on {self.name}#{number}",
                lambda: str(self._pull(number).create_issue_comment(comment).body),
                said,
            )

    def comments(self, number: int) -> list[str]:
        """Return what was said below a pull request."""
        return self._forge.calls.read(
            f"read the comments of {self.name}#{number}",
            lambda: [str(c.body) for c in self._pull(number).get_issue_comments()],
        )

    def closed_by_us(self, number: int) -> bool:
        """Say whether our own comment explains why it is closed."""
        return any(c.startswith(CLOSING) for c in self.comments(number))

    def closer(self, number: int) -> str:
        """Return the login of whoever closed it; empty where GitHub does not say."""
        with suppress(ForgeError):
            return self._forge.calls.read(
                f"ask who closed {self.name}#{number}",
                lambda: self._issue_closer(number),
            )
        return ""

    def _issue_closer(self, number: int) -> str:
        closer = self._repository.get_issue(number).closed_by
        return "" if closer is None else str(closer.login)

    def _handle(self, number: int) -> PullRequest:
        return self._forge.calls.read(
            f"look up {self.name}#{number}", lambda: self._repository.get_pull(number)
        )

    def _pull(self, number: int) -> PullRequest:
        return self._repository.get_pull(number)
