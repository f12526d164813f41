"""A revision of a local git repository, read from git's objects.

Nothing is checked out: one ``ls-tree`` lists the files, one long-lived ``cat-file``
process hands out their bytes. The work tree, the index and the refs are not touched.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.errors import UserError
from vlmend.cli.local_git import LocalGit
from vlmend.codemods.analysis.tree import MAX_FILE_BYTES, TreeError

if TYPE_CHECKING:
    from git import Repo

_REGULAR: Final = ("100644", "100755", "100664")
_LINK: Final = "120000"
_HIDDEN: Final = ("__pycache__",)


def open_repository(path: Path) -> Repo:
    """Open the repository that contains ``path``.

    Raises:
        UserError: git is not installed, or there is no usable repository.
    """
    # GitPython looks for the git program when it is imported, and raises without one;
    # releases and folders must stay readable on a machine that has none.
    try:
        import git
    except ImportError as error:
        raise UserError(
            f"{path}: a revision is read through git, and git was not found",
            hint="install git, or give a folder or a release (vllm==X) instead",
        ) from error
    try:
        return git.Repo(path, search_parent_directories=True)
    except git.InvalidGitRepositoryError:
        raise UserError(
            f"{path}: not a git repository",
            hint="PATH@REV needs one; without @REV the folder itself is read",
        ) from None
    except git.NoSuchPathError:
        raise UserError(f"{path}: no such folder") from None
    except (git.GitError, OSError, ValueError) as error:
        raise UserError(f"{path}: git cannot open it: {_last_line(error)}") from error


def resolve_revision(repo: Repo, revision: str) -> str:
    """Return the full id of the commit that ``revision`` names.

    Raises:
        UserError: there is no such commit.
    """
    import git

    try:
        return str(
            repo.git.rev_parse("--verify", "--quiet", revision + "^{commit}")
        ).strip()
    except git.GitCommandError as error:
        place = repo.working_dir
        detail = _last_line(error)
        if "dubious ownership" in str(error):
            raise UserError(
                f"{place}: git refuses a repository of another owner",
                hint=f"git config --global --add safe.directory {place}",
            ) from None
        raise UserError(
            f"{place}: no commit {revision!r}" + (f" ({detail})" if detail else ""),
            hint="`git fetch --tags` may bring it",
        ) from None


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    object_id: str


@dataclass(frozen=True)
class GitTree:
    """The files of one commit, below one folder of it.

    Attributes:
        repository: a path inside the repository, as for :func:`open_repository`.
        commit: full id of the commit.
        prefix: folder of the commit that is the root of this tree (``""`` for all).
    """

    repository: Path
    commit: str
    prefix: str = ""
    _handle: dict[int, Repo] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the git process behind: it belongs to one process of ours."""
        return {
            "repository": self.repository,
            "commit": self.commit,
            "prefix": self.prefix,
            "_handle": {},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the plain fields back; git is started again at the first read."""
        self.__dict__.update(state)

    @property
    def _repo(self) -> Repo:
        # Two processes that share one pipe to git would read each other's answers.
        pid = os.getpid()
        if pid not in self._handle:
            self._handle[pid] = open_repository(self.repository)
        return self._handle[pid]

    def close(self) -> None:
        """End the git process of this tree."""
        repo = self._handle.pop(os.getpid(), None)
        if repo is not None:
            repo.close()

    @cached_property
    def _entries(self) -> dict[str, _Entry]:
        import git

        treeish = f"{self.commit}:{self.prefix}" if self.prefix else self.commit
        try:
            listing = self._repo.git.ls_tree(
                "-r", "-z", "--full-tree", treeish, stdout_as_string=False
            )
        except git.GitCommandError as error:
            raise UserError(
                f"{self.repository}: cannot list {treeish}: {_last_line(error)}"
            ) from error
        entries: dict[str, _Entry] = {}
        for record in bytes(listing).split(b"\0"):
            head, tab, name = record.partition(b"\t")
            if not tab:
                continue
            mode, _, object_id = head.decode("ascii").split(" ")
            entries[os.fsdecode(name)] = _Entry(mode, object_id)
        return entries

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._entries)

    def exists(self, path: str) -> bool:
        entry = self._entries.get(path)
        return entry is not None and entry.mode in _REGULAR

    def is_dir(self, path: str) -> bool:
        if not path:
            return True
        prefix = path + "/"
        at = bisect_left(self._sorted, prefix)
        return at < len(self._sorted) and self._sorted[at].startswith(prefix)

    def python_files(self, folder: str) -> Iterator[str]:
        prefix = f"{folder}/" if folder else ""
        for name in self._sorted[bisect_left(self._sorted, prefix) :]:
            if not name.startswith(prefix):
                return
            if not name.endswith(".py") or self._entries[name].mode not in _REGULAR:
                continue
            folders = name[len(prefix) :].split("/")[:-1]
            if not any(part.startswith(".") or part in _HIDDEN for part in folders):
                yield name

    def read(self, path: str) -> bytes:
        import git

        entry = self._entries.get(path)
        if entry is None:
            pure = PurePosixPath(path)
            if pure.is_absolute() or ".." in pure.parts:
                raise TreeError(path, "lies outside the tree")
            raise TreeError(path, f"does not exist in {self.commit[:12]}")
        if entry.mode == _LINK:
            raise TreeError(path, "is a link; not followed")
        if entry.mode not in _REGULAR:
            raise TreeError(path, "is not a file")
        try:
            stream = self._repo.odb.stream(bytes.fromhex(entry.object_id))
            # The stream is read to its end in any case: what is left of it would be
            # taken for the answer to the next question.
            content = bytes(stream.read())
        except (git.ODBError, ValueError, OSError) as error:
            raise TreeError(path, f"git cannot read it: {_last_line(error)}") from error
        if len(content) > MAX_FILE_BYTES:
            raise TreeError(
                path, f"is larger than {MAX_FILE_BYTES >> 20} MiB; not read"
            )
        return content


def describe(repository: Path, revision: str = "HEAD") -> str | None:
    """Name a commit by the newest ``v1.2.3`` tag below it, as ``0.21.0-12-gabc``.

    Returns None where there is no such tag, no repository, or no git.
    """
    words = ("describe", "--tags", "--match", "v[0-9]*", revision)
    try:
        text = LocalGit(repository).text(*words)
    except UserError:
        return None
    return text.strip().removeprefix("v") or None


def _last_line(error: BaseException) -> str:
    """Return what git itself said last, without GitPython's own report around it."""
    text = str(getattr(error, "stderr", "") or error)
    text = text.replace("stderr:", " ").strip().strip("'").strip()
    return text.splitlines()[-1].strip() if text else ""
