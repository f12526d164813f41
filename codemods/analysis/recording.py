"""Remembers a whole scan until something that it looked at changes.

A scan asks a tree four kinds of question. When all of them are answered as before, the
scan would come to the same result, so the stored one is returned. Nothing is assumed
about which files matter: what was asked is what counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING

from vlmend.codemods.analysis.tree import SourceTree, TreeError
from vlmend.codemods.codemod import ScanResult

if TYPE_CHECKING:
    from vlmend.codemods.analysis.memory import FactsCache

Question = tuple[str, str]
"""The method that was called and the path it was called with."""


@dataclass
class RecordingTree:
    """A tree that writes down what it was asked and a digest of each answer."""

    below: SourceTree
    log: dict[Question, bytes] = field(default_factory=dict)

    def exists(self, path: str) -> bool:
        answer = self.below.exists(path)
        self.log["exists", path] = _digest(bytes([answer]))
        return answer

    def is_dir(self, path: str) -> bool:
        answer = self.below.is_dir(path)
        self.log["is_dir", path] = _digest(bytes([answer]))
        return answer

    def python_files(self, folder: str) -> Iterator[str]:
        answer = list(self.below.python_files(folder))
        self.log["python_files", folder] = _digest("\0".join(answer).encode())
        yield from answer

    def read(self, path: str) -> bytes:
        try:
            answer = self.below.read(path)
        except TreeError as error:
            self.log["read", path] = _digest(error.message.encode())
            raise
        self.log["read", path] = _digest(answer)
        return answer


class NotingCache:
    """A cache that notes which keys a run had to do with.

    The next run is likely to ask for the same ones: fetched all at once, they cost a
    fraction of what they cost one by one.
    """

    def __init__(self, below: FactsCache) -> None:
        self._below = below
        self._keys: dict[bytes, None] = {}

    def get(self, key: bytes) -> bytes | None:
        self._keys[key] = None
        return self._below.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self._keys[key] = None
        self._below.put(key, value)

    def flush(self) -> None:
        self._below.flush()

    def fetch(self, name: bytes) -> None:
        """Fetch what the run of this name asked for when it was last noted."""
        get_many = getattr(self._below, "get_many", None)
        listed = self._below.get(name) if get_many is not None else None
        if listed is not None and get_many is not None:
            get_many(
                listed[at : at + KEY_BYTES] for at in range(0, len(listed), KEY_BYTES)
            )

    def note(self, name: bytes) -> None:
        """Write down what this run asked for."""
        keys = [key for key in self._keys if len(key) == KEY_BYTES]
        self._below.put(name, b"".join(keys))


KEY_BYTES = 16
"""How long the keys of facts and answers are."""


def unchanged(tree: SourceTree, log: Mapping[Question, bytes]) -> bool:
    """Say whether a tree answers every question as it did when ``log`` was written."""
    return all(
        answer_digest(tree, method, path) == digest
        for (method, path), digest in log.items()
    )


def answer_digest(tree: SourceTree, method: str, path: str) -> bytes:
    """Put one question to a tree and return a digest of the answer."""
    fresh = RecordingTree(tree)
    try:
        if method == "read":
            fresh.read(path)
        elif method == "exists":
            fresh.exists(path)
        elif method == "is_dir":
            fresh.is_dir(path)
        else:
            list(fresh.python_files(path))
    except TreeError:
        pass  # an answer like any other; its digest is in the log
    return fresh.log[method, path]


@dataclass(frozen=True, slots=True)
class StoredScan:
    """A result with the questions that it rests on, one log per tree."""

    logs: tuple[Mapping[Question, bytes], ...]
    result: ScanResult


def dump(trees: tuple[RecordingTree, ...], result: ScanResult) -> bytes:
    """Return a result in the form that :func:`load` takes."""
    stored = StoredScan(tuple(tree.log for tree in trees), result)
    return pickle.dumps(stored, pickle.HIGHEST_PROTOCOL)


def load(stored: bytes | None, trees: tuple[RecordingTree, ...]) -> ScanResult | None:
    """Return a stored result if it still holds for these trees, else nothing."""
    if stored is None:
        return None
    try:
        # The cache is the user's own folder, written by this very code.
        found = pickle.loads(stored)  # noqa: S301
    except Exception:  # noqa: BLE001 - whatever a damaged entry raises, scan again
        return None
    if not isinstance(found, StoredScan) or len(found.logs) != len(trees):
        return None
    for tree, log in zip(trees, found.logs, strict=True):
        if not unchanged(tree.below, log):
            return None
    return found.result


def scan_key(tree: SourceTree, folders: tuple[str, ...], *words: str) -> bytes:
    """Name a scan: which code of vlmend asks which kind of tree for what.

    Args:
        folders: their listings tell one tree from another well enough; whether a stored
            result holds is decided by its log.
        words: whatever else changes the result, such as the codemods' ids.
    """
    digest = blake2b(digest_size=16)
    digest.update(own_code())
    for word in words:
        digest.update(f"\0{word}".encode())
    for folder in folders:
        if tree.is_dir(folder):
            digest.update("\0".join(tree.python_files(folder)).encode())
    return digest.digest()


@cache
def own_code() -> bytes:
    """Return a digest of the code that judges: another version judges anew."""
    digest = blake2b(digest_size=16)
    package = files("vlmend.codemods")
    folders = [package]
    while folders:
        for item in sorted(folders.pop().iterdir(), key=lambda entry: entry.name):
            if item.is_dir():
                folders.append(item)
            elif item.name.endswith((".py", ".json")):
                data = item.read_bytes()
                digest.update(f"{item.name}\0{len(data)}\0".encode())
                digest.update(data)
    return digest.digest()


def _digest(answer: bytes) -> bytes:
    return blake2b(answer, digest_size=16).digest()
