"""Making one commit without a work tree, telling whose a commit is, and pushing it."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vlmend.cli.errors import Refused, UserError
from vlmend.cli.git_run import GitFailed, GitRunner
from vlmend.cli.workspace import Workspace, digest_of

FINGERPRINTS: Final = "Vlmend-Fingerprints"
CHANGE: Final = "Vlmend-Change"
DISCLOSURE: Final = "Co-authored-by"
SIGN_OFF: Final = "Signed-off-by"
_IDENTITY: Final = re.compile(r"(?P<name>.+) <(?P<email>[^<>\s]+)>(?: \d+ [+-]\d+)?")
_NEW_FILE: Final = "100644"
_TRIED: Final = "vlmend/access"
"""A branch that is never made: its name is what a push is tried with."""
_NO_BLOB: Final = "0" * 40
"""What git lists in place of a file's content where there is no file."""
_ACTIONS_BOT: Final = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a commit is by."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"

    @property
    def is_bot(self) -> bool:
        return "[bot]" in str(self)

    def variables(self) -> dict[str, str]:
        """Return what tells git that author and committer are this person."""
        return {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", self.name), ("EMAIL", self.email))
        }


def configured_identity(place: Path | None, *, person: bool) -> Identity:
    """Return the identity that git is configured with, or the Actions bot.

    Args:
        place: a clone whose configuration counts; None for the user's own only.
        person: only a real person will do.

    Raises:
        UserError: nobody is configured.
        Refused: a person is wanted, and it is a bot.
    """
    git = GitRunner(place or Path.home())
    found = None
    with suppress(GitFailed):
        told = git.run("var", "GIT_AUTHOR_IDENT", settings=("user.useConfigOnly=true",))
        found = _IDENTITY.fullmatch(told.strip())
    identity = None if found is None else Identity(found["name"], found["email"])
    if identity is None and not person and os.environ.get("GITHUB_ACTIONS"):
        return Identity(*_ACTIONS_BOT)
    if identity is None:
        raise UserError(
            "git does not know who you are",
            hint="git config --global user.name NAME; git config --global user.email X",
        )
    if person and identity.is_bot:
        raise Refused(f"{identity}: a bot does not sign off; a person must")
    return identity


def signing_settings(place: Path | None) -> tuple[str, ...]:
    """Return the settings by which a user's commits are signed; empty if they are not.

    Which program signs is taken from the user's own configuration by git itself.
    """
    git = GitRunner(place or Path.home())
    wanted = "false"
    with suppress(GitFailed):
        wanted = git.run("config", "--type=bool", "--get", "commit.gpgSign").strip()
    if wanted != "true":
        return ()
    found = ["commit.gpgSign=true"]
    for key in ("gpg.format", "user.signingKey"):
        with suppress(GitFailed):
            found.append(f"{key}={git.run('config', '--get', key).strip()}")
    return tuple(found)


@dataclass(frozen=True)
class NewCommit:
    """A commit that is to be made: one parent, some files replaced or added."""

    parent: str
    files: Mapping[str, bytes]
    message: str
    identity: Identity
    signing: tuple[str, ...] = ()


