"""Running a person's own hooks over a commit of ours, in a throw-away work tree.

Only ``--run-hooks`` leads here: git runs those of a commit, and ``pre-push`` is run as
git would before it pushes. All run without the token; the push itself runs none.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vlmend.cli.commits import NewCommit
from vlmend.cli.errors import Refused, UserError
from vlmend.cli.git_run import GitFailed, GitRunner
from vlmend.cli.workspace import Workspace


def hooks_of(clone: Path) -> Path:
    """Return the folder with the hooks of a user's clone.

    Raises:
        UserError: it has none.
    """
    git = GitRunner(clone)
    named = git.run("config", "--default", "", "--get", "core.hooksPath")
    # Our own settings switch hooks off; what the clone says stands in its files.
    del named
    told = git.run("rev-parse", "--git-common-dir").strip()
    folder = clone / told / "hooks"
    local = Path(told) if Path(told).is_absolute() else clone / told
    with suppress(GitFailed):
        path = git.run(
            "config", "--file", str(local / "config"), "--get", "core.hooksPath"
        ).strip()
        folder = clone / path
    if not folder.is_dir():
        raise UserError(f"{clone}: has no hooks to run")
    return folder.resolve()


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a commit is to be pushed to.

    Attributes:
        url: the repository's address, without a secret.
        branch: the branch there.
        head: the commit that the branch is at; None where there is none.
    """

    url: str
    branch: str
    head: str | None


def commit_with_hooks(
    workspace: Workspace, wanted: NewCommit, hooks: Path, going: Destination
) -> str:
    """Make a commit in a work tree of its own, with the hooks of ``hooks``.

    Args:
        workspace: our clone.
        wanted: the commit.
        hooks: the folder with the hooks.
        going: what ``pre-push`` is told.

    Raises:
        Refused: a hook says no, or changes what is committed.
    """
    # The hooks may look at any file: all of the commit's contents are needed.
    workspace.bring("fork", wanted.parent, lambda _: True)
    with tempfile.TemporaryDirectory(prefix="vlmend-") as scratch:
        place = Path(scratch) / "tree"
        words = ("worktree", "add", "--quiet", "--detach", str(place), wanted.parent)
        workspace.git.run(*words)
        try:
            commit = _committed(GitRunner(place), place, wanted, hooks)
            _ask_pre_push(hooks / "pre-push", place, commit, going)
            return commit
        finally:
            workspace.git.run("worktree", "remove", "--force", str(place))


def _committed(git: GitRunner, place: Path, wanted: NewCommit, hooks: Path) -> str:
    for path, content in wanted.files.items():
        (place / path).write_bytes(content)
        git.run("add", "--", path)
    before = git.run("write-tree").strip()
    try:
        git.run(
            "commit",
            "--quiet",
            "--cleanup=verbatim",
            *(("-S",) if wanted.signing else ()),
            "-F",
            "-",
            given=wanted.message.encode(),
            env=wanted.identity.variables(),
            settings=(*wanted.signing, f"core.hooksPath={hooks}"),
        )
    except GitFailed as error:
        raise Refused(f"a commit hook said no: {error.told}") from None
    commit = git.run("rev-parse", "HEAD").strip()
    if git.run("rev-parse", f"{commit}^{{tree}}").strip() != before:
        raise Refused("a commit hook changed what is committed; nothing is pushed")
    return commit


def _ask_pre_push(hook: Path, place: Path, commit: str, going: Destination) -> None:
    if not (hook.is_file() and os.access(hook, os.X_OK)):
        return  # git passes over what cannot be run, too
    ref = f"refs/heads/{going.branch}"
    update = f"{ref} {commit} {ref} {going.head or '0' * len(commit)}\n"
    try:
        done = subprocess.run(
            [str(hook), "fork", going.url],
            input=update.encode(),
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise Refused(f"{hook}: cannot be run: {error.strerror}") from None
    if done.returncode:
        told = " ".join(done.stdout.decode("utf-8", "replace").split())
        raise Refused(f"the pre-push hook said no: {told}; nothing is pushed")
