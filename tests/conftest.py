"""What every suite shares: real releases, real repositories, a real package index."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import platformdirs
import pytest
from packaging.version import Version

HEAVY_SUITES = ("replay", "restore", "rig", "browser", "verify")
PLAIN_RELEASES = ("0.21.0", "0.22.0", "0.29.0", "0.33.0")
"""All that a plain `pytest` may download; the heavier suites may take more."""


# --- the closing summary names what did not run --------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_NOT_RUN] = Counter()


_NOT_RUN: pytest.StashKey[Counter[str]] = pytest.StashKey()


class _Deselected:
    """Counts the tests of each heavier suite that the marker expression left out."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for item in items:
            for suite in HEAVY_SUITES:
                if item.get_closest_marker(suite) is not None:
                    self.config.stash[_NOT_RUN][suite] += 1


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Deselected(session.config))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    _tell_figures(terminalreporter)
    left_out = config.stash[_NOT_RUN]
    if not left_out:
        return
    terminalreporter.section("heavier suites that did not run")
    for suite in HEAVY_SUITES:
        if left_out[suite]:
            terminalreporter.line(
                f"{suite}: {left_out[suite]} tests; run them with: pytest -m {suite}"
            )


def _tell_figures(terminal: pytest.TerminalReporter) -> None:
    """Print what tests measured (``record_property``), whichever process ran them."""
    told = {
        report.nodeid: report.user_properties
        for outcome in ("passed", "failed")
        for report in terminal.getreports(outcome)
        if report.user_properties
    }
    if told:
        terminal.section("figures")
    for test, figures in told.items():
        terminal.line(test.rpartition("/")[2])
        for name, figure in figures:
            for line in f"{name}: {figure}".splitlines():
                terminal.line(f"  {line}")


