"""Where a file of the tree is for those who read a report: CI, an editor."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from vlmend.cli.targets import Target


def below_workspace(target: Target, file: str) -> str:
    """Return a path relative to the folder that a CI run, or this command, is in.

    A file of a tree that lies elsewhere (a release, a revision) keeps its path.
    """
    if target.root is None or target.kind != "directory":
        return file
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    if not target.root.is_relative_to(workspace):
        return file
    folder = PurePosixPath(target.root.relative_to(workspace).as_posix())
    return (folder / file).as_posix()


def as_uri(path: str) -> str:
    """Return a relative path as a relative URI."""
    return quote(path, safe="/-._~", errors="surrogateescape")
