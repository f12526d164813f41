"""The process that imports a tree once and forks for each run.

It is given a file that says what to do and a descriptor to report to, one JSON document
per line. It lives as long as its standard input is open: whoever started it may die in
any way, and takes it along.
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


def die_with_the_parent() -> None:
    """End this whole process group once standard input is closed."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


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
    """Do all jobs of the order, in its sequence."""
    order = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    report = int(sys.argv[2])
    roots = tuple(Path(root) for root in order["roots"])
    die_with_the_parent()
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
    for job in order["jobs"]:
        tell(event="facts", id=job["id"], facts=run_job(job, roots))
    tell(event="end")


if __name__ == "__main__":
    main()
