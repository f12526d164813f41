"""Runs ``vlmend`` many times without paying for its imports many times.

One process imports vlmend, then forks for each request: every run has a process,
streams, a folder and an environment of its own, as if it had just been started.
Requests are JSON lines on the file descriptor named first, exit codes go to the second.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

import libcst  # noqa: F401 - what a run would import, and what takes longest

from vlmend.cli.main import VERBS, main

for verb in (*VERBS, "cache", "judge", "outcome", "targets", "report.json"):
    import_module(f"vlmend.cli.{verb.replace('-', '_')}")


def run(request: dict[str, object]) -> None:
    """Become the run that was asked for; does not return."""
    code = 70
    try:
        os.chdir(str(request["cwd"]))
        os.environ.clear()
        os.environ.update(request["env"])
        stdin, stdout, stderr = request["streams"]
        os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.dup2(os.open(stdout, os.O_WRONLY), 1)
        os.dup2(os.open(stderr, os.O_WRONLY), 2)
        code = main(request["words"])
        sys.stdout.flush()
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
