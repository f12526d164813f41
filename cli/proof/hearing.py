"""Hearing what the process that runs a tree reports, line by line, until a deadline."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final

IMPORT_SECONDS: Final = 240.0
"""How long the import of a tree may take before it counts as hanging."""
_SLACK: Final = 10.0

Facts = dict[str, Any]
Job = dict[str, Any]


@dataclass
class Told:
    """All that one tree's process has reported.

    Attributes:
        versions: what it runs with; empty where the tree could not be imported.
        facts: by the id of the job.
        failure: why there are no facts, or fewer, in one sentence; empty if all came.
        import_seconds: how long the import took.
    """

    versions: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    failure: str = ""
    import_seconds: float = 0.0


class Hearer:
    """Reads the reports of one process; what is left over waits for the next order.

    Args:
        source: the descriptor that it reports to.
        stop: set from another thread, it ends the hearing at once.
    """

    def __init__(self, source: int, stop: Event) -> None:
        self._source = source
        self._stop = stop
        self._held = b""

    def hear(
        self, told: Told, jobs: Sequence[Job], on_step: Callable[[str], None]
    ) -> None:
        """Add to ``told`` what is reported of these jobs, until all are done."""
        waiting = {job["id"]: job for job in jobs}
        wait = _Wait("importing the tree", time.monotonic() + IMPORT_SECONDS)
        if told.versions:
            _await_next(wait, waiting)
        for line in self._lines(wait, on_step):
            if line is None:
                told.failure = (
                    f"the import did not end within {IMPORT_SECONDS:g} seconds"
                    if not told.versions
                    else f"no answer about {next(iter(waiting))}"
                )
                return
            document = json.loads(line)
            event = document["event"]
            if event == "ready":
                told.versions = document["versions"]
                told.import_seconds = document["seconds"]
            elif event == "failed":
                error = document["error"]
                told.failure = (
                    f"the tree cannot be imported: {error['type']}: {error['message']}"
                    f"{_place(error)}"
                )
                return
            elif event == "facts":
                told.facts[document["id"]] = document["facts"]
                waiting.pop(document["id"], None)
            if told.versions and not waiting:
                return
            _await_next(wait, waiting)
        if waiting and told.versions:
            told.failure = "the tree's process ended before its time"

    def _lines(
        self, wait: _Wait, on_step: Callable[[str], None]
    ) -> Iterator[bytes | None]:
        """Yield lines as they come, None once the deadline is over."""
        while not self._stop.is_set():
            line, end, rest = self._held.partition(b"\n")
            if end:
                self._held = rest
                yield line
                continue
            on_step(wait.stage)
            ready, _, _ = select.select([self._source], [], [], 0.1)
            if ready:
                chunk = os.read(self._source, 1 << 16)
                if not chunk:
                    return
                self._held += chunk
            elif time.monotonic() > wait.deadline:
                yield None
                return


@dataclass
class _Wait:
    """What is being waited for, and until when."""

    stage: str
    deadline: float


def _await_next(wait: _Wait, waiting: Mapping[str, Job]) -> None:
    following = next(iter(waiting.values()))
    wait.stage = f"running {following['class']}"
    wait.deadline = time.monotonic() + float(following["seconds"]) + _SLACK


def _place(error: Mapping[str, Any]) -> str:
    frames = error.get("frames") or ()
    return f" ({frames[-1]['file']}:{frames[-1]['line']})" if frames else ""
