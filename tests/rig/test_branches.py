"""What a run does for everything that can have happened since the last one."""

from __future__ import annotations

import pytest

from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

pytestmark = pytest.mark.rig

FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"


def test_fresh(world):
    ended = world.draft()
    assert ended.code == 0, world.everything()
    assert world.open_heads() == [FAMILY, SINGLES]
    for pull in world.fork.pulls.values():
        assert pull.draft
        assert pull.base == "main"
        assert set(pull.labels) == {"vlmend", "delegate-intermediate-tensors"}
        assert pull.title.startswith("[Bugfix] ")
        assert "## Purpose" in pull.body
    assert world.upstream.pulls == {}


def test_the_same_finding_again_changes_nothing(world):
    world.draft()
    before = run_git(world.fork.folder, "for-each-ref")
    bodies = [p.body for p in world.fork.pulls.values()]
    world.exchanges.clear()
    assert world.draft().code == 0
    assert run_git(world.fork.folder, "for-each-ref") == before
    assert [p.body for p in world.fork.pulls.values()] == bodies
    assert {q.method for q, _ in world.exchanges if "/api/" in q.path} == {"GET"}


def prepared(world):
    """Run once, and forget what was asked for it."""
    assert world.draft().code == 0, world.everything()
    world.exchanges.clear()


def pull_of(world, branch, state="open"):
    return next(
        p for p in world.fork.pulls.values() if (p.head, p.state) == (branch, state)
    )


def writes(world):
    return [f"{q.method} {q.path}" for q, _ in world.exchanges if q.method != "GET"]


def test_a_finding_that_changed_updates_the_draft_in_place(world):
    prepared(world)
    head = world.fork.head(FAMILY)
    # Somebody mends one of the two on the fork's main: the family's draft shrinks.
    path = f"{MODELS}/polaris2_vl.py"
    commit_files(world.fork, {path: wrapper("Polaris2VL", sound=True)}, "Mend one")
    assert world.draft().code == 0, world.everything()
    assert world.open_heads() == [FAMILY, SINGLES]
    assert world.fork.head(FAMILY) != head
    pull = pull_of(world, FAMILY)
    assert "Polaris2VL" not in pull.title
    assert "fingerprint `" in pull.body
    assert pull.title in run_git(world.fork.folder, "log", "-1", "--format=%s", FAMILY)
    assert world.draft().out.count("unchanged") == 2


def test_a_base_that_moved_elsewhere_changes_nothing(world):
    prepared(world)
    head = world.fork.head(FAMILY)
    commit_files(world.fork, {"docs/page1.md": "moved\n"}, "Elsewhere")
    ended = world.draft()
    assert ended.code == 0
    assert ended.out.count("unchanged") == 2
    assert world.fork.head(FAMILY) == head
    assert not [w for w in writes(world) if "/api/" in w]


def test_a_base_that_moved_into_conflict_rebuilds_the_draft(world):
    prepared(world)
    path = f"{MODELS}/vega_vision.py"
    text = wrapper("VegaVision").replace(
        '["InnerForCausalLM"],', 'list(("InnerForCausalLM",)),'
    )
    base = commit_files(world.fork, {path: text}, "Write it otherwise")
    ended = world.draft()
    assert ended.code == 0, world.everything()
    assert "updated" in ended.out
    parent = run_git(world.fork.folder, "rev-parse", f"{SINGLES}~1")
    assert parent == base
    assert world.open_heads() == [FAMILY, SINGLES]


def test_a_fork_that_is_behind_stays_behind_and_it_is_said(world):
    commit_files(world.upstream, {"docs/page1.md": "new\n"}, "News")
    before = world.fork.head("main")
    ended = world.draft()
    assert ended.code == 0
    assert f"1 commit behind {world.upstream.full_name}" in ended.out
    assert world.fork.head("main") == before


