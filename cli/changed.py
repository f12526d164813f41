"""What a change touches: files, and the classes whose judgement rests on them.

The tree is compared with the point where it and the base parted. The base is judged,
too, by the same codemods; what it has already is not new.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.errors import UserError

if TYPE_CHECKING:
    from vlmend.cli.targets import Target
    from vlmend.codemods.codemod import ScanResult

FROM_REF: Final = "PRE_COMMIT_FROM_REF"
"""Where pre-commit says what it compares with, when it runs on more than a commit."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between a tree and its base.

    Attributes:
        base: the base as it was named.
        commit: full id of the commit that is compared with.
        files: the changed files below the tree's root, with the base's content of each;
            ``None`` where the base has no such file.
    """

    base: str
    commit: str
    files: Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Compared:
    """A change, and what it does to the findings.

    Attributes:
        touched: ``module:Class`` of the classes that were judged on something else.
        before: what was found in the base.
    """

    change: Change
    touched: frozenset[str]
    before: ScanResult


def compared(change: Change, before: ScanResult, after: ScanResult) -> Compared:
    """Tell what a change does, given what was found on both sides of it."""
    return Compared(change, _touched(before, after, change), before)


def _touched(before: ScanResult, after: ScanResult, change: Change) -> frozenset[str]:
    """Return the classes whose judgement may be another.

    What was read tells most of them. A finding that is told of a class which was judged
    for another one's sake (the base that heals its heirs) shows by itself.
    """
    found = {
        key
        for key in before.basis.keys() | after.basis.keys()
        if before.basis.get(key) != after.basis.get(key)
    }
    found |= {f.key for f in set(before.findings) ^ set(after.findings)}
    for result in (before, after):
        found |= {f.key for f in result.findings if f.file in change.files}
        found |= {m.key for m in result.models if m.file in change.files}
    return frozenset(found)


def find_change(target: Target, base: str | None) -> Change:
    """Ask git what a tree has that its base has not.

    Raises:
        UserError: there is no repository, no such base, or no common history.
    """
    from vlmend.cli.git_tree import GitTree, open_repository, resolve_revision
    from vlmend.codemods.analysis.tree import TreeError

    if target.kind == "release":
        raise UserError(
            f"--changed: {target.spec} is a release and has no history",
            hint="vlmend models RELEASE --against OTHER compares two releases",
        )
    named = base or os.environ.get(FROM_REF) or "HEAD"
    place = target.root or target.repository
    assert place is not None
    with open_repository(place) as repo:
        git = _Git(repo, place)
        tip = target.revision or "HEAD"
        try:
            wanted = resolve_revision(repo, named)
        except UserError as error:
            raise _explained(git, error, named) from None
        commit = _parting(git, named, wanted, tip)
        below = _prefix(target, git)
        names = _changed_files(git, commit, target.revision, below)
        tree = GitTree(place, commit, below.rstrip("/"))
    files: dict[str, bytes | None] = {}
    try:
        for name in names:
            try:
                files[name] = tree.read(name) if tree.exists(name) else None
            except TreeError:
                files[name] = None  # too large, for one: no code that would be read
    finally:
        tree.close()
    return Change(named, commit, files)


class _Git:
    """Runs git for a repository whose own settings run nothing here."""

    def __init__(self, repo: Any, place: Path) -> None:
        self.repo = repo
        self.place = place

    def __call__(self, *words: str, ok: tuple[int, ...] = (0,)) -> tuple[int, str]:
        status, out, err = self.repo.git.execute(
            ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *words],
            env={"GIT_OPTIONAL_LOCKS": "0"},
            with_extended_output=True,
            with_exceptions=False,
            strip_newline_in_stdout=False,
        )
        if status not in ok:
            said = str(err).strip().splitlines()
            raise UserError(f"{self.place}: git {words[0]}: {said[-1] if said else ''}")
        return int(status), str(out)

    @property
    def is_shallow(self) -> bool:
        return self("rev-parse", "--is-shallow-repository")[1].strip() == "true"


_DEEPEN: Final = "git fetch --unshallow, or fetch-depth: 0 where CI checks out"


def _explained(git: _Git, error: UserError, named: str) -> UserError:
    if not git.is_shallow:
        return error
    return UserError(f"the clone is shallow and has no commit {named!r}", hint=_DEEPEN)


def _parting(git: _Git, named: str, wanted: str, tip: str) -> str:
    """Return the commit where the base and the tree's history parted."""
    from vlmend.cli.console import note

    status, out = git("merge-base", wanted, tip, ok=(0, 1))
    commit = out.strip().splitlines()[0] if status == 0 and out.strip() else ""
    whose = "HEAD" if tip == "HEAD" else tip[:12]
    if not commit:
        if git.is_shallow:
            raise UserError(
                f"the clone is shallow: its history ends before {whose} and {named}"
                " meet",
                hint=_DEEPEN,
            )
        raise UserError(
            f"{named}: is no ancestor of {whose}, and they have no history in common"
        )
    if commit != wanted:
        note(
            f"{named} is no ancestor of {whose}; compared with {commit[:12]}, where"
            " they parted"
        )
    return commit


def _prefix(target: Target, git: _Git) -> str:
    """Return the folder of the repository that a tree's root is, with a slash."""
    from vlmend.cli.git_tree import GitTree

    if isinstance(target.tree, GitTree):
        return f"{target.tree.prefix}/" if target.tree.prefix else ""
    return git("-C", str(target.root), "rev-parse", "--show-prefix")[1].rstrip("\n")


def _changed_files(
    git: _Git, commit: str, revision: str | None, below: str
) -> list[str]:
    """List what differs from a commit, relative to the tree's root.

    In a work tree that is everything: committed since, staged, not staged, untracked.
    """
    listing = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
    here = ("-C", str(git.repo.working_tree_dir or git.place))
    paths = ("--", f":(top,literal){below}" if below else ":(top)")
    ends = (commit,) if revision is None else (commit, revision)
    found = git(*here, "diff", *listing, *ends, *paths)[1].split("\0")
    if revision is None:
        untracked = ("ls-files", "--others", "--exclude-standard", "-z", "--full-name")
        found += git(*here, *untracked, *paths)[1].split("\0")
    return sorted({name.removeprefix(below) for name in found if name})
