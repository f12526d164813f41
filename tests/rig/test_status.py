"""What became of drafts and pull requests, told as text and as JSON."""

from __future__ import annotations

import json

import pytest
from worlds import FORK, UPSTREAM

from vlmend.cli.rig.model import Check
from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

pytestmark = pytest.mark.rig

FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"


def status(world, *words):
    return world.run("status", "--fork", FORK, "--upstream", UPSTREAM, *words)


def document(world):
    ended = status(world, "--format", "json")
    assert ended.code == 0, world.everything()
    found = json.loads(ended.out)
    return {p["branch"]: p for p in found["pull_requests"]}, found["leftovers"]


def test_nothing_yet(world):
    ended = status(world)
    assert ended.code == 0
    assert ended.out == "no drafts, no pull requests, nothing left behind\n"


def test_a_failing_check_that_fails_on_the_base_is_not_ours(world):
    world.draft()
    main, head = world.fork.head("main"), world.fork.head(FAMILY)
    world.fork.checks[main] = [Check("lint", "failure"), Check("unit", "success")]
    world.fork.checks[head] = [Check("lint", "failure"), Check("unit", "success")]
    other = world.fork.head(SINGLES)
    world.fork.checks[other] = [Check("lint", "success"), Check("unit", "failure")]
    pulls, _ = document(world)
    assert pulls[FAMILY]["checks"] == "failing, not ours"
    assert [c["ours"] for c in pulls[FAMILY]["failing"]] == [False]
    assert pulls[SINGLES]["checks"] == "failing"
    assert [(c["name"], c["ours"]) for c in pulls[SINGLES]["failing"]] == [
        ("unit", True)
    ]
    told = status(world).out
    assert "not ours, the base: https://" in told


def test_a_reviewer_whose_account_is_gone(world):
    world.draft()
    for pull in world.fork.pulls.values():
        pull.reviews += [("", "CHANGES_REQUESTED")]
    found, _ = document(world)
    assert found[FAMILY]["review"] == "changes wanted by somebody"


def test_reviews_refusals_and_people(world):
    world.draft()
    pulls = {p.head: p for p in world.fork.pulls.values()}
    pulls[FAMILY].reviews += [("grace", "APPROVED"), ("linus", "CHANGES_REQUESTED")]
    closed = pulls[SINGLES]
    closed.state, closed.closed, closed.closed_by = (
        "closed",
        world.forge.stamp(),
        "grace",
    )
    mine = {"docs/page2.md": "mine\n"}
    commit_files(world.fork, mine, "On top", FAMILY, "Grace Example")
    found, leftovers = document(world)
    assert found[FAMILY]["review"] == "changes wanted by linus"
    assert found[FAMILY]["touched_by"].startswith("Grace Example")
    assert found[FAMILY]["mergeable"] is True
    assert found[SINGLES]["refused_by"] == "grace"
    assert found[SINGLES]["refused_at"]
    assert leftovers == [
        {
            "branch": SINGLES,
            "commit": world.fork.head(SINGLES),
            "ours": True,
            "closed": True,
        }
    ]


def test_what_upstream_mended_meanwhile(world):
    world.draft()
    path = f"{MODELS}/vega_vision.py"
    commit_files(world.upstream, {path: wrapper("VegaVision", sound=True)}, "Mend")
    found, _ = document(world)
    assert found[SINGLES]["fixed_upstream"]
    assert not found[FAMILY]["fixed_upstream"]


def test_a_branch_of_a_run_that_was_cut_off(world):
    world.fault = lambda request, act: (
        world.kill()
        if (request.method, request.path[-6:]) == ("POST", "/pulls")
        else act()
    )
    assert world.draft().code < 0
    world.fault = None
    told = status(world).out
    assert "left by a run that was cut off" in told


def test_close_fixed_alone(world):
    world.draft()
    path = f"{MODELS}/vega_vision.py"
    fix = commit_files(world.fork, {path: wrapper("VegaVision", sound=True)}, "Mend")
    words = ("close-fixed", "--fork", FORK, "--upstream", UPSTREAM)
    assert world.run(*words, "--dry-run").code == 0
    assert world.open_heads() == [FAMILY, SINGLES]
    ended = world.run(*words)
    assert ended.code == 0, world.everything()
    assert world.open_heads() == [FAMILY]
    assert fix[:12] in ended.out
    assert world.run(*words).out == "nothing to close\n"


def test_a_file_that_cannot_be_read_closes_nothing(world):
    world.draft()
    path = f"{MODELS}/vega_vision.py"
    commit_files(world.fork, {path: "class Broken(:\n"}, "Break it")
    ended = world.run("close-fixed", "--fork", FORK, "--upstream", UPSTREAM)
    assert ended.code == 2
    assert world.open_heads() == [FAMILY, SINGLES]
