"""Starting the process that runs a tree, hearing what it reports, and ending it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Final

from vlmend.cli.proof.environment import Environment
from vlmend.cli.proof.group import end_group

IMPORT_SECONDS: Final = 240.0
"""How long the import of a tree may take before it counts as hanging."""
_SLACK: Final = 10.0
_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "SYSTEMROOT")
_NOWHERE: Final = "http://127.0.0.1:9"

Facts = dict[str, Any]
Job = dict[str, Any]


@dataclass
class Told:
    """All that one tree's process has reported.

    Attributes:
        versions: what it ran with; empty where the tree could not be imported.
        facts: by the id of the job.
        failure: why there are no facts, or fewer, in one sentence; empty if all came.
        import_seconds: how long the import took.
    """

    versions: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    failure: str = ""
    import_seconds: float = 0.0


def run_tree(
    environment: Environment,
    roots: Sequence[Path],
    jobs: Sequence[Job],
    *,
    bytecode: Path,
    on_step: Callable[[str], None] = lambda _: None,
    stop: Event | None = None,
) -> Told:
    """Import a tree once, run every job in a fork of it, and return what was learnt.

    Args:
        environment: the interpreter.
        roots: folders that hold the packages, those that win first.
        jobs: see the harness; each has its own limits.
        bytecode: where compiled modules are kept; never beside the sources.
        on_step: told what is being waited for, several times a second.
        stop: set from another thread, it ends the tree's process at once.
    """
    told = Told()
    if not jobs:
        return told
    with ExitStack() as stack:
        private = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="vlmend-"))
        )
        order = private / "order.json"
        order.write_text(
            json.dumps({"roots": [str(r) for r in roots], "jobs": list(jobs)}), "utf-8"
        )
        _lay_out_harness(private / "harness")
        source, sink = os.pipe()
        stack.callback(os.close, source)
        said = stack.enter_context((private / "stderr").open("w+b"))
        child = subprocess.Popen(
            [environment.python, "-m", _HARNESS, str(order), str(sink)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=_environment(private, roots, bytecode),
            cwd=private,
            pass_fds=(sink,),
            start_new_session=True,
        )
        os.close(sink)
        stack.callback(end_group, child)
        _listen(source, told, jobs, on_step, stop or Event())
        if not told.versions and not told.failure:
            end_group(child)
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
            last = lines[-1].strip() if lines else "no reason given"
            told.failure = f"the tree's process ended at once: {last}"
    return told


def run_both(
    environment: Environment,
    before: Sequence[Path],
    after: Sequence[Path],
    jobs: Sequence[Job],
    *,
    bytecode: Callable[[Sequence[Path]], Path],
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[Told, Told]:
    """Run the same jobs in two trees at once: each spends its time on own imports.

    However this ends, Ctrl-C included, neither tree's process outlives it.
    """
    stop = Event()
    with ThreadPoolExecutor(2) as pool:
        running = [
            pool.submit(
                run_tree,
                environment,
                roots,
                jobs,
                bytecode=bytecode(roots),
                on_step=step,
                stop=stop,
            )
            for roots, step in ((before, on_step), (after, lambda _: None))
        ]
        try:
            first, second = (one.result() for one in running)
        except BaseException:
            stop.set()
            raise
    return first, second


_HARNESS: Final = "vlmend.cli.proof.harness"


def _lay_out_harness(place: Path) -> None:
    """Let the child import the harness by its name, and nothing else of ours."""
    folder = place.joinpath(*_HARNESS.split("."))
    folder.parent.mkdir(parents=True)
    folder.symlink_to(Path(__file__).with_name("harness"), target_is_directory=True)


def _environment(
    private: Path, roots: Sequence[Path], bytecode: Path
) -> Mapping[str, str]:
    """Return an environment without anything secret and with nowhere to go."""
    home = private / "home"
    home.mkdir()
    path = os.pathsep.join([*map(str, roots), str(private / "harness")])
    passed = {k: os.environ[k] for k in _PASSED_ON if k in os.environ}
    return passed | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "HF_HOME": str(home / "huggingface"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_CACHE_ROOT": str(home / "vllm"),
        "VLLM_CONFIG_ROOT": str(home / "vllm"),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_PLUGINS": "",
        "VLLM_TARGET_DEVICE": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "http_proxy": _NOWHERE,
        "https_proxy": _NOWHERE,
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": path,
        "PYTHONPYCACHEPREFIX": str(bytecode),
    }


def _listen(
    source: int,
    told: Told,
    jobs: Sequence[Job],
    on_step: Callable[[str], None],
    stop: Event,
) -> None:
    waiting = {job["id"]: job for job in jobs}
    wait = _Wait(on_step, "importing the tree", time.monotonic() + IMPORT_SECONDS, stop)
    for line in _lines(source, wait):
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
        elif event == "end":
            return
        if waiting:
            following = next(iter(waiting.values()))
            wait.stage = f"running {following['class']}"
            wait.deadline = time.monotonic() + float(following["seconds"]) + _SLACK
    if waiting and told.versions:
        told.failure = "the tree's process ended before its time"


def _place(error: Mapping[str, Any]) -> str:
    frames = error.get("frames") or ()
    return f" ({frames[-1]['file']}:{frames[-1]['line']})" if frames else ""


@dataclass
class _Wait:
    """What is being waited for, and until when."""

    on_step: Callable[[str], None]
    stage: str
    deadline: float
    stop: Event


def _lines(source: int, wait: _Wait) -> Iterator[bytes | None]:
    """Yield lines as they come, None once the deadline is over."""
    held = b""
    while True:
        if wait.stop.is_set():
            return
        wait.on_step(wait.stage)
        ready, _, _ = select.select([source], [], [], 0.1)
        if not ready:
            if time.monotonic() > wait.deadline:
                yield None
                return
            continue
        chunk = os.read(source, 1 << 16)
        if not chunk:
            return
        held += chunk
        *lines, held = held.split(b"\n")
        yield from lines
