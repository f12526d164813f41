"""A regression test for what was proven: written, then shown to fail and to pass.

The test is in the target tree's own style and asserts the observable contract, not the
source text. One that passes before the change is not offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Final

from vlmend.cli.proof.child import Pair, Step
from vlmend.cli.proof.hearing import Job, Told
from vlmend.cli.proof.placing import STEPS, place_of, selected_by
from vlmend.cli.proof.prove import Limits, Proof, Subject
from vlmend.cli.proof.verdict import ARCHITECTURES, DELEGATION, FORWARD, Outcome
from vlmend.codemods.analysis.tree import SourceTree, TreeError

_FILES: Final[Mapping[str, tuple[str, str, str]]] = {
    DELEGATION: (
        "delegation.py.j2",
        "empty_intermediate_tensors",
        "Ranks after the first begin with tensors that the model hands out.",
    ),
    ARCHITECTURES: (
        "architectures.py.j2",
        "inner_architectures",
        "The config view of an inner language model names a registered class.",
    ),
    FORWARD: (
        "forward.py.j2",
        "forward_keywords",
        "Every call that a model runner makes binds to the forward that it reaches.",
    ),
}
"""Codemod to the template, the name of the test, and what is asserted."""

_DTYPE_MODULES: Final = (
    "vllm.utils.torch_utils",
    "vllm.model_executor.model_loader.utils",
)
_IMPORTED: Final[Mapping[str, str]] = {
    DELEGATION: "from vllm.sequence import IntermediateTensors",
    ARCHITECTURES: "from vllm.model_executor.models import ModelRegistry",
}
_SAMPLE: Final = "tests/models/test_initialization.py"
READ_FOR_TESTS: Final = (_SAMPLE, *STEPS)
"""What of a tree's own tests is read, beside the packages."""


@dataclass(frozen=True)
class RegressionTest:
    """A test with both its outputs.

    Attributes:
        file: where it belongs in the target tree.
        text: the whole file.
        classes: the classes that it covers.
        before: what pytest said of the tree as it is.
        after: the same with the change.
        is_shown: it fails before and passes after.
        selected: the line of the tree's CI that runs it, if one is seen.
    """

    file: str
    text: str
    classes: tuple[str, ...]
    before: str
    after: str
    is_shown: bool
    selected: str = ""


def regression_tests(
    proofs: Sequence[Proof],
    subjects: Sequence[Subject],
    tree: SourceTree,
    trees: Pair,
    *,
    limits: Limits,
    on_step: Step = lambda _: None,
    scope: str = "",
) -> list[RegressionTest]:
    """Write a test for each codemod with something proven, and run it in both trees.

    Args:
        proofs: what was proven, or was not.
        subjects: what the proofs are about.
        tree: the target, whose own tests are the model.
        trees: the target before and after.
        limits: what one run may take.
        on_step: told what is being waited for.
        scope: the family that a draft is about: two drafts must not add one file.
    """
    written = list(_written(proofs, subjects, tree, scope))
    jobs = [_job(file, text, limits) for file, text, _ in written]
    if not jobs:
        return []
    told_before, told_after = trees.run(jobs, on_step)
    return [
        replace(
            _shown(file, text, classes, told_before, told_after),
            selected=selected_by(file, tree),
        )
        for file, text, classes in written
    ]


def _shown(
    file: str, text: str, classes: tuple[str, ...], before: Told, after: Told
) -> RegressionTest:
    was, now = (_result(told, file) for told in (before, after))
    return RegressionTest(
        file, text, classes, was[1], now[1], is_shown=was[0] == 1 and now[0] == 0
    )


def _result(told: Told, file: str) -> tuple[int | None, str]:
    facts = told.facts.get(file, {})
    tests = facts.get("tests")
    if tests is None:
        error = facts.get("error") or {}
        return None, str(error.get("message") or told.failure or "no answer")
    return int(tests["exit"]), str(tests["output"])


def _job(file: str, text: str, limits: Limits) -> Job:
    return {
        "id": file,
        "class": file,
        "probe": "test",
        "test": {"name": file.rpartition("/")[2], "text": text},
        "seconds": limits.seconds * 2,
        "megabytes": limits.megabytes,
    }


