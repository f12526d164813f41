"""A forge, a fork, and a person at a terminal, made anew for every case."""

from __future__ import annotations

import copy
import json
import os
import pty
import shutil
import signal
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checking import Checker
from forking import Zygote

from vlmend.cli.rig.api import Api
from vlmend.cli.rig.exchange import Request, Response
from vlmend.cli.rig.model import Forge, Repository, run_git
from vlmend.cli.rig.sample import FIXED_DATE, make_pair, sample_files
from vlmend.cli.rig.server import Rig

TOKEN = "ghp_Zq7SecretThatMustNotAppear42"
NOW = 1_767_614_400.0
"""What the stand-in's clock says: the same answers every time."""
UPSTREAM = "them/vllm"
FORK = "you/vllm"
SOUND = {f"sound{i}": f"Sound{i}" for i in range(4)}
BROKEN = {
    "polaris_vl": "PolarisVL",
    "polaris2_vl": "Polaris2VL",
    "vega_vision": "VegaVision",
}

Fault = Callable[[Request, Callable[[], Response]], Response | None]


def big_files() -> dict[str, str]:
    """Return the sample among some 300 files."""
    files = sample_files(BROKEN, SOUND)
    files |= {f"docs/page{i}.md": f"# Page {i}\n" for i in range(150)}
    files |= {f"tests/test_{i}.py": f"def test_{i}():\n    pass\n" for i in range(130)}
    return files


