"""A clone of our own, kept in the cache: the user's repository is only read.

It is bare and blobless: all history, and only those file contents that were asked for.
Objects that the user's clone already has are borrowed from it, not fetched again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vlmend.cli.cache import cache_directory, make_private
from vlmend.cli.errors import UserError
from vlmend.cli.forge.places import Server
from vlmend.cli.forge.token import Token
from vlmend.cli.git_run import GitFailed, GitRunner
from vlmend.cli.git_tree import GitTree

REMOTES: Final = ("upstream", "fork")
_READ: Final = (
    "vllm/",
    "requirements",
    ".github/",
    "pyproject.toml",
    "vlmend.toml",
    "setup.",
)
"""What is fetched of a commit before it is judged: all that vlmend looks at."""
_FORMAT: Final = "1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a commit: how git keeps it."""

    mode: str
    blob: str


class Workspace:
    """The cached clone of one repository and its fork.

    Args:
        folder: the bare repository.
        git: runs git in it.
    """

    def __init__(self, folder: Path, git: GitRunner) -> None:
        self.folder = folder
        self.git = git
        self._entries: dict[str, dict[str, Entry]] = {}
        self._refs: dict[str, dict[str, str]] = {}

    @classmethod
    def open(
        cls,
        server: Server,
        repository: str,
        token: Token | None,
        borrowed: Path | None = None,
        purpose: str = "",
    ) -> Workspace:
        """Return the clone of ``repository``, set up if it is not there yet.

        Args:
            server: where the repository is.
            repository: ``owner/name``, checked.
            token: for git's network calls.
            borrowed: a clone of the user's whose objects may be read.
            purpose: keeps clones of one repository apart.
        """
        home = cache_directory() / "clones"
        make_private(home)
        name = f"{server.host}+{repository}{purpose}".replace("/", "+").replace(
            ":", "+"
        )
        folder = home / f"{name.casefold()}.git"
        with locked(folder.with_suffix(".lock")):
            if not (folder / "vlmend-format").is_file() or _lender_is_gone(folder):
                shutil.rmtree(folder, ignore_errors=True)
                _set_up(folder)
            _borrow(folder, borrowed)
        return cls(folder, GitRunner(folder, token))

    def point(self, remote: str, url: str) -> None:
        """Say where one of the two remotes is."""
        assert remote in REMOTES, remote
        if self._setting(f"remote.{remote}.url") == url:
            return
        with locked(self.folder.with_suffix(".lock")):
            for key, value in (
                ("url", url),
                ("promisor", "true"),
                ("partialclonefilter", "blob:none"),
            ):
                self.git.run("config", f"remote.{remote}.{key}", value)

    def _setting(self, key: str) -> str:
        with suppress(GitFailed):
            return self.git.run("config", "--get", key).strip()
        return ""

    def fetch(
        self, remote: str, refspecs: Iterable[str], *, history: bool = True
    ) -> None:
        """Bring commits and folders, without file contents.

        Args:
            remote: ``upstream`` or ``fork``.
            refspecs: each with a destination below ``refs/vlmend/``.
            history: all that came before, too.
        """
        assert remote in REMOTES, remote
        self._refs.clear()
        with locked(self.folder.with_suffix(".lock")):
            self.git.network(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--force",
                "--filter=blob:none",
                # Git would prune a ref whose source is not written out in full.
                *(("--prune",) if history else ("--depth=1",)),
                "--stdin",
                remote,
                given="".join(f"{spec}\n" for spec in refspecs).encode(),
            )

    def resolve(self, name: str) -> str | None:
        """Return the commit that a ref or an id names, or None."""
        try:
            found = self.git.run(
                "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"
            )
        except GitFailed:
            return None
        return found.strip()

    def refs(self, prefix: str) -> dict[str, str]:
        """Return the refs below ``prefix``: the rest of the name, and the commit.

        They are as they were after the last :meth:`fetch`, whoever has fetched since.
        """
        if prefix in self._refs:
            return self._refs[prefix]
        listed = self.git.run(
            "for-each-ref", "--format=%(objectname) %(refname)", "--", prefix
        )
        pairs = (line.split(" ", 1) for line in listed.splitlines())
        found = {name.removeprefix(prefix): commit for commit, name in pairs}
        self._refs[prefix] = found
        return found

    def entries(self, commit: str) -> dict[str, Entry]:
        """Return every file of a commit, by its full id."""
        if commit in self._entries:
            return self._entries[commit]
        listed = self.git.raw("ls-tree", "-r", "-z", "--full-tree", commit)
        found: dict[str, Entry] = {}
        for record in listed.split(b"\0"):
            head, tab, name = record.partition(b"\t")
            if tab:
                mode, _, blob = head.decode("ascii").split(" ")
                found[os.fsdecode(name)] = Entry(mode, blob)
        self._entries[commit] = found
        return found

    def bring(
        self,
        remote: str,
        commit: str,
        wanted: Callable[[str], bool] | None = None,
    ) -> None:
        """Fetch the contents of a commit's files in one go.

        Args:
            remote: where they are.
            commit: whose files.
            wanted: which paths; by default all that a judgement reads.
        """
        choose = wanted or (lambda name: name.startswith(_READ))
        blobs = {e.blob for n, e in self.entries(commit).items() if choose(n)}
        listed = self.git.run(
            "rev-list", "--objects", "--no-walk", "--missing=print", commit
        )
        missing = {line[1:] for line in listed.splitlines() if line.startswith("?")}
        self._fetch_blobs(remote, sorted(blobs & missing))

    def _fetch_blobs(self, remote: str, blobs: Sequence[str]) -> None:
        if not blobs:
            return
        with locked(self.folder.with_suffix(".lock")):
            self.git.network(
                "-c",
                "fetch.negotiationAlgorithm=noop",
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--filter=blob:none",
                "--stdin",
                remote,
                given="".join(f"{blob}\n" for blob in blobs).encode(),
            )

    def bring_versions(self, remote: str, names: Mapping[str, Sequence[str]]) -> None:
        """Fetch the contents of some files at some commits, in one go."""
        for commit, paths in names.items():
            self.bring(remote, commit, set(paths).__contains__)

    def tree(self, commit: str) -> GitTree:
        """Return a commit's files; close it after use."""
        return GitTree(self.folder, commit)

    def read(self, commit: str, path: str) -> bytes | None:
        """Return a file as it is in a commit, or None; brought before."""
        try:
            return self.git.raw("cat-file", "blob", f"{commit}:{path}")
        except GitFailed:
            return None

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Say whether all of ``older`` is part of ``newer``."""
        if older == newer:
            return True
        try:
            self.git.run("merge-base", "--is-ancestor", older, newer)
        except GitFailed:
            return False
        return True

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the newest commit that both have, or None."""
        try:
            return self.git.run("merge-base", one, other).strip()
        except GitFailed:
            return None

    def count(self, excluded: str, included: str) -> int:
        """Count the commits of ``included`` that ``excluded`` does not have."""
        if excluded == included:
            return 0
        return int(self.git.run("rev-list", "--count", f"{excluded}..{included}"))

    def changed(self, older: str, newer: str) -> dict[str, tuple[str, str]]:
        """Return the paths that differ between two commits, with both blobs."""
        listed = self.git.raw(
            "diff-tree", "-r", "-z", "--no-renames", "--full-index", older, newer
        )
        parts = listed.split(b"\0")
        found: dict[str, tuple[str, str]] = {}
        for head, name in zip(parts[::2], parts[1::2], strict=False):
            _, _, before, after, _ = head.decode("ascii").split(" ")
            found[os.fsdecode(name)] = (before, after)
        return found


