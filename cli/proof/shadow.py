"""A tree with a patch laid over it, without a byte of the tree being touched.

The shadow consists of links: a folder is real only where a patched file stands below
it. Python sees one package, whose patched modules are ours and whose others are the
tree's own files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from vlmend.cli.errors import UserError
from vlmend.codemods.analysis.tree import SourceTree, TreeError

_SKIPPED = frozenset({"__pycache__"})


def make_shadow(root: Path, place: Path, patched: Mapping[str, bytes]) -> Path:
    """Make a folder that shows the packages of ``root`` with some files replaced.

    Args:
        root: the folder that the paths of ``patched`` are relative to.
        place: the folder to make; what is there goes away.
        patched: file to new content.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    replaced = {tuple(name.split("/")): data for name, data in patched.items()}
    tops = {parts[0] for parts in replaced} | {"vllm"}
    for entry in sorted(root.iterdir()):
        # Only packages: a stray torch.py beside them must not be imported.
        if entry.name in tops or (entry / "__init__.py").is_file():
            _link(entry, place / entry.name, (entry.name,), replaced)
    return place


def _link(
    source: Path,
    target: Path,
    here: tuple[str, ...],
    replaced: Mapping[tuple[str, ...], bytes],
) -> None:
    if here in replaced:
        target.write_bytes(replaced[here])
        return
    if not any(parts[: len(here)] == here for parts in replaced):
        target.symlink_to(source, target_is_directory=source.is_dir())
        return
    target.mkdir()
    seen = set[str]()
    for entry in os.scandir(source):
        if entry.name not in _SKIPPED:
            seen.add(entry.name)
            _link(Path(entry.path), target / entry.name, (*here, entry.name), replaced)
    for parts, data in replaced.items():
        if parts[:-1] == here and parts[-1] not in seen:
            (target / parts[-1]).write_bytes(data)


def export(tree: SourceTree, folder: str, place: Path) -> Path:
    """Write the Python files of a tree that is in no folder, such as a revision.

    Args:
        tree: the tree.
        folder: what of it; everything where it is empty.
        place: where to; nothing is half there, and what is there already is right.

    Raises:
        UserError: a file cannot be read or written.
    """
    if place.is_dir():
        os.utime(place)  # its age says when it was last of use
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=place.parent, prefix="partial-", ignore_cleanup_errors=True
        ) as made:
            for name in tree.python_files(folder):
                target = Path(made, "tree", name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tree.read(name))
            with suppress(FileExistsError):  # another run was faster
                Path(made, "tree").rename(place)
    except TreeError as error:
        raise UserError(f"{error.file}: cannot be read: {error.message}") from None
    except OSError as error:
        if not place.is_dir():
            reason = error.strerror or str(error)
            raise UserError(f"{place}: cannot be written: {reason}") from None
    return place
