"""The process that imports a tree once and forks for each run.

It is given a file with the tree's folders and a descriptor to report to, one JSON
document per line. Orders come on standard input, a JSON list of jobs per line. It lives
as long as that is open: whoever started it may die in any way, and takes it along.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from vlmend.cli.proof.harness import stand_ins
from vlmend.cli.proof.harness.building import Run
from vlmend.cli.proof.harness.forking import described, forked
from vlmend.cli.proof.harness.probes import PROBES
from vlmend.cli.proof.harness.recorder import Recorder

NEEDED = (
    "vllm.config",
    "vllm.distributed.parallel_state",
    "vllm.model_executor.models",
    "vllm.model_executor.models.interfaces",
    "vllm.model_executor.models.utils",
    "vllm.model_executor.model_loader.utils",
    "vllm.multimodal",
)
"""Imported before the first fork, so that no run pays for them."""


def orders() -> SimpleQueue[bytes]:
    """Return the lines of standard input; its end is the end of this process group."""
    lines: SimpleQueue[bytes] = SimpleQueue()

    def watch() -> None:
        held = b""
        while chunk := os.read(0, 1 << 16):
            *whole, held = (held + chunk).split(b"\n")
            for line in whole:
                lines.put(line)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    return lines


def prepare() -> dict[str, Any]:
    """Import what every run needs; return the versions that it runs with."""
    warnings.simplefilter("ignore")
    stand_ins.stand_in_for_packages()
    import_module("vllm")
    stand_ins.choose_cpu()
    stand_ins.inspect_in_process()
    stand_ins.keep_on_meta()
    stand_ins.stand_in_for_operators()
    for name in NEEDED:
        import_module(name)
    stand_ins.stand_in_for_processing()
    stand_ins.stand_in_for_tokenizers()
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": str(import_module("torch").__version__),
        "transformers": str(import_module("transformers").__version__),
    }


def run_job(job: Mapping[str, Any], roots: tuple[Path, ...]) -> dict[str, Any]:
    """Run one job in a fork of its own."""

    def work(facts: dict[str, Any]) -> None:
        recorder = Recorder(roots)
        if job["probe"] != "test":  # a test must meet nothing of ours
            recorder.install()
        run = Run(job, facts)
        try:
            PROBES[job["probe"]](run, recorder)
            run.enter("done")
        finally:
            facts["views"] = recorder.calls

    return forked(work, seconds=job["seconds"], megabytes=job["megabytes"], roots=roots)


def main() -> None:
    """Do the jobs of all orders, in their sequence, until standard input ends."""
    roots = tuple(Path(r) for r in json.loads(Path(sys.argv[1]).read_text("utf-8")))
    report = int(sys.argv[2])
    ordered = orders()
    stand_ins.quiet()

    def tell(**document: Any) -> None:
        data = json.dumps(document, default=str).encode() + b"\n"
        while data:
            data = data[os.write(report, data) :]

    started = time.monotonic()
    try:
        versions = prepare()
    except BaseException as error:  # noqa: BLE001 - the tree's code may raise anything
        tell(event="failed", error=described(error, roots))
        return
    tell(
        event="ready",
        versions=versions,
        seconds=round(time.monotonic() - started, 2),
    )
    while True:
        for job in json.loads(ordered.get()):
            tell(event="facts", id=job["id"], facts=run_job(job, roots))


if __name__ == "__main__":
    main()