def _set_up(folder: Path) -> None:
    make_private(folder)
    git = GitRunner(folder)
    git.run("init", "--quiet", "--bare", "--template=")
    git.run("config", "core.repositoryformatversion", "1")
    git.run("config", "extensions.partialClone", "upstream")
    # Written last: a folder without it was left by a run that was interrupted.
    (folder / "vlmend-format").write_text(_FORMAT)


def _lenders(folder: Path) -> list[str]:
    place = folder / "objects" / "info" / "alternates"
    return place.read_text().splitlines() if place.is_file() else []


def _lender_is_gone(folder: Path) -> bool:
    # What was borrowed is gone with it: such a clone has holes, and is made anew.
    return not all(Path(line).is_dir() for line in _lenders(folder))


def _borrow(folder: Path, lender: Path | None) -> None:
    """Read objects from the user's clone, too, from now on."""
    objects = None if lender is None else _objects_of(lender)
    known = _lenders(folder)
    if objects is not None and str(objects) not in known:
        place = folder / "objects" / "info" / "alternates"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(f"{line}\n" for line in (*known, str(objects))))


def _objects_of(lender: Path) -> Path | None:
    """Return the folder with a clone's objects, if it is one that can lend them."""
    try:
        git = GitRunner(lender)
        if git.run("rev-parse", "--is-shallow-repository").strip() != "false":
            return None  # its commits have parents that it does not have
        named = git.run("rev-parse", "--git-path", "objects").strip()
    except (GitFailed, UserError):
        return None
    objects = (lender / named).resolve()
    # A path with a newline cannot be written to git's list of lenders.
    return objects if objects.is_dir() and "\n" not in str(objects) else None


@contextmanager
def locked(place: Path) -> Generator[None]:
    """Hold a lock that ends with the process, however it ends."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def digest_of(parts: Iterable[str]) -> str:
    """Return 12 hex digits that stand for these texts in this order."""
    joined = "\0".join(parts).encode("utf-8", "surrogateescape")
    return hashlib.sha256(joined).hexdigest()[:12]
