"""The processes that run a tree: started, given orders, and ended."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import IO, Final, Self

from vlmend.cli.proof.environment import Environment
from vlmend.cli.proof.group import end_group
from vlmend.cli.proof.hearing import Hearer, Job, Told

_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "SYSTEMROOT")
_NOWHERE: Final = "http://127.0.0.1:9"

Step = Callable[[str], None]
"""Told what is being waited for, several times a second."""


class TreeProcess:
    """A process that imports a tree once and runs each job in a fork of itself.

    It is started with the first order. It dies with whoever holds it, in any way.

    Args:
        environment: the interpreter.
        roots: folders that hold the packages, those that win first.
        bytecode: where compiled modules are kept; never beside the sources.
        stop: set from another thread, it ends the waiting at once.
    """

    def __init__(
        self,
        environment: Environment,
        roots: Sequence[Path],
        bytecode: Path,
        stop: Event | None = None,
    ) -> None:
        self._environment = environment
        self._roots = roots
        self._bytecode = bytecode
        self._stop = stop or Event()
        self._resources = ExitStack()
        self._child: subprocess.Popen[bytes] | None = None
        self._told = Told()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    def run(self, jobs: Sequence[Job], on_step: Step = lambda _: None) -> Told:
        """Run every job, each within its own limits, and return what was learnt.

        What it returns grows with each call: facts of earlier jobs stay in it.
        """
        told = self._told
        if not jobs or told.failure:
            return told
        if self._child is None:
            self._child = self._start()
        assert self._child.stdin is not None
        with suppress(OSError):  # that it has ended is heard in a moment
            self._child.stdin.write(json.dumps(list(jobs)).encode() + b"\n")
            self._child.stdin.flush()
        self._hearer.hear(told, jobs, on_step)
        if not told.versions and not told.failure:
            end_group(self._child)
            self._said.seek(0)
            lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
            last = lines[-1].strip() if lines else "no reason given"
            told.failure = f"the tree's process ended at once: {last}"
        return told

    def _start(self) -> subprocess.Popen[bytes]:
        stack = self._resources
        private = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="vlmend-"))
        )
        order = private / "order.json"
        order.write_text(json.dumps([str(root) for root in self._roots]), "utf-8")
        _lay_out_harness(private / "harness")
        source, sink = os.pipe()
        stack.callback(os.close, source)
        self._said = stack.enter_context((private / "stderr").open("w+b"))
        child = subprocess.Popen(
            [self._environment.python, "-m", _HARNESS, str(order), str(sink)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env=_environment(private, self._roots, self._bytecode),
            cwd=private,
            pass_fds=(sink,),
            start_new_session=True,
        )
        os.close(sink)
        stack.callback(end_group, child)
        assert child.stdin is not None
        stack.callback(_close, child.stdin)
        self._hearer = Hearer(source, self._stop)
        return child


class Pair:
    """Two states of a tree, each imported once, that do the same jobs side by side.

    However this ends, Ctrl-C included, neither tree's process outlives it.
    """

    def __init__(
        self,
        environment: Environment,
        before: Sequence[Path],
        after: Sequence[Path],
        bytecode: Callable[[Sequence[Path]], Path],
    ) -> None:
        self._stop = Event()
        self._trees = [
            TreeProcess(environment, roots, bytecode(roots), self._stop)
            for roots in (before, after)
        ]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for tree in self._trees:
            self._stack.enter_context(tree)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def run(
        self, jobs: Sequence[Job], on_step: Step = lambda _: None
    ) -> tuple[Told, Told]:
        """Run the same jobs in both at once: each spends its time on own imports."""
        with ThreadPoolExecutor(2) as pool:
            steps: tuple[Step, Step] = (on_step, lambda _: None)
            running = [
                pool.submit(tree.run, jobs, step)
                for tree, step in zip(self._trees, steps, strict=True)
            ]
            try:
                first, second = (one.result() for one in running)
            except BaseException:
                self._stop.set()
                raise
        return first, second


def _close(stream: IO[bytes]) -> None:
    with suppress(OSError):  # what is still to be written has no reader any more
        stream.close()


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
    # Its age says when it was last of use.
    bytecode.mkdir(parents=True, exist_ok=True)
    os.utime(bytecode)
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
