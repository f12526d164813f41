"""Somebody else acts in the middle of a run: another run, a person, an owner.

The other acts while the run waits for one answer: before the first call of each kind.
"""

from __future__ import annotations

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faults import kind_of
from forking import Zygote
from worlds import FORK, UPSTREAM

from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

pytestmark = pytest.mark.rig

FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"
WORDS = ("draft", "--fork", FORK, "--upstream", UPSTREAM)


@pytest.fixture(scope="module")
def beside():
    zygote = Zygote(Path(__file__).with_name("zygote.py"))
    yield zygote
    zygote.close()


def another_run(world, beside):
    """Let a whole run happen on another machine: it has a cache of its own."""
    shutil.copytree(world.warm, world.place / "cache-beside")
    ended = world.run(*WORDS, cache="cache-beside", beside=beside)
    assert ended.code == 0, world.everything()


def a_person_pushes(world, beside):
    files = {"docs/page2.md": "mine\n"}
    commit_files(world.fork, files, "On top", SINGLES, "Grace Example")


def somebody_takes_the_branchs_name(world, beside):
    """A branch `vlmend` leaves no room for any branch below that name."""
    if world.fork.head(SINGLES) is None and world.fork.head(FAMILY) is None:
        run_git(world.fork.folder, "branch", "vlmend", "main")


def the_base_moves(world, beside):
    files = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
    commit_files(world.fork, files, "Mend VegaVision (#7)")


def the_fork_is_renamed(world, beside):
    world.forge.rename(world.fork, "vllm-next")


def the_drafts_are_closed(world, beside):
    for pull in world.fork.pulls.values():
        pull.state, pull.closed = "closed", world.forge.stamp()
        pull.closed_by = "grace"


OTHERS = (
    another_run,
    a_person_pushes,
    somebody_takes_the_branchs_name,
    the_base_moves,
    the_fork_is_renamed,
    the_drafts_are_closed,
)


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.__name__)
def test_in_the_middle_of_a_run(world, beside, other):
    world.fresh()
    assert world.draft().code == 0
    kinds = list(dict.fromkeys(kind_of(q) for q, _ in world.exchanges))
    assert len(kinds) > 10
    problems = []
    for kind in kinds:
        world.fresh()
        try:
            interrupted(world, beside, other, kind)
        except AssertionError as error:
            problems.append(f"{other.__name__} at {kind}: {error}")
        world.drop()
    assert not problems, f"{len(problems)} of {len(kinds)}\n\n" + "\n\n".join(problems)


def interrupted(world, beside, other, kind):
    done = []

    def acting(request, act):
        if kind_of(request) == kind and not done:
            done.append(request)
            other(world, beside)
        return act()

    world.fault = acting
    ended = world.draft()
    assert done
    world.fault = None
    assert ended.code in (0, 2, 3), world.everything()
    assert "Traceback" not in ended.text, world.everything()
    assert "internal error" not in ended.text, world.everything()
    told = [x for x in ended.err.splitlines() if x.startswith("vlmend: ")]
    assert (ended.code == 0) or told or "failed" in ended.out or "left" in ended.out
    require_sane(world)
    if world.fork.head("vlmend") is not None:
        assert ended.code == 2, world.everything()
        assert "'vlmend' is in the way" in " ".join(ended.out.split())
        run_git(world.fork.folder, "branch", "-D", "vlmend")
    again = world.draft()
    assert again.code == 0, world.everything()
    require_sane(world)
    mended = "sound" if other is the_base_moves else ""
    heads = {p.head for p in world.fork.pulls.values()}
    assert FAMILY in heads
    assert SINGLES in heads or mended or "Grace Example" in again.out
    # What a person has pushed is there still.
    if other is a_person_pushes:
        names = run_git(world.fork.folder, "log", "--format=%an", SINGLES)
        assert "Grace Example" in names, world.everything()


def require_sane(world):
    heads = Counter(world.open_heads())
    assert all(count == 1 for count in heads.values()), world.everything()
    assert world.upstream.pulls == {}


@pytest.mark.parametrize("cache", ["cache", "cache-beside"], ids=["shared", "own"])
def test_two_runs_side_by_side_end_with_one_draft_each(world, beside, cache):
    if cache != "cache":
        shutil.copytree(world.warm, world.place / cache)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(world.run, *WORDS)
        other = pool.submit(world.run, *WORDS, cache=cache, beside=beside)
        ended = [one.result(), other.result()]
    assert [e.code for e in ended] == [0, 0], world.everything()
    assert world.open_heads() == [FAMILY, SINGLES]
    assert len(world.fork.pulls) == 2
    assert world.draft().out.count("unchanged") == 2