@dataclass(frozen=True)
class Ended:
    """A run that has ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class World:
    """One forge behind one server; its state is replaced for every case.

    Attributes:
        place: scratch folder of the case.
        fault: stands between requests and answers.
        exchanges: what was asked and answered.
        checker: checks every exchange.
    """

    home: Path
    rig: Rig
    zygote: Zygote
    checker: Checker
    seed: Forge
    warm: Path | None = None
    place: Path = Path()
    fault: Fault | None = None
    exchanges: list[tuple[Request, Response | None]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    not_searched: set[str] = field(default_factory=set)
    _cases: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def forge(self) -> Forge:
        return self.rig.forge

    @property
    def fork(self) -> Repository:
        found = self.forge.repositories.get(self._fork_id) or self.forge.find(FORK)
        assert found is not None, "there is no fork"
        return found

    @property
    def upstream(self) -> Repository:
        return next(r for r in self.forge.repositories.values() if r.parent is None)

    _fork_id: int = 0

    def fresh(self, seed: Forge | None = None, *, warm: bool | Path = True) -> None:
        """Start over from the seed, with a cache that was used before, or without."""
        self._cases += 1
        self.place = self.home / f"case{self._cases}"
        self.place.mkdir()
        start = seed or self.seed
        forge = copy.deepcopy(start)
        forge.home = self.place / "forge"
        _copy(start.home, forge.home)
        for repository in forge.repositories.values():
            repository.folder = forge.home / repository.folder.name
        self.rig.forge = forge
        self.rig.api = Api(forge, self.rig.url)
        forks = [r.id for r in forge.repositories.values() if r.parent is not None]
        self._fork_id = forks[0] if forks else 0
        cache = self.warm if warm is True else warm or None
        if cache is not None:
            _copy(cache, self.place / "cache")
        self.fault = None
        self.exchanges.clear()
        self.told.clear()
        self.not_searched = {"forge"}

    def drop(self) -> None:
        """Forget the files of a case that went well."""
        shutil.rmtree(self.place, ignore_errors=True)

    def intercept(
        self, request: Request, act: Callable[[], Response]
    ) -> Response | None:
        """Pass on, break, check and write down."""
        fault = self.fault
        own: list[Response] = []

        def answer() -> Response:
            own.append(act())
            return own[-1]

        response = answer() if fault is None else fault(request, answer)
        with self._lock:
            self.exchanges.append((request, response))
            if response is not None:
                made_up = not any(response is one for one in own)
                self.checker.check(request, response, made_up=made_up)
        return response

    def kill(self) -> None:
        """Kill the run that is going on, as it would be by the system."""
        os.kill(int((self.place / "pid").read_text()), signal.SIGKILL)

    def run(
        self,
        *words: str,
        kill_at: int = 0,
        cwd: Path | None = None,
        cache: str = "cache",
        terminal: str = "",
        debug: bool = False,
        beside: Zygote | None = None,
        file_limit: int = 0,
        **variables: str,
    ) -> Ended:
        """Run ``vlmend`` as a person, or a scheduled job, does.

        Args:
            words: the command line.
            kill_at: end it before this child process.
            cwd: where it runs.
            cache: its folder below that of the case.
            terminal: the device to use instead of files.
            debug: show tracebacks.
            beside: runs it while another run is going on.
            file_limit: no file may get longer, in bytes, as on a disk that is full.
            variables: more of the environment.
        """
        place = self.place / "beside" if beside is not None else self.place
        place.mkdir(exist_ok=True)
        streams = [place / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_bytes(b"")
        used = [str(stream) for stream in streams]
        if terminal:
            used[0] = used[2] = terminal
        env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("GITHUB_", "GH_", "CI"))
        }
        env |= {
            "GITHUB_API_URL": self.rig.url,
            "GITHUB_TOKEN": TOKEN,
            "VLMEND_CACHE_DIR": str(self.place / cache),
            "HOME": str(self.place),
            "XDG_CONFIG_HOME": str(self.place / "config"),
            "NO_PROXY": "127.0.0.1",
            # The same run makes the same commits, and the same states can be told.
            "GIT_AUTHOR_DATE": FIXED_DATE,
            "GIT_COMMITTER_DATE": FIXED_DATE,
            **variables,
        }
        code = (beside or self.zygote).ask(
            {
                "words": [*(("--debug",) if debug else ()), *words],
                "cwd": str(cwd or self.place),
                "env": env,
                "place": str(place),
                "streams": used,
                "kill_at": kill_at,
                "file_limit": file_limit,
            }
        )
        ended = Ended(code, *(s.read_bytes().decode() for s in streams[1:]))
        self.told.append(ended.text)
        return ended

    def at_terminal(self, answers: list[str], *words: str, **more: Any) -> Ended:
        """Run ``vlmend`` at a terminal, with a person who types ``answers``."""
        ours, theirs = pty.openpty()
        told: list[bytes] = []

        def listen() -> None:
            with suppress(OSError):
                while part := os.read(ours, 4096):
                    told.append(part)

        listener = threading.Thread(target=listen)
        listener.start()
        os.write(ours, "".join(f"{line}\n" for line in answers).encode())
        try:
            ended = self.run(*words, terminal=os.ttyname(theirs), **more)
        finally:
            os.close(theirs)
            listener.join(timeout=10)
            os.close(ours)
        shown = b"".join(told).decode().replace("\r\n", "\n")
        self.told.append(shown)
        return Ended(ended.code, ended.out, shown)

    def draft(self, *words: str, **more: Any) -> Ended:
        """Run ``vlmend draft`` for the fork."""
        base = ("draft", "--fork", FORK, "--upstream", UPSTREAM)
        return self.run(*base, *words, **more)

    # --- what must hold after every run ----------------------------------------------

    def open_heads(self) -> list[str]:
        """Return the branches of the open pull requests inside the fork."""
        return sorted(p.head for p in self.fork.pulls.values() if p.state == "open")

    def leaks(self) -> Iterable[str]:
        """Yield every place where the token can be found."""
        for text in self.told:
            if holds_token(text):
                yield "output"
        for children in (self.place, self.place / "beside"):
            yield from _told_to_children(children / "children")
        for path in self._left_behind():
            if holds_token(path.read_bytes()):
                yield str(path)

    def _left_behind(self) -> Iterable[Path]:
        """Yield every file that runs have written: cache, configuration, logs."""
        for top in self.place.glob("*"):
            if top.name in self.not_searched:
                continue
            found = top.rglob("*") if top.is_dir() else [top]
            yield from (p for p in found if p.is_file() and not _is_apart(p))

    def everything(self) -> str:
        """Return what the last run said and did, for a failing assertion."""
        asked = "\n".join(
            f"{q.method} {q.path}?{q.query} -> {r.status if r else 'dropped'}"
            for q, r in self.exchanges
        )
        return "\n".join([*self.told, asked])


_BASIC = b64encode(f"x-access-token:{TOKEN}".encode())
_FORMS = (TOKEN.encode(), _BASIC.rstrip(b"="), b64encode(TOKEN.encode()).rstrip(b"="))


def holds_token(text: str | bytes) -> bool:
    """Say whether the token is there, as it is or as a header carries it."""
    told = text.encode("utf-8", "replace") if isinstance(text, str) else text
    return any(form in told for form in _FORMS)


def _is_apart(path: Path) -> bool:
    # Git's objects are compressed: test_secrets looks into them. The children's
    # variables are judged one by one.
    return "objects" in path.parts or path.name == "children"


def _told_to_children(place: Path) -> Iterable[str]:
    """Yield every child process that was told the token, and had no need of it."""
    lines = place.read_text().splitlines() if place.is_file() else []
    for line in lines:
        child = json.loads(line)
        if any(holds_token(word) for word in child["argv"]):
            yield f"argv of {child['argv']}"
        holds = [k for k, v in child["env"].items() if holds_token(v)]
        if holds and not talks_to_the_forge(child["argv"]):
            yield f"environment of {child['argv']}: {holds}"


def talks_to_the_forge(argv: list[str]) -> bool:
    words = iter(argv[1:])
    for word in words:
        if word == "-c":
            next(words)
        else:
            return argv[0] == "git" and word in ("fetch", "push")
    return False


def _copy(source: Path, target: Path) -> None:
    """Copy a tree; git's objects never change, so they share their bytes."""

    def copy_one(one: str, other: str) -> None:
        if "/objects/" in one and not one.endswith("alternates"):
            os.link(one, other)
        else:
            shutil.copy2(one, other)

    shutil.copytree(source, target, copy_function=copy_one, symlinks=True)


def make_seed(home: Path) -> Forge:
    """Make an upstream of some 300 files and a fork of it."""
    (home / "forge").mkdir(parents=True)
    forge = Forge(home / "forge", now=lambda: NOW)
    forge.add_account("you", TOKEN)
    for repository in make_pair(forge, big_files(), UPSTREAM, FORK):
        for setting in ("pack.threads=1", "core.fsync=none", "receive.autoGC=false"):
            run_git(repository.folder, "config", *setting.split("="))
    return forge
