"""A person brings a draft upstream; everything is asked, and nothing is assumed."""

from __future__ import annotations

import pytest
from worlds import FORK, UPSTREAM

from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

pytestmark = pytest.mark.rig

SINGLES = "vlmend/delegate-intermediate-tensors/singles"
VEGA = "VegaVisionForConditionalGeneration"
ALL = ["y", "pytest tests/models -k vega", "3 passed", "", "y", UPSTREAM]


@pytest.fixture
def drafted(world):
    assert world.draft("--class", VEGA).code == 0, world.everything()
    assert world.open_heads() == [SINGLES]
    return world


def publish(world, answers, *more, **variables):
    words = ("publish", f"{FORK}#1", "--upstream", UPSTREAM, *more)
    return world.at_terminal(answers, *words, **variables)


def test_all_said_and_agreed(drafted):
    before = drafted.fork.head(SINGLES)
    ended = publish(drafted, ALL)
    assert ended.code == 0, drafted.everything()
    (pull,) = drafted.upstream.pulls.values()
    assert pull.draft
    assert (pull.head_owner, pull.head, pull.base) == ("you", SINGLES, "main")
    assert "pytest tests/models -k vega" in pull.body
    assert "3 passed" in pull.body
    assert pull.title.startswith("[Bugfix] ")
    assert drafted.fork.head(SINGLES) != before
    form = "%an <%ae>|%cn <%ce>|%(trailers:key=Signed-off-by,valueonly)"
    told = run_git(drafted.fork.folder, "log", "-1", f"--format={form}", SINGLES)
    assert set(told.split("|")) == {"Ada Example <ada@example.invalid>"}
    assert "has SupportsPP among its bases" in ended.err
    assert "+        self.make_empty_intermediate_tensors = (" in ended.err


def test_what_is_published_is_left_alone_by_draft(drafted):
    assert publish(drafted, ALL).code == 0
    head = drafted.fork.head(SINGLES)
    ended = drafted.draft("--class", VEGA)
    assert ended.code == 0
    assert "left alone" in ended.out
    assert drafted.fork.head(SINGLES) == head
    assert len(drafted.upstream.pulls) == 1


def test_again_opens_nothing_more(drafted):
    assert publish(drafted, ALL).code == 0
    ended = publish(drafted, ALL)
    assert ended.code == 0, drafted.everything()
    assert "it is open upstream already" in ended.err
    assert len(drafted.upstream.pulls) == 1


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        pytest.param(["n"], "did not agree to a change", id="a-hunk-not-understood"),
        pytest.param(["y", ""], "wants the tests run", id="no-tests"),
        pytest.param(["y", "pytest", ""], "without a result", id="no-result"),
        pytest.param(["y", "pytest", "ok", "", "n"], "nothing", id="not-that-person"),
        pytest.param([*ALL[:-1], "yes"], "you did not agree", id="name-not-typed"),
        pytest.param([*ALL[:-1], FORK], "you did not agree", id="another-name"),
    ],
)
def test_anything_less_opens_nothing(drafted, answers, told):
    before = drafted.fork.head(SINGLES)
    ended = publish(drafted, answers)
    assert ended.code == 3, drafted.everything()
    assert told in ended.err
    assert drafted.upstream.pulls == {}
    assert drafted.fork.head(SINGLES) == before


def test_the_search_is_repeated(drafted):
    drafted.forge.open_issue(drafted.upstream, "PP", f"{VEGA} dies", "grace")
    ended = publish(drafted, ALL)
    assert ended.code == 3
    assert "possible duplicate: issue #1" in ended.err
    assert [p for p in drafted.upstream.pulls.values() if not p.is_issue] == []
    ended = publish(drafted, ALL, "--not-duplicate", "it is about loading")
    assert ended.code == 0, drafted.everything()


def test_a_defect_that_is_gone_upstream_is_not_published(drafted):
    path = f"{MODELS}/vega_vision.py"
    commit_files(drafted.upstream, {path: wrapper("VegaVision", sound=True)}, "Mend")
    ended = publish(drafted, ALL)
    assert ended.code == 3
    assert "no longer has the defect" in ended.err


def test_a_bot_does_not_publish(drafted):
    names = {f"GIT_{role}_NAME": "some[bot]" for role in ("AUTHOR", "COMMITTER")}
    ended = publish(drafted, ALL, **names)
    assert ended.code == 3
    assert "a bot does not sign off" in ended.err


def test_not_in_ci(drafted):
    ended = publish(drafted, ALL, CI="true")
    assert ended.code == 3
    assert drafted.upstream.pulls == {}


def test_a_person_killed_before_the_end_goes_on_later(drafted):
    drafted.fault = lambda request, act: (
        drafted.kill()
        if request.method == "POST" and request.path.endswith("/them/vllm/pulls")
        else act()
    )
    assert publish(drafted, ALL).code < 0
    head = drafted.fork.head(SINGLES)
    drafted.fault = None
    assert publish(drafted, ALL).code == 0, drafted.everything()
    assert drafted.fork.head(SINGLES) == head
    assert len(drafted.upstream.pulls) == 1


def test_a_fork_that_maintainers_may_not_change_is_opened_without(drafted):
    drafted.upstream.refusals.add("collab")
    assert publish(drafted, ALL).code == 0, drafted.everything()
    assert len(drafted.upstream.pulls) == 1
