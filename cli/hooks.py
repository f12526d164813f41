"""Running a person's own commit hooks over a commit of ours, in a throw-away work tree.

Only ``--run-hooks`` leads here. The hooks run without the token; pushing runs none.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
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


def commit_with_hooks(workspace: Workspace, wanted: NewCommit, hooks: Path) -> str:
    """Make a commit in a work tree of its own, with the hooks of ``hooks``.

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
            return _committed(GitRunner(place), place, wanted, hooks)
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