def test_sync_moves_the_fork_forward(world):
    new = commit_files(world.upstream, {"docs/page1.md": "new\n"}, "News")
    ended = world.draft("--sync")
    assert ended.code == 0, world.everything()
    assert world.fork.head("main") == new
    assert run_git(world.fork.folder, "rev-parse", f"{FAMILY}~1") == new


def test_sync_refuses_a_fork_that_has_diverged(world):
    commit_files(world.upstream, {"docs/page1.md": "new\n"}, "News")
    mine = commit_files(world.fork, {"docs/page2.md": "mine\n"}, "Mine")
    ended = world.draft("--sync")
    assert ended.code == 3
    assert "only moves forward" in ended.err
    assert world.fork.head("main") == mine
    assert world.fork.pulls == {}


def test_a_diverged_fork_is_drafted_on_as_it_is(world):
    commit_files(world.upstream, {"docs/page1.md": "new\n"}, "News")
    mine = commit_files(world.fork, {"docs/page2.md": "mine\n"}, "Mine")
    assert world.draft().code == 0
    assert world.open_heads() == [FAMILY, SINGLES]
    assert world.fork.head("main") == mine


def test_sync_over_workflow_changes_names_the_missing_scope(world):
    files = {".github/workflows/ci.yml": "on: push\n"}
    commit_files(world.upstream, files, "Change the workflow")
    ended = world.draft("--sync")
    assert ended.code == 2
    assert "'workflow' scope" in ended.err
    # Without --sync only our own commit is pushed, and nothing is missing.
    assert world.draft().code == 0, world.everything()
    assert world.open_heads() == [FAMILY, SINGLES]


def test_a_branch_with_a_persons_commit_is_left_alone(world):
    prepared(world)
    mine = commit_files(
        world.fork, {"docs/page2.md": "mine\n"}, "On top", FAMILY, "Grace Example"
    )
    commit_files(
        world.fork,
        {f"{MODELS}/polaris2_vl.py": wrapper("Polaris2VL", sound=True)},
        "Mend one",
    )
    ended = world.draft()
    assert ended.code == 0, world.everything()
    assert "left alone" in ended.out
    assert "Grace Example" in ended.out
    assert world.fork.head(FAMILY) == mine


def test_an_amended_commit_counts_as_a_persons(world):
    prepared(world)
    folder = world.fork.folder
    message = run_git(folder, "log", "-1", "--format=%B", FAMILY)
    parent = run_git(folder, "rev-parse", f"{FAMILY}~1")
    mine = commit_files(world.fork, {"docs/page2.md": "mine\n"}, "x", FAMILY)
    tree = run_git(folder, "rev-parse", f"{mine}^{{tree}}")
    amended = run_git(folder, "commit-tree", "-p", parent, "-m", message, tree)
    run_git(folder, "update-ref", f"refs/heads/{FAMILY}", amended)
    ended = world.draft()
    assert "left alone" in ended.out
    assert world.fork.head(FAMILY) == amended


def closed_by_a_person(world, branch):
    pull = pull_of(world, branch)
    pull.state, pull.closed, pull.closed_by = "closed", world.forge.stamp(), "grace"
    return pull


def test_a_draft_closed_by_a_person_is_not_brought_back(world):
    prepared(world)
    closed = closed_by_a_person(world, SINGLES)
    ended = world.draft()
    assert ended.code == 0
    assert "declined" in ended.out
    assert "closed by grace on " in ended.out
    assert closed.state == "closed"
    assert world.open_heads() == [FAMILY]


def test_a_declined_draft_comes_back_when_asked(world):
    prepared(world)
    closed = closed_by_a_person(world, SINGLES)
    assert world.draft("--reopen").code == 0, world.everything()
    assert world.open_heads() == [FAMILY, SINGLES]
    assert closed.state == "open"


def test_a_declined_draft_comes_back_when_the_defect_has_another_shape(world):
    prepared(world)
    closed = closed_by_a_person(world, SINGLES)
    text = wrapper("VegaVision").replace("self.language_model", "self.llm")
    commit_files(world.fork, {f"{MODELS}/vega_vision.py": text}, "Rename")
    assert world.draft().code == 0, world.everything()
    assert closed.state == "closed"
    assert world.open_heads() == [FAMILY, SINGLES]


