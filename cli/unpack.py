"""Unpacking a source distribution that nobody has vouched for.

The archive is read as a stream and written file by file: only regular files, only what
an analysis reads, only below the destination. Links and devices are not created, so
nothing that is written later can pass through one.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol, cast

from vlmend.cli.errors import UserError

MAX_TOTAL_BYTES: Final = 1 << 30
"""Bytes that an archive may unpack to, wanted or not: 0.33.0 has 137 MB."""
MAX_FILE_BYTES: Final = 16 << 20
"""Bytes of one wanted file; the largest of 0.33.0 has 0.4 MB."""
MAX_MEMBERS: Final = 100_000
"""Members of an archive: 0.33.0 has 9,629."""

_CHUNK: Final = 1 << 16
_KEPT_FILES: Final = frozenset(
    {
        ".github/PULL_REQUEST_TEMPLATE.md",
        "AGENTS.md",
        "LICENSE",
        "PKG-INFO",
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "tests/AGENTS.md",
    }
)
_KEPT_FOLDERS: Final = {
    "requirements": (".txt", ".in"),
    "tests": (".py",),
    "vllm": (".py",),
}


class UnpackProgress(Protocol):
    """Told how far an archive has been read."""

    def __call__(self, done: int, total: int) -> None:
        """Take the compressed bytes read so far, and the size of the archive."""
        ...


class ArchiveError(UserError):
    """An archive that cannot be used: damaged, hostile, or no source distribution."""


class _Unusable(Exception):
    """Why an archive is refused; becomes an ArchiveError that names the archive."""


@dataclass(slots=True)
class _Metered:
    """A decompressed stream that ends in a refusal: gzip can unpack to a thousandfold.

    Counting what is really read also covers what the headers keep quiet about.
    """

    stream: IO[bytes]
    bytes_left: int

    def read(self, size: int) -> bytes:
        chunk = self.stream.read(size)
        self.bytes_left -= len(chunk)
        if self.bytes_left < 0:
            raise _Unusable("it unpacks to more than a release of vLLM ever has")
        return chunk


def is_wanted(path: str) -> bool:
    """Say whether a file of a release is worth unpacking.

    Args:
        path: POSIX path relative to the root of the release.
    """
    if path in _KEPT_FILES:
        return True
    folder, slash, _ = path.partition("/")
    if not slash:
        # Where requirements stood before they had a folder.
        return path.startswith("requirements") and path.endswith(".txt")
    return path.endswith(_KEPT_FOLDERS.get(folder, ()))


def unpack_sdist(
    archive: Path,
    destination: Path,
    *,
    progress: UnpackProgress | None = None,
    max_total_bytes: int = MAX_TOTAL_BYTES,
) -> int:
    """Unpack the readable part of a source distribution.

    The leading folder (``vllm-0.21.0/``) is dropped. Members that are not regular files
    are passed over; a member whose name leads out of the archive condemns all of it.

    Args:
        archive: a ``.tar.gz`` file.
        destination: an existing, empty folder. On failure it holds a partial tree that
            the caller throws away; unpack into a temporary folder and rename it.
        progress: told about compressed bytes read.
        max_total_bytes: bound on the bytes that all members together unpack to.

    Returns:
        The number of files written.

    Raises:
        ArchiveError: the archive is damaged, hostile or not a source distribution.
        UserError: the destination cannot be written.
    """
    written = 0
    try:
        with archive.open("rb") as stream:
            total = os.fstat(stream.fileno()).st_size
            for name, content, size in _members(stream, max_total_bytes):
                if progress is not None:
                    progress(stream.tell(), total)
                if not is_wanted(name):
                    continue
                if size > MAX_FILE_BYTES:
                    raise _Unusable(f"{name} has {size >> 20} MiB")
                _write(destination, name, content)
                written += 1
            if progress is not None:
                progress(total, total)
    except _Unusable as error:
        raise ArchiveError(f"{archive.name}: not unpacked: {error}") from None
    except (
        tarfile.TarError,
        EOFError,
        zlib.error,
        ValueError,
        RecursionError,
    ) as error:
        raise ArchiveError(
            f"{archive.name}: not unpacked: the archive is damaged or cut short"
            f" ({str(error) or type(error).__name__})"
        ) from None
    except OSError as error:
        # gzip reports a bad header or checksum as a bare OSError without a number.
        if error.errno is None:
            raise ArchiveError(
                f"{archive.name}: not unpacked: the archive is damaged ({error})"
            ) from None
        place = error.filename or destination
        raise UserError(
            f"cannot unpack {archive.name}: {place}: {error.strerror}"
        ) from None
    if not written:
        raise ArchiveError(
            f"{archive.name}: not a source distribution of vLLM: no Python file below"
            " vllm/ in it"
        )
    return written


def _members(
    stream: IO[bytes], max_total_bytes: int
) -> Iterator[tuple[str, IO[bytes], int]]:
    """Yield (path without the leading folder, content, size) of each regular file."""
    with gzip.GzipFile(fileobj=stream, mode="rb") as unzipped:
        metered = cast(
            "IO[bytes]", _Metered(cast("IO[bytes]", unzipped), max_total_bytes)
        )
        # "r|" reads strictly forward: no index of the whole archive is built first, so
        # what is hostile further on is met by the meter before it is met by the disk.
        with tarfile.open(fileobj=metered, mode="r|", encoding="utf-8") as archive:
            for count, member in enumerate(archive):
                if count >= MAX_MEMBERS:
                    raise _Unusable(
                        "it has more members than a release of vLLM ever has"
                    )
                path = _safe_path(member.name)
                if member.isreg() and member.sparse is None and len(path.parts) > 1:
                    content = archive.extractfile(member)
                    if content is not None:
                        yield "/".join(path.parts[1:]), content, member.size
        # The checksum of the whole stands at its very end, behind the last member.
        while metered.read(_CHUNK):
            pass


def _safe_path(name: str) -> PurePosixPath:
    """Return the member's path, or refuse an archive that reaches outside itself."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise _Unusable(f"its member {_shown(name)} leads out of the archive")
    # Backslashes and drive letters are separators elsewhere; control characters
    # would be printed at someone's terminal.
    if "\\" in name or (len(name) > 1 and name[1] == ":") or _shown(name) != name:
        raise _Unusable(f"its member {_shown(name)} has a name that is not portable")
    return path


def _shown(name: str) -> str:
    return "".join("?" if unicodedata.category(c)[0] == "C" else c for c in name)


def _write(destination: Path, name: str, content: IO[bytes]) -> None:
    place = destination / name
    # "x": a second member of the same name is refused instead of overwriting the first.
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            while chunk := content.read(_CHUNK):
                file.write(chunk)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        if not destination.is_dir():
            raise
        raise _Unusable(f"its member {name} is there twice, or a folder too") from None
