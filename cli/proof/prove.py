"""From findings to verdicts: two trees, two processes, one comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from vlmend.cli.cache import cache_directory
from vlmend.cli.proof.child import Pair, Step
from vlmend.cli.proof.hearing import Facts, Job, Told
from vlmend.cli.proof.verdict import (
    ARCHITECTURES,
    DELEGATION,
    FORWARD,
    Outcome,
    Scenario,
    Verdict,
    judge,
)
from vlmend.codemods.codemod import Finding

SECONDS: Final = 60.0
MEGABYTES: Final = 4096

_PROBES: Final[Mapping[str, tuple[tuple[str, int, int], ...]]] = {
    DELEGATION: (("delegation", 2, 1), ("build", 1, 0)),
    ARCHITECTURES: (("architectures", 2, 1), ("architectures", 1, 0)),
    FORWARD: (("forward", 1, 0),),
}
"""Codemod to its runs: (probe, pipeline size, rank). The first shows the defect."""


@dataclass(frozen=True)
class Subject:
    """A finding to be proven.

    Attributes:
        finding: what was found.
        architecture: the name that the class is registered under.
        keywords: what runners pass, for the forward's calls.
    """

    finding: Finding
    architecture: str
    keywords: tuple[tuple[str, ...], ...] = ()

    def jobs(self, limits: Limits, config: Path | None) -> Iterator[Job]:
        """Yield the runs that this finding needs, the same for both trees."""
        for probe, size, rank in _PROBES[self.finding.codemod]:
            yield {
                "id": self.job_id(size, rank),
                "module": self.finding.module,
                "class": self.finding.class_name,
                "architecture": self.architecture,
                "probe": probe,
                "pp": size,
                "rank": rank,
                "config": wanted_config(self.architecture, config),
                "keywords": [list(keys) for keys in self.keywords],
                "seconds": limits.seconds,
                "megabytes": limits.megabytes,
            }

    def job_id(self, size: int, rank: int) -> str:
        """Name one run."""
        return f"{self.finding.fingerprint}/{size}/{rank}"


@dataclass(frozen=True)
class Limits:
    """What one run may take."""

    seconds: float = SECONDS
    megabytes: int = MEGABYTES


@dataclass(frozen=True)
class Proof:
    """A finding with its verdict and all that it rests on."""

    finding: Finding
    verdict: Verdict
    scenarios: tuple[Scenario, ...]
    versions: Mapping[str, str]

    @property
    def config(self) -> Mapping[str, Any]:
        """What the configuration was made from, as far as a run came to it."""
        for run in self.scenarios:
            for facts in (run.after, run.before):
                if facts.get("config"):
                    return dict(facts["config"])
        return {}

    @property
    def seconds(self) -> float:
        """How long the runs took, imports aside."""
        runs = (f for s in self.scenarios for f in (s.before, s.after))
        return round(sum(float(facts.get("seconds", 0)) for facts in runs), 2)


def wanted_config(architecture: str, config: Path | None) -> dict[str, Any]:
    """Return where a class's configuration comes from: a file, a recipe, defaults."""
    if config is not None:
        return {"file": str(config.resolve())}
    recipe = recipes().get(architecture, {})
    return {
        key: value
        for key, value in recipe.items()
        if key in ("class", "model_type", "values")
    }


def recipes() -> dict[str, Any]:
    """Return what some classes need beyond the defaults of their configuration."""
    text = files("vlmend.cli.proof").joinpath("recipes.json").read_text("utf-8")
    loaded = json.loads(text)
    assert isinstance(loaded, dict)
    return loaded


def prove(
    subjects: Sequence[Subject],
    trees: Pair,
    *,
    limits: Limits,
    config: Path | None = None,
    on_step: Step = lambda _: None,
) -> list[Proof]:
    """Run all subjects in both trees and judge each.

    Args:
        subjects: the findings.
        trees: the state as it is, and the one with the patch laid over.
        limits: what one run may take.
        config: a ``config.json`` to use instead of defaults.
        on_step: told what is being waited for.
    """
    jobs = [job for subject in subjects for job in subject.jobs(limits, config)]
    told_before, told_after = trees.run(jobs, on_step)
    return [_proof(subject, told_before, told_after) for subject in subjects]


def bytecode_of(roots: Sequence[Path]) -> Path:
    """Return where a tree's compiled modules are kept, apart from any other tree's."""
    name = hashlib.sha256("\0".join(map(str, roots)).encode()).hexdigest()[:16]
    return cache_directory() / "verify" / "bytecode" / name


def _proof(subject: Subject, before: Told, after: Told) -> Proof:
    finding = subject.finding
    runs = [(size, rank) for _, size, rank in _PROBES[finding.codemod]]
    scenarios = tuple(
        Scenario(
            size,
            rank,
            _facts(before, subject.job_id(size, rank)),
            _facts(after, subject.job_id(size, rank)),
        )
        for size, rank in runs
    )
    versions = before.versions or after.versions
    if before.failure and not before.facts:
        verdict = Verdict(Outcome.INCONCLUSIVE, "import", before.failure)
    elif after.failure and not after.facts:
        # The tree as it is could be imported: the change is what broke it.
        outcome = (
            Outcome.REFUTED
            if "cannot be imported" in after.failure
            else Outcome.INCONCLUSIVE
        )
        verdict = Verdict(outcome, "import", f"with the change, {after.failure}")
    else:
        verdict = judge(finding.codemod, finding.class_name, scenarios)
    return Proof(finding, verdict, scenarios, versions)


def _facts(told: Told, name: str) -> Facts:
    missing = {"error": {"type": "Killed", "message": told.failure or "no answer"}}
    return told.facts.get(name, missing)


def refuted(proofs: Iterable[Proof]) -> bool:
    """Say whether something was refuted: then no draft may be opened."""
    return any(proof.verdict.outcome is Outcome.REFUTED for proof in proofs)