# --- the world that tests run in -----------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _clean_world(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Keep the user's cache, facts and git settings out of the tests."""
    cache = tmp_path_factory.mktemp("cache")
    releases = _kept_releases()
    releases.mkdir(parents=True, exist_ok=True)
    # Downloads are kept from session to session; facts are not, since a changed
    # analysis must be seen to work.
    (cache / "releases").symlink_to(releases, target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLMEND_CACHE_DIR", str(cache))
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Ada Example")
            patch.setenv(f"GIT_{role}_EMAIL", "ada@example.invalid")
        yield


def _kept_releases() -> Path:
    named = os.environ.get("VLMEND_TEST_CACHE")
    place = Path(named) if named else platformdirs.user_cache_path("vlmend") / "tests"
    return place.absolute() / "releases"


@pytest.fixture(scope="session")
def release(_clean_world: None, pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """Return a function that gives the unpacked tree of a real release.

    A failed download is an error, not a skip: a suite that tests nothing is not green.
    """
    from vlmend.cli.releases import get_release

    plain = all(f"not {s}" in pytestconfig.getoption("markexpr") for s in HEAVY_SUITES)

    def get(version: str) -> Path:
        if plain and version not in PLAIN_RELEASES:
            pytest.fail(f"vllm {version} needs a heavier marker: {HEAVY_SUITES}")
        return get_release(Version(version)).root

    return get


@pytest.fixture(scope="session")
def kept_environments(_clean_world: None) -> Path:
    """Let ``vlmend verify`` find the environments that an earlier session has made."""
    kept = _kept_releases().with_name("verify")
    kept.mkdir(parents=True, exist_ok=True)
    link = Path(os.environ["VLMEND_CACHE_DIR"]) / "verify"
    if not link.exists():
        link.symlink_to(kept, target_is_directory=True)
    return kept


# --- real git ------------------------------------------------------------------------


def _git(place: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(place), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def git() -> Callable[..., str]:
    """Return a function that runs git in a folder and returns what it printed."""
    return _git


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[[Mapping[str, bytes | str]], Path]:
    """Return a function that makes a repository with one commit of the given files."""

    def make(files: Mapping[str, bytes | str], name: str = "repo") -> Path:
        repo = tmp_path / name
        write_files(repo, files)
        _git(repo, "init", "-q", "-b", "main")
        _git(repo, "add", "-A")
        _git(repo, "commit", "-q", "-m", "Start")
        return repo

    return make


def write_files(root: Path, files: Mapping[str, bytes | str]) -> Path:
    """Write files below ``root``, folders included."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@pytest.fixture
def tree_files() -> dict[str, str]:
    """Return the smallest tree that is recognised as vLLM."""
    return {
        "PKG-INFO": "Metadata-Version: 2.4\nName: vllm\nVersion: 9.1.0\n",
        "pyproject.toml": '[project]\nname = "vllm"\ndynamic = ["version"]\n',
        "vllm/__init__.py": "",
        "vllm/model_executor/models/__init__.py": "",
        "vllm/model_executor/models/tiny.py": "class Tiny:\n    pass\n",
    }


# --- a real package index ------------------------------------------------------------


def make_sdist(place: Path, files: Mapping[str, bytes | str], top: str) -> Path:
    """Write a ``.tar.gz`` as build tools do, everything below one folder ``top``."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(place, "w:gz") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return place


@dataclass
class PackageIndex:
    """A PEP 503 index on the loopback interface, and what was asked of it.

    Attributes:
        root: the folder that is served.
        url: address of the simple index.
        asked: the requests so far, as ``METHOD /path``.
        status: an HTTP status to answer everything with, or None to serve files.
        password: ``user:password`` that is asked for, or None.
        drop: how many of the next requests end without an answer.
    """

    root: Path
    url: str = ""
    asked: list[str] = field(default_factory=list)
    status: int | None = None
    password: str | None = None
    drop: int = 0
    _links: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        version: str,
        files: Mapping[str, bytes | str] | None = None,
        *,
        wheel: bool = False,
        digest: str | None = None,
        cut: int | None = None,
        requires_python: str = "",
    ) -> Path:
        """Publish a distribution.

        Args:
            version: its version.
            files: contents, relative to the leading folder.
            wheel: publish a wheel instead of a source distribution.
            digest: SHA-256 to announce instead of the true one.
            cut: cut the file to this many bytes after its digest was taken from the
                cut file, as a broken upload would be.
            requires_python: the Python versions that the release says it runs on.
        """
        name = f"vllm-{version}"
        place = self.root / "files" / f"{name}.tar.gz"
        if wheel:
            place = place.with_name(f"{name}-py3-none-any.whl")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(b"PK")
        else:
            make_sdist(place, files or {}, name)
        if cut is not None:
            place.write_bytes(place.read_bytes()[:cut])
        true = hashlib.sha256(place.read_bytes()).hexdigest()
        address = f"../../files/{place.name}#sha256={digest or true}"
        self._links[place.name] = (
            f'href="{address}" data-requires-python="{escape(requires_python)}"'
        )
        page = self.root / "simple" / "vllm" / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(
            "<!DOCTYPE html><html><body>"
            + "".join(
                f"<a {attributes}>{name}</a>\n"
                for name, attributes in self._links.items()
            )
            + "</body></html>"
        )
        return place


class _Handler(SimpleHTTPRequestHandler):
    index: PackageIndex

    def __init__(self, *args: object, index: PackageIndex) -> None:
        self.index = index
        super().__init__(*args, directory=str(index.root))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.index.asked.append(f"{self.command} {self.path}")
        if self.index.drop:
            self.index.drop -= 1
            self.close_connection = True
        elif self.index.status is not None:
            self.send_error(self.index.status)
        elif self.index.password and not self._has_password():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()

    def _has_password(self) -> bool:
        from base64 import b64encode

        wanted = b64encode((self.index.password or "").encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def package_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PackageIndex]:
    """Serve an index of the test's own, and configure pip for nothing else."""
    index = PackageIndex(tmp_path / "index")
    index.root.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, index=index))
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    for name in [n for n in os.environ if n.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("VLMEND_CACHE_DIR", str(tmp_path / "cache"))
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def make_archive(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes an archive from hand-made members."""

    def make(
        members: list[tuple[tarfile.TarInfo, bytes]], name: str = "vllm-9.1.0.tar.gz"
    ) -> Path:
        place = tmp_path / name
        with (
            gzip.open(place, "wb") as zipped,
            tarfile.open(fileobj=zipped, mode="w") as archive,
        ):
            for member, data in members:
                if member.isreg():
                    member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return place

    return make


# --- a page full of traps ------------------------------------------------------------

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "\"'><img src=x onerror=window.pwned=1>",
    "{{ 7 * 7 }}{% raw %}",
    "`<!--` **bold** [link](javascript:window.pwned=1)",
    "\u202egnp.exe\u2066 \u2028 \x1b[31m",
)
"""Names and code as a tree may hold them that means harm."""


@pytest.fixture
def hostile_page() -> str:
    """Return a page about a tree in which every text is out to break it."""
    from vlmend.cli.judge import Judged
    from vlmend.cli.report.page import render
    from vlmend.cli.select import Selection
    from vlmend.cli.targets import Target
    from vlmend.codemods import MemoryTree, Session, all_codemods
    from vlmend.codemods.codemod import (
        ContractNote,
        Evidence,
        Finding,
        ModelInfo,
        ScanError,
        ScanResult,
        Source,
        Status,
    )

    codemod = all_codemods()[0]
    bad = " ".join(HOSTILE)
    undecodable = f"{bad} \udc80"
    file = f"vllm/{bad}.py"
    code = "".join(f'x = "{text}"  # {text}\n' for text in HOSTILE)
    proof = tuple(Evidence(Source.TREE, file, n, f"{bad} {n}") for n in (1, 2, 99))
    findings = tuple(
        Finding(
            codemod=codemod.id,
            module=f"{bad}.{status}",
            class_name=f"{bad}{status}",
            file=file,
            line=1,
            class_line=1,
            status=status,
            message=undecodable,
            evidence=proof,
            heirs=(f"{bad}:{bad}",),
        )
        for status in Status
    )
    models = tuple(
        ModelInfo(f.module, f.class_name, file, 1, Source.TREE, (bad,), True, True)
        for f in findings
    )
    tree = MemoryTree({file: code.encode("utf-8", "surrogatepass")})
    target = Target(bad, "directory", tree, "vllm")
    target.version = bad
    result = ScanResult(
        findings,
        models,
        (ContractNote(bad, bad, proof),),
        (ScanError(file, undecodable),),
    )
    session = Session(tree, codemods=[codemod])
    return render(Judged(target, None, (codemod,), session, result), Selection())