def test_a_merged_draft_is_done_with(world):
    prepared(world)
    pull = pull_of(world, SINGLES)
    pull.state, pull.merged, pull.closed = "closed", True, world.forge.stamp()
    path = f"{MODELS}/vega_vision.py"
    commit_files(world.fork, {path: wrapper("VegaVision", sound=True)}, "Merge #2")
    ended = world.draft()
    assert ended.code == 0
    assert world.open_heads() == [FAMILY]
    assert SINGLES not in ended.out


def test_a_fork_that_is_gone_is_named(world):
    del world.forge.repositories[world.fork.id]
    ended = world.draft()
    assert ended.code == 2
    assert "you/vllm: no such repository" in ended.err
    assert "--create-fork" in ended.err


def test_a_fork_that_was_renamed_is_followed(world):
    world.forge.rename(world.fork, "vllm-next")
    ended = world.draft()
    assert ended.code == 0, world.everything()
    assert "you/vllm is now called you/vllm-next" in ended.err
    assert world.open_heads() == [FAMILY, SINGLES]


def test_a_protected_branch_ends_in_one_clear_line(world):
    hook = world.fork.folder / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\necho 'GH006: Protected branch update failed' >&2\nexit 1\n"
    )
    hook.chmod(0o755)
    ended = world.draft()
    assert ended.code == 2
    assert "a protection rule of the fork refuses it" in " ".join(ended.out.split())
    assert world.fork.pulls == {}
    hook.unlink()
    assert world.draft().code == 0
    assert world.open_heads() == [FAMILY, SINGLES]


def test_a_fork_can_be_made(world):
    del world.forge.repositories[world.fork.id]
    ended = world.draft("--create-fork")
    assert ended.code == 0, world.everything()
    made = world.forge.find("you/vllm")
    assert made is not None
    assert sorted(p.head for p in made.pulls.values()) == [FAMILY, SINGLES]


def test_what_upstream_mended_is_closed_with_its_commit(world):
    prepared(world)
    path = f"{MODELS}/vega_vision.py"
    commit_files(world.upstream, {"docs/page1.md": "a\n"}, "Before (#70)")
    commit_files(world.upstream, {path: wrapper("VegaVision") + "\n"}, "Touch (#71)")
    fix = commit_files(
        world.upstream, {path: wrapper("VegaVision", sound=True)}, "Mend it (#72)"
    )
    commit_files(
        world.upstream, {path: wrapper("VegaVision", sound=True) + "\n"}, "After (#73)"
    )
    ended = world.draft("--sync")
    assert ended.code == 0, world.everything()
    assert world.open_heads() == [FAMILY]
    (comment,) = pull_of(world, SINGLES, "closed").comments
    assert comment.body.startswith("Closed by vlmend:")
    assert fix in comment.body
    assert "/pull/72" in comment.body


def test_a_defect_that_returns_opens_its_draft_again(world):
    prepared(world)
    path = f"{MODELS}/vega_vision.py"
    commit_files(world.fork, {path: wrapper("VegaVision", sound=True)}, "Mend")
    world.draft()
    assert world.open_heads() == [FAMILY]
    commit_files(world.fork, {path: wrapper("VegaVision")}, "Revert")
    ended = world.draft()
    assert ended.code == 0, world.everything()
    assert "reopened" in ended.out
    assert world.open_heads() == [FAMILY, SINGLES]


def test_caps_hold_back_and_say_so(world):
    ended = world.draft("--max-new", "1")
    assert ended.code == 0
    assert ended.out.count("created") == 1
    assert "--max-new 1" in ended.out
    ended = world.draft("--max-open", "1")
    assert "--max-open 1" in ended.out
    assert len(world.open_heads()) == 1
