"""Is somebody mending this already? Asked before every draft."""

from __future__ import annotations

import pytest

from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

pytestmark = pytest.mark.rig

VEGA = "VegaVisionForConditionalGeneration"
PATH = f"{MODELS}/vega_vision.py"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"
ONLY = ("--class", VEGA)


def theirs(world, files, title="Something else", body=""):
    """Open a pull request of somebody else's, upstream."""
    commit_files(world.upstream, files, title, "theirs")
    return world.forge.open_pull(
        world.upstream, world.upstream, "theirs", title, body, "grace"
    )


def test_a_pull_request_that_touches_the_same_lines_refuses(world):
    theirs(world, {PATH: wrapper("VegaVision", sound=True)})
    ended = world.draft(*ONLY)
    assert ended.code == 3
    assert f"pull request #1 changes the same lines of {PATH}" in " ".join(
        ended.out.split()
    )
    assert world.fork.pulls == {}
    assert world.fork.head(SINGLES) is None


def test_one_that_touches_other_lines_does_not(world):
    text = f'"""Vega."""\n\n{wrapper("VegaVision")}'
    theirs(world, {PATH: text})
    assert world.draft(*ONLY).code == 0, world.everything()
    assert world.open_heads() == [SINGLES]


def test_an_old_one_is_compared_with_what_it_was_made_from(world):
    theirs(world, {"docs/page1.md": "theirs\n"})
    # Upstream moves on in our file; the old pull request still has the old version.
    moved = f"import math\n{wrapper('VegaVision')}"
    commit_files(world.upstream, {PATH: moved}, "Move on")
    assert world.draft("--sync", *ONLY).code == 0, world.everything()


def test_lines_that_moved_meanwhile_are_found(world):
    theirs(world, {PATH: wrapper("VegaVision", sound=True)})
    moved = "import math\n" * 20 + wrapper("VegaVision")
    commit_files(world.upstream, {PATH: moved}, "Move on")
    assert world.draft("--sync", *ONLY).code == 3


@pytest.mark.parametrize("where", ["title", "body"])
def test_a_pull_request_that_names_the_class_refuses(world, where):
    theirs(world, {"docs/page1.md": "x\n"}, **{where: f"Fix {VEGA} on rank 1"})
    ended = world.draft(*ONLY)
    assert ended.code == 3
    assert f"names {VEGA}" in " ".join(ended.out.split())


def test_an_issue_that_names_the_class_refuses(world):
    world.forge.open_issue(world.upstream, "PP is broken", f"for {VEGA}.", "grace")
    ended = world.draft(*ONLY)
    assert ended.code == 3
    assert "issue #1" in ended.out


def test_a_longer_name_is_another_name(world):
    world.forge.open_issue(world.upstream, f"{VEGA}Two is broken", "", "grace")
    assert world.draft(*ONLY).code == 0


def test_a_reason_overrides_and_lands_in_the_text(world):
    world.forge.open_issue(world.upstream, "PP is broken", f"for {VEGA}.", "grace")
    reason = "that issue is about *loading* <b>weights</b>"
    ended = world.draft(*ONLY, "--not-duplicate", reason)
    assert ended.code == 0, world.everything()
    (pull,) = world.fork.pulls.values()
    assert "No duplicate, because: that issue is about \\*loading\\*" in pull.body
    assert "<b>" not in pull.body
    assert "possible duplicate" in pull.body


def test_the_other_scopes_go_on(world):
    world.forge.open_issue(world.upstream, "PP is broken", f"for {VEGA}.", "grace")
    assert world.draft().code == 3
    assert world.open_heads() == ["vlmend/delegate-intermediate-tensors/polaris"]


def test_an_incomplete_search_is_unknown_and_says_so(world):
    world.upstream.refusals.add("search")
    ended = world.draft(*ONLY)
    assert ended.code == 0
    assert "its result is unknown" in " ".join(ended.out.split())
    (pull,) = world.fork.pulls.values()
    assert ": unknown (GitHub says that its answer is incomplete)" in pull.body


def test_what_is_open_upstream_already_is_not_drafted_again(world):
    commit_files(world.fork, {PATH: wrapper("VegaVision", sound=True)}, "Mine", SINGLES)
    world.forge.open_pull(world.upstream, world.fork, SINGLES, "Mine", "", "you")
    # The branch holds a person's commit, so it is theirs; nothing new is opened.
    ended = world.draft(*ONLY)
    assert ended.code == 0
    assert world.fork.pulls == {}


def test_a_dry_run_shows_all_and_writes_nothing(world):
    ended = world.draft("--dry-run")
    assert ended.code == 0
    assert world.fork.pulls == {}
    assert world.fork.head(SINGLES) is None
    assert {q.method for q, _ in world.exchanges if "/api/" in q.path} == {"GET"}
    for told in ("commit message", "## Purpose", "+        self.make_empty", "Vlmend-"):
        assert told in ended.out
