"""The warm process of this suite: runs with a clock that does not wait, watched.

A run can be killed for real: here before its n-th child process starts, or by the
stand-in at any exchange. The arguments and variables of every child process are written
down, and what libraries log.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["GIT_PYTHON_TRACE"] = "full"  # GitPython logs each command that it runs

from forking import Request, serve, settle, warm_up

from vlmend.cli.main import main
from vlmend.cli.world import World

MODULES = (
    "git",
    "github",
    "jinja2.sandbox",
    "libcst",
    "platformdirs",
    "platformdirs.unix",
    "vlmend.cli.drafts.publishing",
    "vlmend.cli.drafts.run",
    "vlmend.cli.drafts.status",
    "vlmend.cli.fix",
    "vlmend.cli.hooks",
    "vlmend.codemods.rewriting.apply",
    "vlmend.codemods.rewriting.file_view",
    "vlmend.templates",
)


class FastClock:
    """Starts at the true time; waiting takes none."""

    def __init__(self, log: str) -> None:
        self._slept = 0.0
        self._log = log

    def now(self) -> float:
        return time.time() + self._slept

    def sleep(self, seconds: float) -> None:
        self._slept += seconds
        with Path(self._log).open("a") as stream:
            stream.write(f"{seconds:.1f}\n")


def watch_children(log: str, kill_at: int) -> None:
    """Write every child process down, and die before the ``kill_at``-th one."""
    count = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        if event != "subprocess.Popen":
            return
        count += 1
        _, words, _, env = args
        variables = dict(os.environ) if env is None else dict(env)
        with Path(log).open("a") as stream:
            line = {"argv": [os.fsdecode(w) for w in words], "env": variables}
            stream.write(json.dumps(line, default=os.fsdecode) + "\n")
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def limit_files(size: int) -> None:
    """Let every longer file fail to be written, here and in all children."""
    if size:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def write_logs(place: str) -> None:
    """Let every library say all that it can."""
    logging.basicConfig(filename=place, level=logging.DEBUG, force=True)


def _errors() -> TextIO:
    return os.fdopen(2, "w", buffering=1)


def become(request: Request) -> int:
    """Be the run that was asked for."""
    place = str(request["place"])
    try:
        settle(request, append=True)
        Path(place, "pid").write_text(str(os.getpid()))
        # The objects from before know of other files, which could be rewound.
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), _errors()
        if not request["file_limit"]:  # what is written here must be whole
            watch_children(f"{place}/children", int(request["kill_at"]))
            write_logs(f"{place}/log")
        limit_files(int(request["file_limit"]))
        world = World(FastClock(f"{place}/slept"), answer_seconds=1)
        return main(request["words"], world=world)
    except BaseException:
        # Nothing else would tell.
        Path(place, "broken").write_text(traceback.format_exc())
        raise


if __name__ == "__main__":
    warm_up(MODULES)
    serve(become)
