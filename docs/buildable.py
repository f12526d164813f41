"""Write ``docs/buildable.md``: which multimodal classes a proof can build, and why not.

``python docs/buildable.py 0.30.0 0.33.0`` builds every class of the releases'
multimodal table from its configuration's defaults and ``cli/proof/recipes.json``. It
makes the environments that ``vlmend verify`` would make.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from vlmend.cli.proof.child import TreeProcess
from vlmend.cli.proof.environment import make, plan_environment
from vlmend.cli.proof.hearing import Job
from vlmend.cli.proof.pins import python_range, transformers_pin
from vlmend.cli.proof.prove import MEGABYTES, SECONDS, bytecode_of, wanted_config
from vlmend.cli.proof.verdict import failure, stage_of
from vlmend.cli.releases import get_release
from vlmend.cli.report.markdown import escaped
from vlmend.codemods import DirectoryTree

HERE = Path(__file__).resolve().parent
REGISTRY = "vllm/model_executor/models/registry.py"
NOTICE = "<!-- Written by docs/buildable.py; run it again instead of editing. -->\n"
NO_NAME = "No model architectures are specified"
NO_PP = "Pipeline parallelism is not supported"


def multimodal_table(root: Path) -> dict[str, tuple[str, str]]:
    """Return the release's own table: architecture to module and class."""
    for node in ast.parse((root / REGISTRY).read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            if isinstance(target, ast.Name) and target.id == "_MULTIMODAL_MODELS":
                return dict(ast.literal_eval(node.value))
    return {}


def job(architecture: str, module: str, name: str, *, pipeline: bool) -> Job:
    """Return the order to build one class."""
    full = (
        module if module.startswith("vllm.") else f"vllm.model_executor.models.{module}"
    )
    return {
        "id": architecture,
        "module": full,
        "class": name,
        "architecture": architecture,
        "probe": "build",
        "pp": 2 if pipeline else 1,
        "rank": 1 if pipeline else 0,
        "config": wanted_config(architecture, None),
        "seconds": SECONDS,
        "megabytes": MEGABYTES,
    }


def build_all(version: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the facts of every class, by architecture."""
    root = get_release(Version(version)).root
    tree = DirectoryTree(root)
    plan = plan_environment(python_range(tree), transformers_pin(tree)[0], None)
    environment = make(plan)
    table = multimodal_table(root)
    first = [job(a, *place, pipeline=True) for a, place in table.items()]
    with TreeProcess(environment, [root], bytecode_of([root])) as process:
        told = process.run(first)
        # What cannot be one rank of two is built as a whole; without pipeline
        # parallelism, or since a view of it has no name.
        again = [
            job(a, *table[a], pipeline=False)
            for a, f in told.facts.items()
            if any(reason in failure(f) for reason in (NO_PP, NO_NAME))
        ]
        return process.run(again).facts


def section(version: str, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the count of one release and the reasons for the rest."""
    rest = {a: f for a, f in facts.items() if stage_of(f) != "done"}
    stages = Counter(stage_of(f) for f in rest.values())
    yield f"## {version}\n"
    listed = ", ".join(f"{count} in the stage {s}" for s, count in stages.most_common())
    yield f"{len(facts) - len(rest)} of {len(facts)} are built. The rest: {listed}.\n"
    yield "| class | stage | reason |"
    yield "| --- | --- | --- |"
    for architecture, one in sorted(rest.items()):
        # Where a run kept its files is of no interest.
        reason = escaped(re.sub(r"'/[^']*'", "'...'", failure(one))[:160])
        yield f"| {escaped(architecture)} | {stage_of(one)} | {reason} |"
    yield ""


def main() -> int:
    """Build all classes of the releases that are named, and write the page."""
    lines = [
        NOTICE,
        "# Which multimodal classes can be built for a proof\n",
        (
            "Built on the meta device from the defaults of the configuration class, or"
            " with the values in `cli/proof/recipes.json`. A model's own `config.json`"
            " (`vlmend verify --model-config FILE`) is the better input where the"
            " defaults do not fit together.\n"
        ),
    ]
    for version in sys.argv[1:] or ("0.30.0", "0.33.0"):
        lines += section(version, build_all(version))
    (HERE / "buildable.md").write_text("\n".join(lines), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
