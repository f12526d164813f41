"""Drafts with run-time proof: a real release, real models, a test in the commit."""

from __future__ import annotations

import json

import pytest
from worlds import FORK, TOKEN, UPSTREAM

from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import commit_files

COHERE = "vllm/model_executor/models/cohere2_vision.py"
TEST = "tests/model_executor/test_empty_intermediate_tensors.py"
WORDS = (
    *("--codemod", "delegate-intermediate-tensors"),
    *("--class", "Cohere2Vision*", "--verify"),
)


@pytest.fixture
def whole(whole, whole_tree, kept_environments):
    """All of 0.21.0, with its clone at hand and environments to run it in."""
    whole.clone = whole_tree
    (whole.place / "cold").mkdir(mode=0o700)
    (whole.place / "cold" / "verify").symlink_to(kept_environments)
    return whole


def push_up(world, file, old, new):
    """Change a file on the main branches of upstream and fork."""
    tree = world.clone
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new))
    run_git(tree, "commit", "-q", "-a", "-m", "Change something")
    for name in (UPSTREAM, FORK):
        folder = world.forge.find(name).folder
        run_git(tree, "push", "-q", str(folder), "HEAD:main")


def harnesses(world):
    """Return the processes that a tree's code has run in so far."""
    lines = (world.place / "children").read_text().splitlines()
    children = [json.loads(line) for line in lines]
    return [c for c in children if "vlmend.cli.proof.harness" in c["argv"]]


@pytest.mark.verify
def test_a_draft_carries_its_proof_and_its_test(whole):
    ended = whole.draft(*WORDS, "--yes", cache="cold")
    assert ended.code == 0, whole.everything()
    (pull,) = whole.fork.pulls.values()
    listed = run_git(whole.fork.folder, "show", "--format=", "--name-only", pull.head)
    assert listed.split() == [TEST, COHERE]
    assert "PROVEN" in pull.body
    assert "| `None` | `IntermediateTensors` with " in pull.body
    before, _, after = pull.body.partition("and with it:")
    assert "1 failed" in before.partition("before the change:")[2]
    assert "1 passed" in after
    assert str(whole.place) not in pull.body
    assert len(harnesses(whole)) == 2
    assert TOKEN not in str(harnesses(whole))

    # The same again runs nothing; without --verify, the draft keeps its test.
    for words in ((*WORDS, "--yes"), WORDS[:-1]):
        ended = whole.draft(*words, cache="cold")
        assert (ended.code, "unchanged" in ended.out) == (0, True), ended.text
    assert len(harnesses(whole)) == 2

    # A person takes it upstream: what was shown goes along, and no one runs it again.
    answers = ["y", "y", "pytest tests/models -k cohere", "passed", "", "y", "no"]
    words = ("publish", f"{FORK}#1", "--upstream", UPSTREAM)
    ended = whole.at_terminal(answers, *words, cache="cold")
    assert (ended.code, "PROVEN" in ended.err) == (3, True), ended.err
    assert "1 failed" in ended.err
    assert len(harnesses(whole)) == 2

    ended = whole.draft(*WORDS, "--yes", "--no-test", cache="cold")
    assert (ended.code, "updated" in ended.out) == (0, True), ended.text
    listed = run_git(whole.fork.folder, "show", "--format=", "--name-only", pull.head)
    assert listed.split() == [COHERE]


@pytest.mark.verify
def test_what_is_refuted_is_no_draft(whole):
    # What the inner model hands out is nothing, which no reading of it can show.
    push_up(
        whole,
        "vllm/model_executor/models/utils.py",
        "    return make_empty_intermediate_tensors\n",
        "    return lambda *_, **__: None\n",
    )
    ended = whole.draft(*WORDS, "--yes", cache="cold")
    assert ended.code == 3, whole.everything()
    assert "refuted at run time: Cohere2Vision" in ended.out
    assert whole.open_heads() == []


@pytest.mark.rig
def test_nobody_to_ask_is_a_refusal(world):
    ended = world.draft("--verify", "--python", "/nowhere/python")
    assert (ended.code, "cannot be run" in ended.err) == (2, True)
    assert world.open_heads() == []


@pytest.mark.rig
def test_options_of_verify_need_it(world):
    ended = world.draft("--yes")
    assert (ended.code, "--yes is for --verify" in ended.err) == (2, True)


@pytest.mark.rig
def test_a_test_goes_upstream_with_its_fix(world):
    vega = "VegaVisionForConditionalGeneration"
    branch = "vlmend/delegate-intermediate-tensors/singles"
    assert world.draft("--class", vega).code == 0, world.everything()
    place = "tests/models/test_vega_vision.py"
    text = "def test_vega():\n    assert True\n"
    commit_files(world.fork, {place: text}, "Test it", branch)
    answers = ["y", "y", "pytest tests/models -k vega", "3 passed", "", "y", UPSTREAM]
    ended = world.at_terminal(answers, "publish", f"{FORK}#1", "--upstream", UPSTREAM)
    assert ended.code == 0, world.everything()
    assert f"[2/2] {place}" in ended.err
    assert "+def test_vega():" in ended.err
    listed = run_git(world.fork.folder, "show", "--format=", "--name-status", branch)
    assert f"A\t{place}" in listed
    assert len(listed.splitlines()) == 2
    told = run_git(world.fork.folder, "ls-tree", branch, place)
    assert told.startswith("100644 blob ")
