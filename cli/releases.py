"""Releases of vLLM: found on the configured index, checked, unpacked, kept.

A release that was unpacked once is used without a look at the network. It appears in
the cache by one rename, so a run that is killed, or a second one at the same time,
never leaves half a release where another would find it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from packaging.version import InvalidVersion, Version

from vlmend.cli.cache import cache_directory, make_private
from vlmend.cli.errors import UserError
from vlmend.cli.pip_config import PipConfig, read_pip_config
from vlmend.cli.unpack import ArchiveError, unpack_sdist

if TYPE_CHECKING:
    from unearth import Link, Package, PackageFinder
    from unearth.fetchers import Fetcher, PyPIClient

_T = TypeVar("_T")

PACKAGE: Final = "vllm"
_RECEIPT: Final = ".vlmend.json"
_PARTIAL: Final = "partial-"
_PARTIAL_AGE: Final = 86_400
_TRIES: Final = 3
_PAUSE: Final = 0.5
_NEAREST: Final = 3


class Progress(Protocol):
    """Told what a target is waiting for."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Take one step.

        Args:
            stage: what is going on, for a person: "downloading vllm 0.21.0".
            done: bytes so far.
            total: bytes in all, or None where that is unknown.
        """
        ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Release:
    """An unpacked release.

    Attributes:
        version: as the distribution spells it.
        root: the folder that holds ``vllm/``.
        sha256: of the archive it came from.
    """

    version: str
    root: Path
    sha256: str


@dataclass(frozen=True)
class _Offer:
    version: Version
    link: Link
    finder: PackageFinder


def parse_version(text: str) -> Version:
    """Read the X of ``vllm==X``.

    Raises:
        UserError: it is not a version.
    """
    try:
        return Version(text)
    except InvalidVersion:
        raise UserError(
            f"vllm=={text}: {text!r} is not a version",
            hint="write one exact version, such as vllm==0.21.0",
        ) from None


def get_release(version: Version, *, progress: Progress = silent) -> Release:
    """Return an unpacked release, from the cache or else from the index.

    Args:
        version: the exact version.
        progress: told about the download and the unpacking.

    Raises:
        UserError: there is no such release, the index cannot be reached, or what it
            serves is damaged.
    """
    store = cache_directory() / "releases"
    cached = _cached(store, version)
    if cached is not None:
        return cached
    make_private(store)
    _sweep(store)
    try:
        with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=store) as folder:
            return _fetch(version, Path(folder), store, progress)
    except PermissionError as error:
        raise UserError(
            f"{store}: cannot be written: {error.strerror}",
            hint="set VLMEND_CACHE_DIR to a folder that can be written",
        ) from error
    except OSError as error:
        raise UserError(
            f"vllm=={version}: {error.filename or store}: {error.strerror or error}"
        ) from error


def cached_versions() -> tuple[str, ...]:
    """Return the versions that need no network, newest first."""
    found = _receipts(cache_directory() / "releases")
    return tuple(str(v) for v, _, _ in sorted(found, reverse=True))


def available_versions() -> tuple[Version, ...]:
    """Return the versions that can be read: those of the index, and those at hand.

    Where the index cannot be asked, what is in the cache is all there is.
    """
    found = {Version(text) for text in cached_versions()}
    config = read_pip_config()
    with index_session(config) as session:
        for finder in package_finders(config, session):
            try:
                packages = patiently(partial(_all_packages, finder))
            except (Unreachable, ValueError, OSError):
                continue
            for package in packages:
                if package.link.filename.endswith(".tar.gz"):
                    with contextlib.suppress(InvalidVersion):
                        found.add(Version(package.version or ""))
    return tuple(sorted(found))


def _cached(store: Path, version: Version) -> Release | None:
    for known, root, sha256 in _receipts(store):
        if known == version:
            return Release(str(known), root, sha256)
    return None


def _receipts(store: Path) -> Iterator[tuple[Version, Path, str]]:
    try:
        folders = sorted(store.glob(f"{PACKAGE}-*"))
    except OSError:
        return
    for folder in folders:
        try:
            receipt = json.loads((folder / _RECEIPT).read_bytes())
            version, sha256 = Version(receipt["version"]), str(receipt["sha256"])
        except (OSError, ValueError, TypeError, KeyError, InvalidVersion):
            continue
        if (folder / PACKAGE).is_dir():
            yield version, folder, sha256


def _sweep(store: Path) -> None:
    """Remove what runs that were killed long ago have left."""
    for folder in store.glob(_PARTIAL + "*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _PARTIAL_AGE:
                shutil.rmtree(folder, ignore_errors=True)


def _fetch(
    version: Version, workshop: Path, store: Path, progress: Progress
) -> Release:
    config = read_pip_config()
    with index_session(config) as session:
        offer = _choose(version, session, config)
        archive = _download(offer, workshop / "download", progress)
        tree = workshop / "tree"
        tree.mkdir()
        unpack_sdist(
            archive,
            tree,
            progress=lambda done, total: progress(
                f"unpacking vllm {offer.version}", done, total
            ),
        )
    sha256 = _sha256(archive)
    receipt = {"version": str(offer.version), "sha256": sha256}
    (tree / _RECEIPT).write_text(json.dumps(receipt) + "\n", encoding="utf-8")
    final = store / f"{PACKAGE}-{offer.version}"
    try:
        tree.rename(final)
    except OSError:
        # Another run was faster, or an entry without a receipt is in the way.
        winner = _cached(store, version)
        if winner is not None:
            return winner
        shutil.rmtree(final, ignore_errors=True)
        tree.rename(final)
    return Release(str(offer.version), final, sha256)


@contextlib.contextmanager
def _listening() -> Generator[list[str]]:
    """Collect what unearth only logs: a page that was refused, a host not trusted."""
    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            # Every further index that does not carry vllm answers like this.
            if "(404)" not in text:
                heard.append(text)

    logger, listener = logging.getLogger("unearth"), Listener(logging.WARNING)
    logger.addHandler(listener)
    try:
        yield heard
    finally:
        logger.removeHandler(listener)


@contextlib.contextmanager
def index_session(config: PipConfig) -> Generator[PyPIClient]:
    """Open a connection as pip's own settings say.

    Raises:
        UserError: a proxy or certificate setting cannot be used.
    """
    import httpx2
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers import PyPIClient

    verify = _tls(config)
    indexes = [config.index_url, *config.extra_index_urls]
    mounts: dict[str, httpx2.BaseTransport] = {}
    if config.proxy:
        mounts = {
            f"all://{host}": httpx2.HTTPTransport(verify=False, proxy=config.proxy)
            for host in config.trusted_hosts
        }
    try:
        session = PyPIClient(
            trusted_hosts=config.trusted_hosts,
            verify=verify,
            timeout=config.timeout,
            follow_redirects=True,
            mounts=mounts,
            proxy=config.proxy,
        )
    except (ValueError, httpx2.InvalidURL, ImportError) as error:
        raise UserError(f"proxy {_redacted(config.proxy or '')}: {error}") from None
    session.auth = MultiDomainBasicAuth(
        prompting=False, index_urls=[url for url in indexes if url]
    )
    with session:
        yield session


def _tls(config: PipConfig) -> ssl.SSLContext | bool:
    if config.cert is None and config.client_cert is None:
        return True
    place = config.cert
    try:
        if place is None:
            context = ssl.create_default_context()
        elif Path(place).is_dir():
            context = ssl.create_default_context(capath=place)
        else:
            context = ssl.create_default_context(cafile=place)
        place = config.client_cert
        if place is not None:
            context.load_cert_chain(place)
    except OSError as error:
        raise UserError(
            f"{place}: pip's certificate setting cannot be used:"
            f" {error.strerror or error}"
        ) from None
    return context


def package_finders(config: PipConfig, session: PyPIClient) -> Iterator[PackageFinder]:
    """Yield a finder for each place, so that one that is down costs only itself."""
    from unearth import PackageFinder

    def finder(index: str | None = None, links: str | None = None) -> PackageFinder:
        return PackageFinder(
            # Its own client, but its protocol spells the signatures more narrowly.
            cast("Fetcher", session),
            index_urls=[index] if index else (),
            find_links=[links] if links else (),
            trusted_hosts=config.trusted_hosts,
            # The code is read, not run: an old release is as good on a new Python.
            ignore_compatibility=True,
        )

    for links in config.find_links:
        yield finder(links=links)
    if config.no_index:
        return
    # Without any address the finder turns to its own default index.
    yield finder(index=config.index_url)
    for index in config.extra_index_urls:
        yield finder(index=index)


def _choose(version: Version, session: PyPIClient, config: PipConfig) -> _Offer:
    """Find the source distribution of a version.

    Raises:
        UserError: none of the configured places has it.
    """
    known: dict[Version, bool] = {}
    troubles: list[str] = []
    for finder in package_finders(config, session):
        try:
            with _listening() as heard:
                packages = patiently(partial(_all_packages, finder))
            troubles += heard
        except Unreachable as error:
            troubles.append(f"{_redacted(finder.sources[0]['url'])}: {error}")
            continue
        except (ValueError, OSError):
            # An address that is not there: pip passes over it, too.
            continue
        for package in packages:
            with contextlib.suppress(InvalidVersion):
                found = Version(package.version or "")
                is_sdist = package.link.filename.endswith(".tar.gz")
                if is_sdist and found == version:
                    return _Offer(found, package.link, finder)
                known[found] = known.get(found, False) or is_sdist
    raise _missing(version, known, troubles)


def _all_packages(finder: PackageFinder) -> list[Package]:
    return list(finder.find_all_packages(PACKAGE, allow_yanked=True))


def _missing(
    version: Version, known: dict[Version, bool], troubles: list[str]
) -> UserError:
    readable = sorted(v for v, has_sdist in known.items() if has_sdist)
    if not readable:
        cached = ", ".join(cached_versions())
        hint = f"in the cache and usable as they are: {cached}" if cached else None
        if troubles:
            return UserError(
                f"vllm=={version}: not in the cache, and the index cannot be used:"
                f" {'; '.join(troubles)}",
                hint=hint or "a folder or a downloaded .tar.gz works without a network",
            )
        return UserError(
            f"vllm=={version}: the configured index has no source distribution of vllm",
            hint=hint or "vlmend uses the index that pip is configured for",
        )
    near = ", ".join(str(v) for v in nearest(version, readable))
    because = (
        "is published without a source distribution"
        if version in known
        else "does not exist on the configured index"
    )
    unsure = f" (not asked: {'; '.join(troubles)})" if troubles else ""
    return UserError(
        f"vllm=={version} {because}{unsure}; nearest: {near}",
        hint=f"the newest is {readable[-1]}",
    )


def nearest(wanted: Version, among: list[Version]) -> list[Version]:
    """Return the few versions that someone who typed ``wanted`` may have meant.

    Args:
        wanted: the version that is not there.
        among: the versions that are, sorted.
    """
    finals = [v for v in among if not v.is_prerelease] or among
    same_series = [v for v in finals if v.release[:2] == wanted.release[:2]]
    below = [v for v in finals if v < wanted][-_NEAREST:]
    above = [v for v in finals if v > wanted][:_NEAREST]
    chosen: list[Version] = []
    for candidate in (
        *same_series[-_NEAREST:],
        *below[-1:],
        *above[:1],
        *reversed(below[:-1]),
        *above[1:],
    ):
        if candidate not in chosen:
            chosen.append(candidate)
    return sorted(chosen[:_NEAREST])


def _download(offer: _Offer, folder: Path, progress: Progress) -> Path:
    from unearth.errors import HashMismatchError, UnpackError

    stage = f"downloading vllm {offer.version}"
    name = offer.link.redacted

    def report(link: Link, completed: int, total: int | None) -> None:
        del link
        progress(stage, completed, total)

    def attempt() -> Path:
        # What an interrupted attempt left would be taken for the whole file.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return offer.finder.download(offer.link, folder, download_reporter=report)

    try:
        return patiently(attempt)
    except HashMismatchError as error:
        ((kind, wanted), *_) = error.expected.items()
        raise ArchiveError(
            f"{name}: its {kind} is {error.actual[kind]}, but the index says"
            f" {wanted[0]}: not used",
            hint="the download was damaged or tampered with; try again later",
        ) from None
    except UnpackError as error:
        raise UserError(f"{name}: cannot be downloaded: {error}") from None
    except Unreachable as error:
        raise UserError(f"{name}: cannot be downloaded: {error}") from None


class Unreachable(Exception):
    """The network did not deliver, several times over; the text says how."""


def patiently(action: Callable[[], _T]) -> _T:
    """Run something that uses the network, again where a second try may help."""
    import httpx2

    for tries_left in reversed(range(_TRIES)):
        try:
            return action()
        except httpx2.TransportError as error:
            if not tries_left:
                raise Unreachable(str(error) or type(error).__name__) from error
            time.sleep(_PAUSE)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(str(error) or type(error).__name__) from error
    raise AssertionError("unreachable: the last try returns or raises")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _redacted(url: str) -> str:
    """Return an address without the password that may be in it."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]).geturl()
