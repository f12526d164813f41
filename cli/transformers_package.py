"""Facts about the Transformers release that ``--transformers`` names.

It may be a folder (a checkout, an unpacked package), a version whose facts are shipped,
or any other version: its wheel is downloaded from the configured index, checked against
the index's digest, and read where it lies. Nothing of it is unpacked or run.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.version import InvalidVersion, Version

from vlmend.cli.cache import cache_directory, make_private
from vlmend.cli.errors import UserError
from vlmend.cli.releases import (
    Progress,
    Unreachable,
    index_session,
    package_finders,
    patiently,
    silent,
)
from vlmend.codemods.analysis.tree import MAX_FILE_BYTES, DirectoryTree, TreeError

if TYPE_CHECKING:
    from unearth import PackageFinder

    from vlmend.codemods.analysis.transformers_facts import TransformersFacts
    from vlmend.codemods.analysis.tree import SourceTree

_PACKAGE: Final = "transformers"


def transformers_facts(spec: str, *, progress: Progress = silent) -> TransformersFacts:
    """Return the facts of the release that was asked for.

    Args:
        spec: a folder, a wheel, or a version.
        progress: told about a download.

    Raises:
        UserError: it is none of these, there is no such release, or it cannot be read.
    """
    from vlmend.codemods.analysis.transformers_catalog import available_versions, load

    place = Path(spec)
    if place.is_dir():
        return _read(DirectoryTree(place), spec)
    if place.is_file():
        return _read_wheel(place, spec)
    try:
        version = Version(spec)
    except InvalidVersion:
        raise UserError(
            f"--transformers {spec}: neither a folder nor a version",
            hint=f"shipped: {', '.join(available_versions())}",
        ) from None
    if str(version) in available_versions():
        return load(str(version))
    return _read_wheel(_wheel(version, progress), spec)


def _read(tree: SourceTree, spec: str) -> TransformersFacts:
    from vlmend.codemods.analysis.transformers_reader import (
        TransformersError,
        read_transformers,
    )

    try:
        return read_transformers(tree)
    except (TransformersError, TreeError) as error:
        raise UserError(f"--transformers {spec}: {error}") from None
    except (SyntaxError, ValueError) as error:
        raise UserError(f"--transformers {spec}: does not parse: {error}") from None


def _read_wheel(path: Path, spec: str) -> TransformersFacts:
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(_ZipTree(archive), spec)
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"--transformers {spec}: cannot be read: {error}") from None


@dataclass(frozen=True)
class _ZipTree:
    """A wheel, read member by member."""

    archive: zipfile.ZipFile
    _sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for member in self.archive.infolist():
            self._sizes[member.filename] = member.file_size

    def exists(self, path: str) -> bool:
        return path in self._sizes and not path.endswith("/")

    def is_dir(self, path: str) -> bool:
        prefix = f"{path.rstrip('/')}/" if path else ""
        return any(name.startswith(prefix) for name in self._sizes)

    def python_files(self, folder: str) -> Iterator[str]:
        prefix = f"{folder.rstrip('/')}/" if folder else ""
        for name in sorted(self._sizes):
            if name.startswith(prefix) and name.endswith(".py"):
                yield name

    def read(self, path: str) -> bytes:
        if not self.exists(path):
            raise TreeError(path, "does not exist")
        if self._sizes[path] > MAX_FILE_BYTES:
            raise TreeError(path, f"is larger than {MAX_FILE_BYTES >> 20} MiB")
        try:
            return self.archive.read(path)
        except (zipfile.BadZipFile, OSError, RuntimeError, ValueError) as error:
            raise TreeError(path, f"cannot be read: {error}") from error


def _wheel(version: Version, progress: Progress) -> Path:
    """Return the wheel of a version, from the cache or else from the index."""
    from vlmend.cli.pip_config import read_pip_config

    store = cache_directory() / _PACKAGE
    kept = store / f"{_PACKAGE}-{version}.whl"
    if kept.is_file():
        return kept
    make_private(store)
    config = read_pip_config()
    troubles: list[str] = []
    with (
        tempfile.TemporaryDirectory(dir=store, prefix="partial-") as folder,
        index_session(config) as session,
    ):
        for finder in package_finders(config, session):
            try:
                found = patiently(partial(_find, finder, version))
                if found is None:
                    continue
                fetch = partial(_download, finder, found, Path(folder), progress)
                shutil.move(patiently(fetch), kept)
            except (Unreachable, ValueError, OSError) as error:
                troubles.append(str(error))
            else:
                return kept
    because = "; ".join(troubles) or "the configured index has no wheel of it"
    raise UserError(
        f"--transformers {version}: {because}",
        hint="a folder with the package works without a network",
    )


def _find(finder: PackageFinder, version: Version) -> object | None:
    for package in finder.find_all_packages(_PACKAGE, allow_yanked=True):
        is_wanted = package.version and Version(package.version) == version
        if is_wanted and package.link.filename.endswith(".whl"):
            return package.link
    return None


def _download(
    finder: PackageFinder, link: object, folder: Path, progress: Progress
) -> Path:
    from unearth.errors import HashMismatchError, UnpackError

    def report(_: object, completed: int, total: int | None) -> None:
        progress("downloading transformers", completed, total)

    try:
        return finder.download(link, folder, download_reporter=report)  # type: ignore[arg-type]
    except (HashMismatchError, UnpackError) as error:
        raise UserError(f"transformers: cannot be used: {error}") from None
