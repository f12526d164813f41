"""What the stand-in remembers: accounts, repositories, pull requests, issues."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

Permissions = dict[str, bool]


def run_git(folder: Path, *words: str, given: bytes | None = None) -> str:
    """Run git in a repository of the rig; return what it printed."""
    done = subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *words],
        input=given,
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


@dataclass
class Account:
    """Who a token belongs to.

    Attributes:
        login: the name.
        id: the number.
        token: the secret that stands for the account.
        kind: ``User`` or ``Bot``.
        scopes: what a classic token may do; empty for other tokens.
    """

    login: str
    id: int
    token: str
    kind: str = "User"
    scopes: tuple[str, ...] = ()


@dataclass
class Comment:
    """One comment below a pull request."""

    id: int
    user: str
    body: str
    created: str


@dataclass
class Pull:
    """One pull request (or, without a head, one issue)."""

    number: int
    title: str
    body: str
    user: str
    created: str
    head_repository: int = 0
    head: str = ""
    head_owner: str = ""
    head_sha: str = ""
    base: str = ""
    draft: bool = False
    state: str = "open"
    merged: bool = False
    closed: str | None = None
    closed_by: str | None = None
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reviews: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_issue(self) -> bool:
        return not self.head


@dataclass
class Check:
    """One result on a commit."""

    name: str
    conclusion: str


@dataclass
class Repository:
    """One repository: its place on disk, and its settings.

    Attributes:
        writers: logins that may push.
        refusals: switches that make the stand-in say no, by name.
        not_ready: how many git requests are still answered with 404.
    """

    id: int
    owner: str
    name: str
    folder: Path
    parent: int | None = None
    source: int | None = None
    default_branch: str = "main"
    writers: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)
    archived: bool = False
    not_ready: int = 0
    pulls: dict[int, Pull] = field(default_factory=dict)
    checks: dict[str, list[Check]] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    def head(self, branch: str) -> str | None:
        """Return the commit that a branch is at, or None."""
        place = self.folder / "refs" / "heads" / branch
        if ".." not in branch and place.is_file():
            return place.read_text().strip()  # without a process for each answer
        try:
            return run_git(self.folder, "rev-parse", "--verify", f"refs/heads/{branch}")
        except subprocess.CalledProcessError:
            return None


def _has_pull(receiver: Repository, pull: Pull, sha: str) -> bool:
    place = receiver.folder / "refs" / "pull" / str(pull.number) / "head"
    return place.is_file() and place.read_text().strip() == sha


@dataclass
class Forge:
    """Everything that one stand-in holds.

    Attributes:
        home: the folder with the bare repositories.
        web: what links to pages begin with; nothing answers there.
        now: tells the time that is written into records.
    """

    home: Path
    web: str = "https://forge.invalid"
    now: Callable[[], float] = time.time
    accounts: dict[str, Account] = field(default_factory=dict)
    repositories: dict[int, Repository] = field(default_factory=dict)
    former_names: dict[str, int] = field(default_factory=dict)
    _last_id: int = 100

    def new_id(self) -> int:
        """Return a number that was not used before."""
        self._last_id += 1
        return self._last_id

    def stamp(self) -> str:
        """Return the time, as records carry it."""
        moment = datetime.fromtimestamp(self.now(), UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def add_account(
        self, login: str, token: str, kind: str = "User", scopes: tuple[str, ...] = ()
    ) -> Account:
        """Let somebody in."""
        account = Account(login, self.new_id(), token, kind, scopes)
        self.accounts[token] = account
        return account

    def user_id(self, login: str) -> int:
        """Return an account's number; people without an account get one, too."""
        known = (a.id for a in self.accounts.values() if a.login == login)
        return next(known, 90_000 + sum(login.encode()))

    def add_repository(
        self, full_name: str, *, parent: Repository | None = None, empty: bool = False
    ) -> Repository:
        """Make a bare repository, a fork of ``parent`` if one is given."""
        owner, _, name = full_name.partition("/")
        number = self.new_id()
        folder = self.home / f"{number}.git"
        if parent is None or empty:
            folder.mkdir(parents=True)
            run_git(folder, "init", "-q", "--bare", "--template=", "-b", "main")
        else:
            words = ("clone", "-q", "--bare", "--shared", "--template=")
            run_git(self.home, *words, str(parent.folder), str(folder))
            listed = run_git(folder, "for-each-ref", "--format=%(refname)", "refs/pull")
            for ref in listed.splitlines():
                run_git(folder, "update-ref", "-d", ref)
        for setting in (
            "http.receivepack=true",
            "uploadpack.allowFilter=true",
            "uploadpack.allowAnySHA1InWant=true",
        ):
            run_git(folder, "config", *setting.split("="))
        repository = Repository(number, owner, name, folder, writers={owner})
        if parent is not None:
            repository.parent = parent.id
            repository.source = parent.source or parent.id
        self.repositories[number] = repository
        return repository

    def find(self, full_name: str) -> Repository | None:
        """Return the repository of this name; former names do not count."""
        wanted = full_name.casefold()
        for repository in self.repositories.values():
            if repository.full_name.casefold() == wanted:
                return repository
        return None

    def rename(self, repository: Repository, name: str) -> None:
        """Give a repository another name; the old one redirects from now on."""
        self.former_names[repository.full_name.casefold()] = repository.id
        repository.name = name

    def open_pull(
        self,
        receiver: Repository,
        head_repository: Repository,
        head: str,
        title: str,
        body: str,
        user: str,
        *,
        base: str = "main",
        draft: bool = False,
    ) -> Pull:
        """Record a pull request and publish its commits in the receiver."""
        number = 1 + max(receiver.pulls, default=0)
        pull = Pull(
            number,
            title,
            body,
            user,
            self.stamp(),
            head_repository.id,
            head,
            head_repository.owner,
            head_repository.head(head) or "",
            base,
            draft,
        )
        receiver.pulls[number] = pull
        self.publish_head(receiver, pull)
        return pull

    def publish_head(self, receiver: Repository, pull: Pull) -> None:
        """Let ``refs/pull/N/head`` follow an open pull request's branch."""
        origin = self.repositories.get(pull.head_repository)
        sha = origin.head(pull.head) if origin is not None else None
        if origin is None or sha is None or pull.state != "open":
            return
        if sha == pull.head_sha and _has_pull(receiver, pull, sha):
            return
        if origin.folder != receiver.folder:
            words = ("fetch", "-q", "--no-tags", str(origin.folder))
            run_git(receiver.folder, *words, f"+{sha}:refs/pull/{pull.number}/head")
        else:
            run_git(receiver.folder, "update-ref", f"refs/pull/{pull.number}/head", sha)
        pull.head_sha = sha

    def open_issue(
        self, receiver: Repository, title: str, body: str, user: str
    ) -> Pull:
        """Record an issue."""
        number = 1 + max(receiver.pulls, default=0)
        issue = Pull(number, title, body, user, self.stamp())
        receiver.pulls[number] = issue
        return issue
