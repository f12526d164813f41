"""The whole tree of a real release, from nothing to drafts, and then nothing to do."""

from __future__ import annotations

import os

import pytest
from worlds import TOKEN

from vlmend.cli.rig.model import run_git

pytestmark = pytest.mark.rig

COHERE = "vllm/model_executor/models/cohere2_vision.py"


def test_from_nothing_to_drafts(whole):
    words = ("--codemod", "delegate-intermediate-tensors")
    ended = whole.draft(*words, cache="cold")
    assert ended.code == 0, whole.everything()
    heads = whole.open_heads()
    assert len(heads) == 2
    singles = next(p for p in whole.fork.pulls.values() if p.head.endswith("/singles"))
    told = run_git(whole.fork.folder, "show", "--format=", singles.head, "--", COHERE)
    added = [x for x in told.splitlines() if x.startswith("+") and x[1:2] != "+"]
    assert added == [
        "+        self.make_empty_intermediate_tensors = (",
        "+            self.language_model.make_empty_intermediate_tensors",
        "+        )",
        "+",
    ]
    assert [x for x in told.splitlines() if x.startswith("-") and x[1:2] != "-"] == []
    assert "## Purpose" in singles.body
    assert f"/blob/{whole.fork.head('main')}/{COHERE}#L" in singles.body
    assert "Precedents" in singles.body
    assert len(singles.body) < 65536
    # The clone is blobless: it holds what was judged, and not the rest of the tree.
    (clone,) = (whole.place / "cold" / "clones").glob("*.git")
    missing = run_git(
        clone, "rev-list", "--objects", "--missing=print", "refs/vlmend/fork/main"
    )
    assert sum(line.startswith("?") for line in missing.splitlines()) > 500
    ended = whole.draft(*words, cache="cold")
    assert ended.code == 0
    assert ended.out.count("unchanged") == 2
    assert os.environ.get("GITHUB_TOKEN") != TOKEN
