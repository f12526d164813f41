"""What vlmend keeps between runs: releases that were unpacked, facts that were read.

Everything here can be deleted at any time. A cache that is damaged, locked, read-only
or written by a newer vlmend is an empty cache, never an error.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from vlmend.cli.errors import UserError

CACHE_VARIABLE: Final = "VLMEND_CACHE_DIR"
"""Environment variable that names the folder to use instead of the user's cache."""

_FORMAT: Final = 1
_MAX_BYTES: Final = 256 << 20
_KEEP_SHARE: Final = 0.6
_DAY: Final = 86_400
_READ_PATIENCE: Final = 0.25
_WRITE_PATIENCE: Final = 2.0
_SUM_BYTES: Final = 4
_BATCH: Final = 500


def cache_directory() -> Path:
    """Return the folder for everything that vlmend keeps; it may not exist yet."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("vlmend", appauthor=False)


def make_private(directory: Path) -> None:
    """Create a folder of the cache that only its owner can write to.

    Raises:
        UserError: it cannot be created.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{directory}: cannot be created: {error.strerror}",
            hint=f"set {CACHE_VARIABLE} to a folder that can be written",
        ) from error


class FactsStore:
    """Small values under content-hash keys, in one SQLite file.

    Reads are answered from memory after :meth:`get_many` has fetched the keys of a run
    in one go. Writes wait in memory for :meth:`flush`, which stores all of them in one
    transaction; a process that dies before it loses nothing but time.

    Attributes:
        path: the database file.
    """

    def __init__(
        self, path: Path | None = None, *, max_bytes: int = _MAX_BYTES
    ) -> None:
        self.path = path or cache_directory() / "facts.sqlite3"
        self._max_bytes = max_bytes
        self._loaded: dict[bytes, bytes] = {}
        self._absent: set[bytes] = set()
        self._pending: dict[bytes, bytes] = {}
        self._stale: set[bytes] = set()
        self._reader: sqlite3.Connection | None = None
        self._opened = False
        self._damaged = False
        self._frozen = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.flush()
        self.close()

    def get(self, key: bytes) -> bytes | None:
        """Return the value that was put under ``key``, or None."""
        value = self._loaded.get(key)
        if value is None and key not in self._absent:
            self.get_many((key,))
            value = self._loaded.get(key)
        return value

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the values of those ``keys`` that are known, in one query."""
        wanted = tuple(dict.fromkeys(keys))
        asked = [k for k in wanted if k not in self._loaded and k not in self._absent]
        for start in range(0, len(asked), _BATCH):
            batch = asked[start : start + _BATCH]
            self._loaded.update(self._fetch(batch))
            self._absent.update(key for key in batch if key not in self._loaded)
        return {key: self._loaded[key] for key in wanted if key in self._loaded}

    def put(self, key: bytes, value: bytes) -> None:
        """Keep ``value`` under ``key`` at the next :meth:`flush`."""
        self._loaded[key] = value
        self._pending[key] = value

    def put_many(self, items: Mapping[bytes, bytes]) -> None:
        """Keep several values at the next :meth:`flush`."""
        self._loaded.update(items)
        self._pending.update(items)

    def flush(self) -> None:
        """Write what was put since the last flush; does nothing where it cannot."""
        if self._frozen or not (self._pending or self._stale):
            return
        pending, stale = self._pending, self._stale
        self._pending, self._stale = {}, set()
        self.close()
        try:
            make_private(self.path.parent)
        except UserError:
            return
        if self._damaged:
            self._discard()
        try:
            self._write(pending, stale)
        except sqlite3.OperationalError:
            return  # busy, full or read-only: the next run reads the sources again
        except sqlite3.DatabaseError:
            self._discard()
            with contextlib.suppress(sqlite3.Error):
                self._write(pending, set())

    def close(self) -> None:
        """Let go of the file; what was put and not flushed stays in memory."""
        if self._reader is not None:
            with contextlib.suppress(sqlite3.Error):
                self._reader.close()
        self._reader = None
        self._opened = False

    def _fetch(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        reader = self._open()
        if reader is None:
            return
        today = int(time.time()) // _DAY
        marks = ",".join("?" * len(keys))
        # Only question marks are pasted in.
        query = f"SELECT key, value, day FROM facts WHERE key IN ({marks})"
        try:
            rows = reader.execute(query, keys).fetchall()
        except sqlite3.Error as error:
            self._note(error)
            return
        for key, value, day in rows:
            checked = _checked(value)
            if checked is None:
                self._damaged = True
                continue
            if day != today:
                self._stale.add(key)
            yield key, checked

    def _open(self) -> sqlite3.Connection | None:
        if self._opened:
            return self._reader
        self._opened = True
        if self._damaged or self._frozen or not self.path.is_file():
            return None
        try:
            reader = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=_READ_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
        except (sqlite3.Error, ValueError):
            return None
        try:
            (version,) = reader.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            self._note(error)
            version = None
        if version == _FORMAT:
            self._reader = reader
            return reader
        reader.close()
        # A newer vlmend's file is left as it is; an older one's makes room.
        if version is not None and version > _FORMAT:
            self._frozen = True
        elif version is not None:
            self._damaged = True
        return None

    def _note(self, error: sqlite3.Error) -> None:
        """Tell a file that is busy, and will be well again, from one that is broken."""
        busy_or_denied = isinstance(error, sqlite3.OperationalError)
        if not busy_or_denied or "no such table" in str(error):
            self._damaged = True

    def _discard(self) -> None:
        for name in (self.path.name, self.path.name + "-journal"):
            with contextlib.suppress(OSError):
                (self.path.parent / name).unlink(missing_ok=True)
        self._damaged = False

    def _write(self, pending: Mapping[bytes, bytes], stale: set[bytes]) -> None:
        today = int(time.time()) // _DAY
        writer = sqlite3.connect(
            self.path, timeout=_WRITE_PATIENCE, isolation_level=None
        )
        with contextlib.closing(writer):
            # A cache need not survive a power cut: every value carries a checksum.
            writer.execute("PRAGMA synchronous=OFF")
            writer.execute("BEGIN IMMEDIATE")
            try:
                (version,) = writer.execute("PRAGMA user_version").fetchone()
                if version > _FORMAT:
                    self._frozen = True
                    writer.execute("ROLLBACK")
                    return
                writer.execute(
                    "CREATE TABLE IF NOT EXISTS facts"
                    " (key BLOB PRIMARY KEY, value BLOB NOT NULL, day INTEGER NOT NULL)"
                )
                writer.execute(f"PRAGMA user_version={_FORMAT}")
                writer.executemany(
                    "UPDATE facts SET day=? WHERE key=?",
                    [(today, key) for key in stale],
                )
                writer.executemany(
                    "INSERT OR REPLACE INTO facts VALUES (?, ?, ?)",
                    [(k, _summed(v), today) for k, v in pending.items()],
                )
                shrunk = self._prune(writer)
                writer.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    writer.execute("ROLLBACK")
                raise
            if shrunk:
                writer.execute("VACUUM")

    def _prune(self, writer: sqlite3.Connection) -> bool:
        """Forget what was not used for longest, once the file outgrew its bound."""
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        (page_size,) = writer.execute("PRAGMA page_size").fetchone()
        if pages * page_size <= self._max_bytes:
            return False
        kept, bound = 0, self._max_bytes * _KEEP_SHARE
        doomed: list[tuple[int]] = []
        # Newest day first, and within a day what was written last.
        for row, size in writer.execute(
            "SELECT rowid, length(value) FROM facts ORDER BY day DESC, rowid DESC"
        ):
            kept += size
            if kept > bound:
                doomed.append((row,))
        writer.executemany("DELETE FROM facts WHERE rowid=?", doomed)
        return bool(doomed)


def _summed(value: bytes) -> bytes:
    return zlib.crc32(value).to_bytes(_SUM_BYTES, "big") + value


def _checked(stored: object) -> bytes | None:
    if not isinstance(stored, bytes) or len(stored) < _SUM_BYTES:
        return None
    value = stored[_SUM_BYTES:]
    if zlib.crc32(value).to_bytes(_SUM_BYTES, "big") != stored[:_SUM_BYTES]:
        return None
    return value
