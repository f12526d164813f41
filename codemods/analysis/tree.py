"""Source trees: where the code that vlmend reads comes from.

A tree is read-only data addressed by POSIX paths relative to its root. Directories live
here; git revisions and releases are built on the same protocol by the command line, so
that this package needs neither git nor a network.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

Answer = TypeVar("Answer")

MAX_FILE_BYTES = 4 * 1024 * 1024
"""Larger files are reported, not read: the largest model file of vLLM 0.33.0 has 0.2
MB."""


class TreeError(Exception):
    """A file of a tree cannot be had; the message is one line for a person."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file}: {message}" if file else message)
        self.file = file
        self.message = message


class SourceTree(Protocol):
    """Files of one target, addressed by POSIX path relative to its root."""

    def exists(self, path: str) -> bool:
        """Say whether ``path`` names a regular file inside the tree."""
        ...

    def is_dir(self, path: str) -> bool:
        """Say whether ``path`` names a folder inside the tree (``""`` is the root)."""
        ...

    def python_files(self, folder: str) -> Iterator[str]:
        """Yield the ``.py`` files below ``folder``, sorted, without following links."""
        ...

    def read(self, path: str) -> bytes:
        """Return a file's bytes.

        Raises:
            TreeError: the file is absent, unreadable, too large or outside the tree.
        """
        ...


@dataclass(frozen=True)
class DirectoryTree:
    """A folder on disk."""

    root: Path
    _linked: dict[str, bool] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    # Thousands of questions are put to a tree: plain strings are what is fast.

    def _locate(self, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise TreeError(path, "lies outside the tree")
        return os.path.join(self.root, path)  # noqa: PTH118

    def exists(self, path: str) -> bool:
        return os.path.isfile(self._locate(path))  # noqa: PTH113

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(self._locate(path))  # noqa: PTH112

    def python_files(self, folder: str) -> Iterator[str]:
        start = self._locate(folder)
        top = len(os.path.join(self.root, ""))  # noqa: PTH118
        for directory, names, files in os.walk(start):
            names[:] = sorted(
                n for n in names if not n.startswith(".") and n != "__pycache__"
            )
            for name in sorted(files):
                if name.endswith(".py"):
                    place = os.path.join(directory, name)  # noqa: PTH118
                    yield place[top:].replace(os.sep, "/")

    def read(self, path: str) -> bytes:
        place = self._locate(path)
        try:
            if self._is_linked(path):
                real = Path(place).resolve()
                if not real.is_relative_to(self.root.resolve()):
                    raise TreeError(
                        path, "is a link that leaves the tree; not followed"
                    )
            found = os.stat(place)  # noqa: PTH116
            if not stat.S_ISREG(found.st_mode):
                raise TreeError(path, "is no regular file; not read")
            if found.st_size > MAX_FILE_BYTES:
                raise TreeError(
                    path, f"is larger than {MAX_FILE_BYTES >> 20} MiB; not read"
                )
            with open(place, "rb") as stream:  # noqa: PTH123
                return stream.read()
        except OSError as error:
            raise TreeError(
                path, f"cannot be read: {error.strerror or error}"
            ) from error

    def _is_linked(self, path: str) -> bool:
        """Say whether a path below the root, or a folder on the way to it, is a link.

        What is known of folders is remembered.
        """
        folder, _, name = path.rpartition("/")
        if folder not in self._linked:
            self._linked[folder] = bool(folder) and self._is_linked(folder)
        is_link = os.path.islink(os.path.join(self.root, path))  # noqa: PTH114, PTH118
        return self._linked[folder] or (bool(name) and is_link)


@dataclass(frozen=True)
class MemoryTree:
    """Files held in memory; for callers of the library and for small tests."""

    files: Mapping[str, bytes]

    def exists(self, path: str) -> bool:
        return path in self.files

    def is_dir(self, path: str) -> bool:
        prefix = f"{path}/" if path else ""
        return any(name.startswith(prefix) for name in self.files)

    def python_files(self, folder: str) -> Iterator[str]:
        prefix = f"{folder}/" if folder else ""
        yield from sorted(
            name
            for name in self.files
            if name.startswith(prefix) and name.endswith(".py")
        )

    def read(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise TreeError(path, "does not exist") from None


@dataclass(frozen=True)
class SnapshotTree:
    """A tree that is asked each question once: how it was when it was asked first."""

    below: SourceTree
    _known: dict[tuple[str, str], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def _once(self, method: str, path: str, ask: Callable[[str], Answer]) -> Answer:
        key = (method, path)
        if key not in self._known:
            try:
                self._known[key] = ask(path)
            except TreeError as error:
                self._known[key] = error
        answer = self._known[key]
        if isinstance(answer, TreeError):
            raise TreeError(answer.file, answer.message)
        return answer  # type: ignore[no-any-return]

    def exists(self, path: str) -> bool:
        return self._once("exists", path, self.below.exists)

    def is_dir(self, path: str) -> bool:
        return self._once("is_dir", path, self.below.is_dir)

    def python_files(self, folder: str) -> Iterator[str]:
        yield from self._once(
            "python_files", folder, lambda f: tuple(self.below.python_files(f))
        )

    def read(self, path: str) -> bytes:
        return self._once("read", path, self.below.read)


@dataclass(frozen=True)
class OverlayTree:
    """A tree with some files replaced, added or (``None``) taken away.

    This is how a patch is tried before it is believed.
    """

    below: SourceTree
    replaced: Mapping[str, bytes | None] = field(default_factory=dict)

    def exists(self, path: str) -> bool:
        if path in self.replaced:
            return self.replaced[path] is not None
        return self.below.exists(path)

    def is_dir(self, path: str) -> bool:
        prefix = f"{path}/" if path else ""
        return self.below.is_dir(path) or any(
            name.startswith(prefix) and content is not None
            for name, content in self.replaced.items()
        )

    def python_files(self, folder: str) -> Iterator[str]:
        found = list(self.below.python_files(folder))
        known = set(found)
        prefix = f"{folder}/" if folder else ""
        added = {
            name
            for name, content in self.replaced.items()
            if content is not None
            and name.startswith(prefix)
            and name.endswith(".py")
            and name not in known
        }
        if added:
            found = sorted(known | added, key=_walked)
        yield from (n for n in found if self.replaced.get(n, b"") is not None)

    def read(self, path: str) -> bytes:
        if path not in self.replaced:
            return self.below.read(path)
        content = self.replaced[path]
        if content is None:
            raise TreeError(path, "does not exist")
        return content


def _walked(path: str) -> list[tuple[bool, str]]:
    """Order paths as :class:`DirectoryTree` comes upon them: files, then folders."""
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]