def _written(
    proofs: Sequence[Proof], subjects: Sequence[Subject], tree: SourceTree, scope: str
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    from jinja2 import DictLoader, Environment, StrictUndefined

    folder = files("vlmend.templates").joinpath("regression")
    texts = {
        entry.name: entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".j2")
    }
    # What is rendered is Python; names and values are written as Python literals.
    environment = Environment(  # noqa: S701
        loader=DictLoader(texts),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    named = {subject.finding.fingerprint: subject for subject in subjects}
    for codemod, (template, stem, summary) in _FILES.items():
        group = [
            proof
            for proof in proofs
            if proof.finding.codemod == codemod
            and proof.verdict.outcome is Outcome.PROVEN
            # A test cannot name a configuration class that no package has.
            and not proof.config.get("made_up")
        ]
        if not group:
            continue
        shared = {"header": _header(tree), "summary": f'"""{summary}"""'}
        chosen = [named[proof.finding.fingerprint] for proof in group]
        more = (
            _forward_words(chosen)
            if codemod == FORWARD
            else _building_words(group, chosen, tree)
        )
        text = environment.get_template(template).render(**shared, **more)
        yield (
            place_of(stem, scope, tree),
            text,
            tuple(proof.finding.class_name for proof in group),
        )


def _header(tree: SourceTree) -> str:
    """Return the licence lines that the tree's own tests begin with."""
    try:
        lines = tree.read(_SAMPLE).decode("utf-8", "replace").splitlines()
    except TreeError:
        return ""
    spdx = [line for line in lines[:3] if line.startswith("# SPDX")]
    return "".join(f"{line}\n" for line in spdx)


def _building_words(
    proofs: Sequence[Proof], subjects: Sequence[Subject], tree: SourceTree
) -> dict[str, Any]:
    models: list[dict[str, str]] = []
    imports: dict[str, set[str]] = {}
    for proof, subject in zip(proofs, subjects, strict=True):
        module, _, name = str(
            proof.config["class"] or proof.config["read_as"]
        ).rpartition(".")
        package = "transformers" if module.startswith("transformers.") else module
        imports.setdefault(package, set()).add(name)
        models.append(
            {
                "config": name,
                "architecture": subject.architecture,
                "values": _literal(proof.config.get("values") or {}),
                "expected": _literal(_expected(proof)),
            }
        )
    return {
        "models": sorted(models, key=lambda m: m["architecture"]),
        "imports": [
            f"from {package} import {', '.join(sorted(names))}"
            for package, names in sorted(imports.items())
        ],
        "own": sorted(
            [
                "from vllm.model_executor.model_loader.utils import initialize_model",
                f"from {_dtype_module(tree)} import set_default_torch_dtype",
                _IMPORTED[proofs[0].finding.codemod],
            ]
        ),
    }


def _expected(proof: Proof) -> list[str]:
    facts = proof.scenarios[0].after
    if proof.finding.codemod == DELEGATION:
        return sorted(facts["tensors"]["shapes"])
    return list(facts["views"][-1]["after"])


def _dtype_module(tree: SourceTree) -> str:
    """Return where this tree keeps ``set_default_torch_dtype``."""
    for module in _DTYPE_MODULES:
        try:
            source = tree.read(f"{module.replace('.', '/')}.py")
        except TreeError:
            continue
        if b"def set_default_torch_dtype" in source:
            return module
    return _DTYPE_MODULES[0]


def _forward_words(subjects: Iterable[Subject]) -> dict[str, Any]:
    chosen = sorted(subjects, key=lambda s: s.finding.module)
    keywords = dict.fromkeys(keys for s in chosen for keys in s.keywords)
    names = [subject.finding.class_name for subject in chosen]
    return {
        "imports": [
            f"from {s.finding.module} import {s.finding.class_name}" for s in chosen
        ],
        "keywords": [_literal(keys) for keys in keywords],
        "classes": ", ".join(names),
    }


def _literal(value: Any) -> str:
    """Write a value the way ruff's formatter would."""
    return repr(value).replace("'", '"')
