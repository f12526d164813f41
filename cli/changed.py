"""What a change touches: files, and the classes whose judgement rests on them.

The tree is compared with the point where it and the base parted. The base is judged,
too, by the same codemods; what it has already is not new.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vlmend.cli.errors import UserError

if TYPE_CHECKING:
    from vlmend.cli.local_git import LocalGit
    from vlmend.cli.targets import Target
    from vlmend.codemods.codemod import ScanResult

FROM_REF: Final = "PRE_COMMIT_FROM_REF"
"""Where pre-commit says what it compares with, when it runs on more than a commit."""
PRE_COMMIT: Final = "PRE_COMMIT"
"""Set while pre-commit runs: it has put aside all but what is to be committed, except
for files that git does not know."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between a tree and its base.

    Attributes:
        base: the base as it was named.
        commit: full id of the commit that is compared with.
        files: the changed files below the tree's root, with the base's content of each;
            ``None`` where the base has no such file.
        aside: files that lie in the tree and are no part of it: under pre-commit, those
            that are not in the commit which is made.
    """

    base: str
    commit: str
    files: Mapping[str, bytes | None]
    aside: frozenset[str] = frozenset()


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
        for key, asked in after.basis.items()
        if _differs(before.basis.get(key, {}), asked)
    }
    found |= {f.key for f in set(before.findings) ^ set(after.findings)}
    judged: set[str] = set()
    for result in (before, after):
        found |= {f.key for f in result.findings if f.file in change.files}
        found |= {m.key for m in result.models if m.file in change.files}
        judged |= {f.key for f in result.findings} | {m.key for m in result.models}
    # What is only read on behalf of others, such as an inner model, is asked about or
    # not as the cache has it.
    return frozenset(found & judged)


def _differs(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Say whether a question that was asked on both sides rests on something else.

    One that only one side asked proves nothing: an answer that is taken from the cache
    asks no further. What there is to say about a class is a question of its own, asked
    each time, and rests on all that lies below.
    """
    return any(before[one] != after[one] for one in before.keys() & after.keys())


def find_change(target: Target, base: str | None) -> Change:
    """Ask git what a tree has that its base has not.

    Raises:
        UserError: there is no repository, no such base, or no common history.
    """
    from vlmend.cli.local_git import LocalGit

    if target.kind == "release":
        raise UserError(
            f"--changed: {target.spec} is a release and has no history",
            hint="vlmend models RELEASE --against OTHER compares two releases",
        )
    named = base or os.environ.get(FROM_REF) or "HEAD"
    place = target.root or target.repository
    assert place is not None
    git = LocalGit(place)
    below = _prefix(target, git)
    commit = _parting(git, named, target.revision or "HEAD")
    names = _changed_files(git, commit, target.revision, below)
    untracked = _untracked_files(git, below) if target.revision is None else []
    aside: list[str] = []
    if os.environ.get(PRE_COMMIT) == "1":
        aside, untracked = untracked, []
    names = sorted({*names, *untracked})
    return Change(named, commit, git.contents(commit, names, below), frozenset(aside))


_DEEPEN: Final = "git fetch --unshallow, or fetch-depth: 0 where CI checks out"


def _parting(git: LocalGit, named: str, tip: str) -> str:
    """Return the commit where the base and the tree's history parted."""
    from vlmend.cli.console import note

    wanted = git.commit(named)
    if wanted is None:
        if git.is_shallow:
            raise UserError(
                f"the clone is shallow and has no commit {named!r}", hint=_DEEPEN
            )
        if git.commit("HEAD") is None:
            raise UserError(
                f"{git.place}: has no commit yet, so there is nothing to compare with",
                hint="without --changed, all of it is judged",
            )
        raise UserError(
            f"{git.place}: no commit {named!r}", hint="`git fetch --tags` may bring it"
        )
    status, out = git.ask("merge-base", wanted, tip, ok=(0, 1))
    commit = out.decode("ascii").split("\n")[0] if status == 0 else ""
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


def _prefix(target: Target, git: LocalGit) -> str:
    """Return the folder of the repository that a tree's root is, with a slash."""
    from vlmend.cli.git_tree import GitTree

    if isinstance(target.tree, GitTree):
        return f"{target.tree.prefix}/" if target.tree.prefix else ""
    return git.text("rev-parse", "--show-prefix")


def _changed_files(
    git: LocalGit, commit: str, revision: str | None, below: str
) -> list[str]:
    """List what differs from a commit, relative to the tree's root.

    In a work tree that is everything: committed since, staged, not staged.
    """
    listing = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
    ends = (commit,) if revision is None else (commit, revision)
    return _names(git.ask("diff", *listing, *ends, *_below(below))[1], below)


def _untracked_files(git: LocalGit, below: str) -> list[str]:
    """List what lies in a work tree and is not known to git, nor to be ignored."""
    listing = ("--others", "--exclude-standard", "-z", "--full-name")
    return _names(git.ask("ls-files", *listing, *_below(below))[1], below)


def _below(folder: str) -> tuple[str, str]:
    return ("--", f":(top,literal){folder}" if folder else ":(top)")


def _names(listed: bytes, below: str) -> list[str]:
    names = filter(None, listed.split(b"\0"))
    return [os.fsdecode(name).removeprefix(below) for name in names]
