"""Runs ``vlmend`` many times without paying for its imports many times.

One process imports vlmend, then forks for each request: every run has a process,
streams, a folder and an environment of its own, as if it had just been started.
Requests are JSON lines on the file descriptor named first, exit codes go to the second.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

Request = dict[str, Any]


class Zygote:
    """The warm process, as its parent sees it.

    Args:
        script: what it runs; ends in :func:`serve`.
        env: its variables; those of this process unless given.
    """

    def __init__(
        self, script: Path = Path(__file__), env: Mapping[str, str] | None = None
    ) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        words = [sys.executable, str(script), str(theirs_in), str(theirs_out)]
        self.process = subprocess.Popen(
            words, pass_fds=(theirs_in, theirs_out), env=env
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._requests = os.fdopen(ours_out, "w")
        self._codes = os.fdopen(ours_in)

    def ask(self, request: Request) -> int:
        """Run once; return the exit code, negative for a signal."""
        self._requests.write(f"{json.dumps(request)}\n")
        self._requests.flush()
        return int(self._codes.readline())

    def close(self) -> None:
        """Let it end."""
        self._requests.close()
        self.process.wait(timeout=10)
        self._codes.close()


def warm_up(modules: Iterable[str] = ()) -> None:
    """Import what a run would import."""
    from vlmend.cli.main import VERBS

    for name in (*VERBS, "cache", "judge", "outcome", "targets", "report.json"):
        import_module(f"vlmend.cli.{name.replace('-', '_')}")
    for name in modules:
        import_module(name)


def settle(request: Request, *, append: bool = False) -> None:
    """Take on the folder, the environment and the streams of a request."""
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["env"])
    more = os.O_APPEND if append else 0
    stdin, stdout, stderr = request["streams"]
    os.dup2(os.open(stdin, os.O_RDONLY), 0)
    os.dup2(os.open(stdout, os.O_WRONLY | more), 1)
    os.dup2(os.open(stderr, os.O_WRONLY | more), 2)


def serve(become: Callable[[Request], int]) -> None:
    """Answer every request with an exit code, until there are no more."""
    # What is there already is not looked through, and not copied, in any child.
    gc.collect()
    gc.freeze()
    requests, answers = (int(word) for word in sys.argv[1:])
    with os.fdopen(requests) as lines, os.fdopen(answers, "w") as codes:
        for line in lines:
            child = os.fork()
            if child == 0:
                _run(become, json.loads(line))
            _, status = os.waitpid(child, 0)
            codes.write(f"{os.waitstatus_to_exitcode(status)}\n")
            codes.flush()


def _run(become: Callable[[Request], int], request: Request) -> None:
    code = 70
    try:
        code = become(request)
        sys.stdout.flush()
    finally:
        os._exit(code)


def _plain(request: Request) -> int:
    from vlmend.cli.main import main

    settle(request)
    return main(request["words"])


if __name__ == "__main__":
    warm_up(["libcst"])
    serve(_plain)
