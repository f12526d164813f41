"""Trees and machines that a proof cannot use: one clear line, and nothing left over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from vlmend.cli.errors import UserError
from vlmend.cli.proof import environment, hearing
from vlmend.cli.proof.child import Pair
from vlmend.cli.proof.prove import Limits, Subject, prove
from vlmend.cli.proof.ruling import Outcome
from vlmend.cli.proof.verdict import DELEGATION
from vlmend.codemods import Finding, Status

FINDING = Finding(
    DELEGATION, "vllm.m", "M", "vllm/m.py", 3, 1, Status.FIXABLE, "message"
)


@pytest.fixture(scope="session")
def ready(kept_environments):
    """A real environment, as ``vlmend verify`` makes it."""
    return environment.make(environment.plan_environment(SpecifierSet(), "5.5.3", None))


def tree(place: Path, code: str) -> list[Path]:
    """Return the roots of a tree whose import does what the code says."""
    package = place / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    return [place]


def proven(ready, tmp_path, before: str, after: str):
    trees = [tree(tmp_path / "before", before), tree(tmp_path / "after", after)]
    with Pair(ready, *trees, lambda roots: tmp_path / f"code-{roots[0].name}") as pair:
        (proof,) = prove([Subject(FINDING, "M")], pair, limits=Limits(5, 512))
    assert left_running(tmp_path) == []
    return proof.verdict


def left_running(place: Path) -> list[str]:
    told = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True)
    return [line for line in told.stdout.splitlines() if str(place) in line]


@pytest.mark.verify
def test_an_import_that_hangs_is_inconclusive(ready, tmp_path, monkeypatch):
    monkeypatch.setattr(hearing, "IMPORT_SECONDS", 12.0)
    code = "import time\ntime.sleep(600)\n"
    verdict = proven(ready, tmp_path, code, code)
    assert (verdict.outcome, verdict.stage) == (Outcome.INCONCLUSIVE, "import")
    assert verdict.reason == "the import did not end within 12 seconds"


@pytest.mark.verify
def test_a_compiled_operator_needed_at_import_is_inconclusive(ready, tmp_path):
    code = "import torch\nADD = torch.ops._C.rotary_embedding\n"
    verdict = proven(ready, tmp_path, code, code)
    assert (verdict.outcome, verdict.stage) == (Outcome.INCONCLUSIVE, "import")
    assert "the tree cannot be imported: AttributeError" in verdict.reason
    assert "rotary_embedding" in verdict.reason
    assert verdict.reason.endswith("(vllm/__init__.py:2)")


@pytest.mark.verify
def test_an_import_that_ends_the_process_is_inconclusive(ready, tmp_path):
    code = "import os, sys\nsys.stderr.write('no such device\\n')\nos._exit(1)\n"
    verdict = proven(ready, tmp_path, code, code)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason == "the tree's process ended at once: no such device"


@pytest.mark.verify
def test_a_change_is_not_blamed_for_what_was_so_before(ready, tmp_path):
    good = "import time\ntime.sleep(1)\nraise ImportError('as before')\n"
    verdict = proven(ready, tmp_path, good, "raise ImportError('new')\n")
    # The tree as it is cannot be imported either: nothing is the change's fault.
    assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.verify
def test_a_python_that_the_tree_does_not_take_is_named(ready):
    with pytest.raises(UserError) as raised:
        environment.reuse(ready.python, SpecifierSet(">=3.99"))
    assert "but the tree takes >=3.99" in raised.value.message


def test_where_no_python_is_one_that_the_tree_takes_it_says_so():
    with pytest.raises(UserError) as raised:
        environment.plan_environment(SpecifierSet(">=3.99"), "5.5.3", None)
    running = "{}.{}".format(*sys.version_info[:2])
    assert (
        raised.value.message == f"the tree takes Python >=3.99, and here is {running}"
    )
    assert "--python" in (raised.value.hint or "")


def test_a_disk_that_is_full_is_named(tmp_path, monkeypatch):
    small = tmp_path / "small"
    small.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(small)]
    if subprocess.run(words, capture_output=True).returncode != 0:
        pytest.skip("a small disk cannot be made here")
    try:
        monkeypatch.setenv("VLMEND_CACHE_DIR", str(small / "cache"))
        plan = environment.plan_environment(SpecifierSet(), "5.5.3", None)
        with pytest.raises(UserError) as raised:
            environment.make(plan)
        assert "no space left for about 1.3 GB: 0 MB are free" in raised.value.message
        assert list(plan.base.parent.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)
