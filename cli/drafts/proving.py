"""Run-time proof of one change, and what of it becomes part of the draft.

What was proven or refuted is kept by content: the tree's packages, the change, the
versions that it ran with and this very proof. The next run over the same content reads
it back. What was inconclusive is tried again: a busy machine may have been the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.cache import cache_directory, make_private
from vlmend.cli.drafts.change import AddedFile, Change
from vlmend.cli.errors import Refused
from vlmend.cli.files import write_file
from vlmend.cli.git_run import GitRunner
from vlmend.cli.proof.child import Pair
from vlmend.cli.proof.environment import Environment
from vlmend.cli.proof.prove import Limits, Proof, bytecode_of, prove
from vlmend.cli.proof.regression import READ_FOR_TESTS, RegressionTest, regression_tests
from vlmend.cli.proof.ruling import Outcome, Scenario, Verdict
from vlmend.cli.proof.setting_up import subjects_of
from vlmend.cli.proof.trees import trees_of
from vlmend.cli.version import version

if TYPE_CHECKING:
    from vlmend.cli.commits import BranchState
    from vlmend.cli.judge import Judged
    from vlmend.cli.targets import Target
    from vlmend.cli.workspace import Workspace
    from vlmend.codemods.codemod import Finding

_READ: Final = ("vllm", "requirements", "pyproject.toml", *READ_FOR_TESTS)
"""What of a tree a proof depends on, beside the environment."""
_LIMITS: Final = Limits()


@dataclass(frozen=True)
class Proven:
    """What running a change has shown.

    Attributes:
        proofs: one for each finding that can be run.
        tests: written for what is proven, and run in both trees.
    """

    proofs: tuple[Proof, ...] = ()
    tests: tuple[RegressionTest, ...] = ()

    @property
    def offered(self) -> tuple[RegressionTest, ...]:
        """The tests that fail before the change and pass after it."""
        return tuple(test for test in self.tests if test.is_shown)

    def require_not_refuted(self) -> None:
        """Hold a change back that does not do what it is for.

        Raises:
            Refused: a finding's change was refuted.
        """
        for proof in self.proofs:
            if proof.verdict.outcome is Outcome.REFUTED:
                raise Refused(
                    f"refuted at run time: {proof.finding.class_name}:"
                    f" {proof.verdict.reason}"
                )


@dataclass(frozen=True)
class Prover:
    """Proves changes of one tree in one environment.

    Attributes:
        environment: the interpreter.
        with_test: write regression tests, too.
        limits: what one class may take.
        on_step: told what is being waited for.
    """

    environment: Environment
    with_test: bool = True
    limits: Limits = _LIMITS
    on_step: Callable[[str], None] = lambda _: None

    def prove(self, judged: Judged, change: Change) -> Proven:
        """Run a change, or read back what an earlier run of the same has shown."""
        subjects = subjects_of(judged, change.findings)
        if not subjects:
            return Proven()
        place = self._place(judged, change)
        known = _read_back(place, change.findings)
        if known is None:
            known = self._run(judged, change)
            outcomes = {proof.verdict.outcome for proof in known.proofs}
            if Outcome.INCONCLUSIVE not in outcomes:
                _keep(place, known)
        return known if self.with_test else replace(known, tests=())

    def _run(self, judged: Judged, change: Change) -> Proven:
        subjects = subjects_of(judged, change.findings)
        old, new = trees_of(judged, change.findings, judged.target.spec, None)
        try:
            with Pair(self.environment, old.roots, new.roots, bytecode_of) as trees:
                proofs = prove(
                    subjects, trees, limits=self.limits, on_step=self.on_step
                )
                tests: Sequence[RegressionTest] = ()
                if self.with_test:
                    tests = regression_tests(
                        proofs,
                        subjects,
                        judged.target.tree,
                        trees,
                        limits=self.limits,
                        on_step=self.on_step,
                        scope=change.scope,
                    )
        finally:
            new.close()
            old.close()
        return Proven(tuple(proofs), tuple(tests))

    def _place(self, judged: Judged, change: Change) -> Path:
        versions = json.dumps(self.environment.versions, sort_keys=True)
        name = _digest(versions, str(self.with_test))
        return _folder(judged, change) / f"{name}.json"


def remembered(judged: Judged, change: Change) -> Proven:
    """Return what the last run of a change has shown; nothing where there was none.

    Of the tests, those that the change carries are told.
    """
    if judged.target.repository is None or judged.target.revision is None:
        return Proven()
    folder = _folder(judged, change)
    kept = folder.glob("*.json") if folder.is_dir() else ()
    for place in sorted(kept, key=_age):
        known = _read_back(place, change.findings)
        if known is not None:
            tests = (t for t in known.tests if _added(t) in change.tests)
            return replace(known, tests=tuple(tests))
    return Proven()


def _age(place: Path) -> float:
    try:
        return -place.stat().st_mtime
    except OSError:
        return 0.0


def _folder(judged: Judged, change: Change) -> Path:
    """Return where the results of one fix of one tree are kept."""
    fix = replace(change, tests=())
    words = (version(), _own_code(), _content(judged.target))
    name = _digest(*words, change.codemod, change.scope, fix.digest)
    return cache_directory() / "verdicts" / name


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def with_tests(change: Change, proven: Proven) -> Change:
    """Return the change with its regression tests as a part of it."""
    return replace(change, tests=tuple(map(_added, proven.offered)))


def _added(test: RegressionTest) -> AddedFile:
    return AddedFile(test.file, test.text.encode())


def _content(target: Target) -> str:
    """Return what stands for all that is run and read of a tree."""
    if target.repository is None or target.revision is None:
        raise Refused(f"{target.spec}: only a revision of a repository can be proven")
    return f"{target.layout}\n{_listed(target.repository, target.revision)}"


@cache
def _listed(repository: Path, revision: str) -> str:
    """Return the ids of all that is read; what is not there has none."""
    git = GitRunner(repository)
    return git.run("ls-tree", "--full-tree", "-z", revision, "--", *_READ)


@cache
def _own_code() -> str:
    """Return a digest of what proves: another harness must prove anew."""
    found = hashlib.sha256()
    for package in ("vlmend.cli.proof", "vlmend.cli.proof.harness"):
        for entry in sorted(files(package).iterdir(), key=lambda e: e.name):
            if entry.name.endswith((".py", ".json")):
                found.update(entry.read_bytes())
    for entry in sorted(
        files("vlmend.templates").joinpath("regression").iterdir(), key=lambda e: e.name
    ):
        if entry.name.endswith(".j2"):
            found.update(entry.read_bytes())
    return found.hexdigest()


def _keep(place: Path, proven: Proven) -> None:
    make_private(place.parent)
    document = {
        "proofs": [
            {
                "fingerprint": proof.finding.fingerprint,
                "verdict": asdict(proof.verdict),
                "scenarios": [asdict(run) for run in proof.scenarios],
                "versions": dict(proof.versions),
            }
            for proof in proven.proofs
        ],
        "tests": [asdict(test) for test in proven.tests],
    }
    write_file(place, json.dumps(document, default=str).encode())


def _read_back(place: Path, findings: Sequence[Finding]) -> Proven | None:
    """Return what was kept; what cannot be read counts as not there."""
    try:
        document = json.loads(place.read_bytes())
        named = {finding.fingerprint: finding for finding in findings}
        return Proven(
            tuple(_proof(one, named) for one in document["proofs"]),
            tuple(_test(one) for one in document["tests"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _test(one: dict[str, Any]) -> RegressionTest:
    one["classes"] = tuple(one["classes"])
    return RegressionTest(**one)


def _proof(one: dict[str, Any], named: dict[str, Finding]) -> Proof:
    verdict = one["verdict"]
    return Proof(
        named[one["fingerprint"]],
        Verdict(
            Outcome(verdict["outcome"]),
            verdict["stage"],
            verdict["reason"],
            tuple((a, b, c) for a, b, c in verdict["shown"]),
        ),
        tuple(Scenario(**run) for run in one["scenarios"]),
        one["versions"],
    )


def kept_tests(
    workspace: Workspace, change: Change, branch: BranchState | None
) -> Change:
    """Return the change with the tests that its own branch already carries.

    For a run that did not come to a test of its own: while the fix is the same, the
    draft stays as it is.
    """
    if branch is None or not branch.ours:
        return change
    changed = workspace.changed(branch.parent, branch.head)
    names = sorted(set(changed) - set(change.files))
    if not names:
        return change
    workspace.bring_versions("fork", {branch.head: names})
    contents = {name: workspace.read(branch.head, name) for name in names}
    tests = tuple(AddedFile(n, c) for n, c in contents.items() if c is not None)
    extended = replace(change, tests=tests)
    return extended if extended.digest == branch.change else change
