"""One fork per run: an own memory limit, an own deadline, nothing shared after."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from vlmend.cli.proof.harness.recorder import relative

CHUNK = 1 << 16


def forked(
    work: Callable[[dict[str, Any]], None],
    *,
    seconds: float,
    megabytes: int,
    roots: tuple[Path, ...],
) -> dict[str, Any]:
    """Run ``work`` in a fork and return the facts that it gathered.

    A fork that does not end in time is killed; its facts are lost but for the reason.
    """
    source, sink = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(source)
        _live_and_die(work, sink, megabytes, roots)
    os.close(sink)
    received = b""
    timed_out = False
    while True:
        left = started + seconds - time.monotonic()
        ready, _, _ = select.select([source], [], [], max(left, 0))
        if not ready:
            timed_out = True
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            break
        chunk = os.read(source, CHUNK)
        if not chunk:
            break
        received += chunk
    os.close(source)
    _, status = os.waitpid(child, 0)
    facts: dict[str, Any] = {}
    for line in received.splitlines():
        with suppress(ValueError):
            facts.update(json.loads(line))
    facts["seconds"] = round(time.monotonic() - started, 2)
    if timed_out:
        facts["error"] = _plain("Timeout", f"not done after {seconds:g} seconds")
    elif status and "error" not in facts:
        facts["error"] = _plain("Killed", f"ended by {_cause(status)}")
    return facts


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"


def _plain(kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "message": message, "frames": []}


def _live_and_die(
    work: Callable[[dict[str, Any]], None],
    sink: int,
    megabytes: int,
    roots: tuple[Path, ...],
) -> None:
    facts = _Told(sink)
    try:
        limit_memory(megabytes)
        work(facts)
    except BaseException as error:  # noqa: BLE001 - the tree's code may raise anything
        facts["error"] = described(error, roots)
    with suppress(BaseException):
        facts.tell(facts)
    os._exit(0)


class _Told(dict[str, Any]):
    """Facts that tell their stage at once: it must be known even after a kill."""

    def __init__(self, sink: int) -> None:
        super().__init__()
        self._sink = sink

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        if key in ("stage", "config"):
            self.tell({key: value})

    def tell(self, facts: dict[str, Any]) -> None:
        data = json.dumps(facts, default=str).encode() + b"\n"
        while data:
            data = data[os.write(self._sink, data) :]


def described(error: BaseException, roots: tuple[Path, ...]) -> dict[str, Any]:
    """Return an error as plain data, with the frames of the tree, innermost last."""
    message = " ".join(str(error).split())
    return {
        "type": type(error).__name__,
        "message": message[:600],
        "frames": [
            {"file": place, "line": frame.lineno, "function": frame.name}
            for frame in traceback.extract_tb(error.__traceback__)
            if (place := relative(frame.filename, roots)) is not None
        ][-12:],
    }


def limit_memory(megabytes: int) -> None:
    """Allow this process so much more address space than it has by now."""
    import resource

    used = 0
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        used = pages * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        limit = used + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
