"""A regression test goes where its kin are and where CI runs it."""

from __future__ import annotations

import pytest

from vlmend.cli.proof.placing import place_of, selected_by
from vlmend.codemods import DirectoryTree, MemoryTree

KIN = {"tests/model_executor/test_some_model.py": b""}


@pytest.mark.parametrize(
    ("files", "scope", "place"),
    [
        pytest.param(KIN, "singles", "tests/model_executor/test_x.py", id="kin"),
        pytest.param({}, "all", "tests/models/test_x.py", id="no kin"),
        pytest.param(
            {"tests/model_executor/layers/test_some.py": b""},
            "",
            "tests/models/test_x.py",
            id="kin of something else",
        ),
        pytest.param(
            KIN, "qwen-vl", "tests/model_executor/test_x_qwen_vl.py", id="a family"
        ),
        pytest.param(
            {**KIN, "tests/model_executor/test_x.py": b""},
            "",
            "tests/model_executor/test_x_2.py",
            id="the name is taken",
        ),
    ],
)
def test_the_place(files, scope, place):
    assert place_of("x", scope, MemoryTree(files)) == place


def test_a_real_tree_has_kin(release):
    tree = DirectoryTree(release("0.33.0"))
    assert place_of("x", "", tree) == "tests/model_executor/test_x.py"


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("    - pytest -v -s model_executor -m 'not slow_test'", True),
        ("  - A=1 pytest -v tests/model_executor/", True),
        ("  - pytest -v model_executor/test_x.py", True),
        ("#   - pytest -v -s model_executor", False),
        ("  - pytest -v model_executor/layers", False),
        ("  - pytest -v -s model_exec", False),
        ("  - model_executor/", False),
    ],
)
def test_the_step_that_runs_it(command, runs):
    name = ".buildkite/test_areas/model_executor.yaml"
    tree = MemoryTree({name: f"steps:\n{command}\n".encode()})
    found = selected_by("tests/model_executor/test_x.py", tree)
    assert found == (f"{name}:2" if runs else "")