def make_commit(workspace: Workspace, wanted: NewCommit) -> str:
    """Write the commit into the workspace's objects; no ref and no index changes."""
    git = workspace.git
    entries = workspace.entries(wanted.parent)
    lines: list[bytes] = []
    for path, content in wanted.files.items():
        blob = git.run("hash-object", "-w", "--stdin", given=content).strip()
        name = os.fsencode(path)
        mode = entries[path].mode if path in entries else _NEW_FILE
        lines.append(f"{mode} {blob}\t".encode() + name + b"\0")
    with tempfile.TemporaryDirectory(prefix="vlmend-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git.run("read-tree", wanted.parent, env=index)
        git.run("update-index", "-z", "--index-info", given=b"".join(lines), env=index)
        tree = git.run("write-tree", "--missing-ok", env=index).strip()
    sign = ("-S",) if wanted.signing else ()
    return git.run(
        "commit-tree",
        *sign,
        "-p",
        wanted.parent,
        "-F",
        "-",
        tree,
        given=wanted.message.encode("utf-8", "replace"),
        env=wanted.identity.variables(),
        settings=wanted.signing,
    ).strip()


def trailer(workspace: Workspace, commit: str, key: str) -> list[str]:
    """Read a trailer back, as git understands the message."""
    told = workspace.git.run(
        "log", "-1", f"--format=%(trailers:key={key},valueonly)", commit
    )
    return [line.strip() for line in told.splitlines() if line.strip()]


def require_sign_off(workspace: Workspace, commit: str, identity: Identity) -> None:
    """Read the sign-off back: it must be the author's and the committer's own.

    Raises:
        UserError: git reads something else than what was meant.
    """
    told = workspace.git.run("log", "-1", "--format=%an <%ae>%n%cn <%ce>", commit)
    people = set(told.splitlines()) | set(trailer(workspace, commit, SIGN_OFF))
    if people != {str(identity)} or not trailer(workspace, commit, SIGN_OFF):
        raise UserError(
            f"the sign-off does not read back as {identity}:"
            f" {', '.join(sorted(people))}"
        )


# --- whose a branch is ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BranchState:
    """What a branch in the fork holds.

    Attributes:
        head: the commit that it is at.
        ours: it is one commit of vlmend's that nobody touched.
        change: digest of that commit's change.
        fingerprints: what it mends.
        parent: the commit that it is based on.
        person: who else committed there.
    """

    head: str
    ours: bool
    change: str = ""
    fingerprints: tuple[str, ...] = ()
    parent: str = ""
    person: str = ""


def seal(changed: Mapping[str, tuple[str, str]]) -> str:
    """Return a digest of exactly what a commit changes, file by file."""
    return digest_of(f"{p} {a} {b}" for p, (a, b) in sorted(changed.items()))


def seal_of(workspace: Workspace, parent: str, files: Mapping[str, bytes]) -> str:
    """Return the seal that a commit of these files will have."""
    entries = workspace.entries(parent)
    return seal(
        {
            path: (
                entries[path].blob if path in entries else _NO_BLOB,
                blob_id(content),
            )
            for path, content in files.items()
        }
    )


def blob_id(content: bytes) -> str:
    """Return the id that git gives to a file's content."""
    head = b"blob %d\0" % len(content)
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def look_at_branch(workspace: Workspace, head: str) -> BranchState:
    """Say whether a branch is one commit as vlmend left it.

    A commit that was amended, rebased or merged by somebody no longer has the same
    content, or no longer the same author and committer.
    """
    keys = (FINGERPRINTS, CHANGE, SIGN_OFF)
    trailers = "%x00".join(f"%(trailers:key={key},valueonly)" for key in keys)
    told = workspace.git.run(
        "log", "-1", f"--format=%P%x00%an <%ae>%x00%cn <%ce>%x00{trailers}", head
    )
    parents, author, committer, *values = told.split("\0")
    prints, named = _words(values[0]), _words(values[1])
    if " " in parents or not parents or len(named) != 2 or not prints:
        return BranchState(head, ours=False, person=committer)
    if author != committer:
        return BranchState(head, ours=False, person=committer)
    if values[2].strip():
        # Signed off: a person has taken it over.
        return BranchState(head, ours=False, person=author)
    if seal(workspace.changed(parents, head)) != named[1]:
        return BranchState(head, ours=False, person=committer)
    return BranchState(head, True, named[0], tuple(sorted(prints)), parents)


def _words(value: str) -> list[str]:
    return re.findall(r"\b[0-9a-f]{12}(?:[0-9a-f]{4})?\b", value)


class Rejected(UserError):
    """Somebody else moved the branch in the meantime."""


def push(workspace: Workspace, commit: str, branch: str, expected: str | None) -> None:
    """Push one commit to one branch of the fork, only if it is still as we saw it.

    Args:
        workspace: has the commit.
        commit: full id.
        branch: name, checked.
        expected: the commit that the branch was seen at; None where there was none.

    Raises:
        Rejected: the branch moved meanwhile.
        UserError: the forge refuses.
    """
    ref = f"refs/heads/{branch}"
    try:
        workspace.git.network(
            "push",
            "--quiet",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--recurse-submodules=no",
            f"--force-with-lease={ref}:{expected or ''}",
            "fork",
            f"{commit}:{ref}",
        )
    except GitFailed as error:
        raise _push_failure(branch, error) from None


def require_push(workspace: Workspace, commit: str) -> None:
    """Ask the forge whether the token may push, by a push that ends before it writes.

    Raises:
        UserError: it may not.
    """
    ref = f"refs/heads/{_TRIED}"
    words = ("push", "--dry-run", "--quiet", "--no-verify", "fork")
    try:
        workspace.git.network(*words, f"{commit}:{ref}")
    except GitFailed as error:
        told = error.told.casefold()
        if "403" not in told and "denied" not in told:
            raise
        raise UserError(
            "the token may not push to the fork",
            hint="it needs 'Contents' and 'Pull requests', both read and write; in a"
            " workflow: `permissions:` with `contents: write` and"
            " `pull-requests: write`",
        ) from None


def _push_failure(branch: str, error: GitFailed) -> UserError:
    told = error.told.casefold()
    inside = re.search(r"'refs/heads/([^']+)' exists; cannot create", error.told)
    if inside is not None:
        return UserError(
            f"{branch}: not pushed: a branch {inside[1]!r} is in the way",
            hint="git has no room for both names: rename or delete that branch",
        )
    if "stale info" in told or "already exists" in told or "cannot lock ref" in told:
        return Rejected(f"{branch}: was moved by somebody else meanwhile")
    if "workflow" in told and "scope" in told:
        return UserError(
            f"{branch}: not pushed: the token lacks the 'workflow' scope",
            hint="sync the fork, so that only our own commit is pushed",
        )
    if "protected" in told or "hook declined" in told or "rule violations" in told:
        return UserError(
            f"{branch}: not pushed: a protection rule of the fork refuses it",
            hint="exempt vlmend/* from the rule",
        )
    if "403" in told or "denied" in told:
        return UserError(
            f"{branch}: not pushed: the token may not write to the fork",
            hint="it needs 'Contents', read and write",
        )
    return UserError(f"{branch}: not pushed: {error.message}")
