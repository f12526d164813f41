"""Where a regression test belongs: beside its nearest kin, where CI runs it."""

from __future__ import annotations

import re
from typing import Final

from vlmend.codemods.analysis.tree import SourceTree, TreeError

FOLDERS: Final = ("tests/model_executor", "tests/models")
"""Folders with tests of single models, nearest first: the first is run as a whole."""

STEPS: Final = (
    ".buildkite/test_areas/model_executor.yaml",
    ".buildkite/test_areas/models_basic.yaml",
    ".buildkite/test-pipeline.yaml",
)
"""Where trees of all eras list the commands of their CI."""

_NO_FAMILY: Final = ("", "singles", "all")
_COMMAND: Final = re.compile(r"^\s*-?\s*(?:\w+=\S+\s+)*pytest\s+(?P<words>.*)$")


def place_of(stem: str, scope: str, tree: SourceTree) -> str:
    """Return a path that the tree has not given yet.

    Args:
        stem: what the file is called, without ``test_`` and ``.py``.
        scope: the family that a draft is about: two drafts must not add one file.
        tree: the target.
    """
    folder = next((f for f in FOLDERS if _has_tests(tree, f)), FOLDERS[-1])
    if scope not in _NO_FAMILY:
        stem += "_" + "".join(c if c.isalnum() else "_" for c in scope)
    name, number = f"{folder}/test_{stem}.py", 2
    while tree.exists(name):
        name, number = f"{folder}/test_{stem}_{number}.py", number + 1
    return name


def _has_tests(tree: SourceTree, folder: str) -> bool:
    if not tree.is_dir(folder):
        return False
    start = f"{folder}/test_"
    return any(name.startswith(start) for name in tree.python_files(folder))


def selected_by(file: str, tree: SourceTree) -> str:
    """Return the line of the tree's CI that runs a test, or nothing if none is seen."""
    wanted = file.removeprefix("tests/")
    for name in STEPS:
        try:
            lines = tree.read(name).decode("utf-8", "replace").splitlines()
        except TreeError:
            continue
        for number, line in enumerate(lines, start=1):
            command = _COMMAND.match(line)
            if command is not None and any(
                _covers(word.removeprefix("tests/"), wanted)
                for word in command["words"].split()
            ):
                return f"{name}:{number}"
    return ""


def _covers(word: str, file: str) -> bool:
    folder = word.rstrip("/")
    return word == file or (bool(folder) and file.startswith(f"{folder}/"))
