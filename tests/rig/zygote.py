"""Forks runs of ``vlmend`` from one warm process, with a clock that does not wait.

Every run has a process, streams and an environment of its own. It can be killed for
real: here before its n-th child process starts, or by the stand-in at any exchange. The
arguments and variables of every child process are written down.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import TextIO

import git  # noqa: F401 - what a run would import
import github  # noqa: F401
import libcst  # noqa: F401

from vlmend.cli.main import VERBS, main
from vlmend.cli.world import World

MODULES = ("cache", "judge", "outcome", "targets", "report.json", "drafts.run")
for verb in (*VERBS, *MODULES, "drafts.publishing", "drafts.status"):
    import_module(f"vlmend.cli.{verb.replace('-', '_')}")


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

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal count
        if event != "subprocess.Popen":
            return
        count += 1
        _, words, _, env = args
        variables = dict(os.environ) if env is None else dict(env)  # type: ignore[call-overload]
        with Path(log).open("a") as stream:
            line = {"argv": [os.fsdecode(w) for w in words], "env": variables}  # type: ignore[attr-defined]
            stream.write(json.dumps(line, default=os.fsdecode) + "\n")
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _errors() -> TextIO:
    return os.fdopen(2, "w", buffering=1)


def run(request: dict[str, object]) -> None:
    """Become the run that was asked for; does not return."""
    code = 70
    try:
        os.chdir(str(request["cwd"]))
        os.environ.clear()
        os.environ.update(request["env"])
        place = str(request["place"])
        Path(place, "pid").write_text(str(os.getpid()))
        stdin, stdout, stderr = request["streams"]
        os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.dup2(os.open(stdout, os.O_WRONLY | os.O_APPEND), 1)
        os.dup2(os.open(stderr, os.O_WRONLY | os.O_APPEND), 2)
        # The objects from before know of other files, which could be rewound.
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), _errors()
        watch_children(f"{place}/children", int(request["kill_at"]))
        world = World(FastClock(f"{place}/slept"), answer_seconds=1)
        code = main(request["words"], world=world)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - nothing else would tell
        Path(str(request["place"]), "broken").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def serve(requests: int, answers: int) -> None:
    """Answer every request with an exit code, until there are no more."""
    with os.fdopen(requests) as lines, os.fdopen(answers, "w") as codes:
        for line in lines:
            child = os.fork()
            if child == 0:
                run(json.loads(line))
            _, status = os.waitpid(child, 0)
            codes.write(f"{os.waitstatus_to_exitcode(status)}\n")
            codes.flush()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
