"""How the page of ``preview --html`` bears nine hundred classes.

    python benchmarks/page.py [--classes 900] [--rounds 9]

A page of made-up classes is opened in Chromium; reading it, filtering it and sorting it
are timed there, until the result is laid out. Times are medians; the ratio is to the
same step on a page with a tenth of the classes: 10x would be in step with the size.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from vlmend.cli.judge import Judged
from vlmend.cli.report.page import render
from vlmend.cli.select import Selection
from vlmend.cli.targets import Target
from vlmend.codemods import MemoryTree, Session, all_codemods
from vlmend.codemods.codemod import (
    Evidence,
    Finding,
    ModelInfo,
    ScanResult,
    Source,
    Status,
)

FRAME = 1000 / 60
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")

STEP = """(step) => {
    const steps = {
        filter: (text) => {
            const field = document.getElementById("text");
            field.value = text;
            field.dispatchEvent(new Event("input", { bubbles: true }));
        },
        sort: () => document.querySelector("thead button").click(),
    };
    const times = [];
    for (const [name, argument] of step) {
        const start = performance.now();
        steps[name](argument);
        document.body.offsetHeight; // makes the browser lay the result out
        times.push(performance.now() - start);
    }
    return times;
}"""
LOADED = """() => {
    const [entry] = performance.getEntriesByType("navigation");
    return entry.domContentLoadedEventEnd - entry.startTime;
}"""


def synthetic(classes: int) -> str:
    """Return a page of as many classes, each judged by every contract."""
    codemods = all_codemods()
    statuses = (Status.SATISFIED, Status.SATISFIED, Status.EXEMPT, Status.BLOCKED)
    files: dict[str, bytes] = {}
    findings: list[Finding] = []
    models: list[ModelInfo] = []
    for number in range(classes):
        module = f"vllm.model_executor.models.family_{number % 97}_{number}"
        name = f"Model{number}ForConditionalGeneration"
        file = f"{module.replace('.', '/')}.py"
        body = "".join(f"    field_{n} = {n}  # of {name}\n" for n in range(40))
        files[file] = f"class {name}:\n{body}".encode()
        models.append(
            ModelInfo(
                module, name, file, 1, Source.TREE, (name,), True, number % 2 == 0
            )
        )
        for codemod in codemods:
            rare = number % 50 == 0
            status = statuses[3] if rare else statuses[number % 3]
            findings.append(
                Finding(
                    codemod=codemod.id,
                    module=module,
                    class_name=name,
                    file=file,
                    line=1,
                    class_line=1,
                    status=status,
                    message=f"{name} is {status}.",
                    evidence=tuple(
                        Evidence(Source.TREE, file, line, f"{name} says {line}")
                        for line in (1, 12, 30)
                    ),
                )
            )
    tree = MemoryTree(files)
    target = Target("synthetic", "directory", tree, "vllm")
    target.version = "0.0.0"
    result = ScanResult(tuple(findings), tuple(models), ())
    session = Session(tree, codemods=codemods)
    return render(Judged(target, None, codemods, session, result), Selection())


def measure(browser: Browser, place: Path, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each step."""
    steps: list[tuple[str, Any]] = [
        ("filter", "model7"),
        ("filter", ""),
        ("filter", "family_3 conditional"),
        ("sort", None),
    ]
    names = ("filter to few", "filter to all", "filter by two words", "sort")
    times: dict[str, list[float]] = {name: [] for name in ("load", *names)}
    for _ in range(rounds):
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(place.as_uri())
        times["load"].append(page.evaluate(LOADED))
        for name, took in zip(names, page.evaluate(STEP, steps), strict=True):
            times[name].append(took)
        page.close()
    return {name: median(taken) for name, taken in times.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=900)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    chromium = os.environ.get("VLMEND_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit("no Chromium: install it, or name it in VLMEND_CHROMIUM")
    results = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        for classes in (asked.classes // 10, asked.classes):
            place = Path(folder, f"{classes}.html")
            place.write_text(synthetic(classes), "utf-8")
            results.append(measure(browser, place, asked.rounds))
            size = place.stat().st_size / 1e6
            print(f"{classes} classes: {size:.2f} MB")
        browser.close()
    few, many = results
    print(f"\n| {'step':20} |     ms | frames | of a tenth |")
    print(f"|{'-' * 22}|-------:|-------:|-----------:|")
    for name, took in many.items():
        ratio = f"{took / few[name]:.1f}x"
        print(f"| {name:20} | {took:6.1f} | {took / FRAME:6.1f} | {ratio:>10} |")


if __name__ == "__main__":
    main()
