"""The action's steps, run for real, with the stand-in as GitHub."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from unittest import mock

import pytest
import worlds
from jobs import set_up
from worlds import BROKEN, FORK, UPSTREAM

from vlmend.cli.action.runner import SUMMARY_BYTES
from vlmend.cli.rig.api import refusal
from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files, registry, wrapper

pytestmark = pytest.mark.rig

ACTIONS = "github-actions[bot]"
JOB_TOKEN = "ghs_TheTokenOfOneJobThatMustNotAppear"
FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return set_up(tmp_path_factory.mktemp("machine"))


@pytest.fixture
def act(world, machine):
    """Run the action in a job of the fork."""
    world.forge.add_account(ACTIONS, JOB_TOKEN, "Bot")
    world.fork.writers.add(ACTIONS)

    def run(event="schedule", repository=FORK, token=JOB_TOKEN, more=None, **inputs):
        named = {name.replace("_", "-"): value for name, value in inputs.items()}
        variables = {
            "GITHUB_API_URL": world.rig.url,
            "GITHUB_EVENT_NAME": event,
            "GITHUB_REPOSITORY": repository,
            "VLMEND_CACHE_DIR": str(world.place / "cache"),
        }
        ran = machine.run(world.place, named, token, **{**variables, **(more or {})})
        world.told.append("\n".join([*ran.log, ran.summary, str(ran.outputs)]))
        if token and "vlmend" in ran.steps:
            first = ran.raw.splitlines()[0]
            assert (ran.masked[0], first) == (token, f"::add-mask::{token}")
        # The command that has a secret masked is the one line that spells it out.
        for line in ran.raw.splitlines():
            assert JOB_TOKEN not in line or line == f"::add-mask::{JOB_TOKEN}"
        for name in ("sarif-file", "html-file"):
            if ran.outputs[name]:
                assert JOB_TOKEN not in Path(ran.outputs[name]).read_text()
        return ran

    yield run
    assert leaks(world) == []


def leaks(world):
    """Look for the job's token wherever the rig looks for a person's."""
    forms = (JOB_TOKEN, b64encode(f"x-access-token:{JOB_TOKEN}".encode()).decode())
    with mock.patch.object(worlds, "_FORMS", [f.rstrip("=").encode() for f in forms]):
        return list(world.leaks())


def test_a_leak_would_be_seen(world):
    for told in (JOB_TOKEN, b64encode(f"x-access-token:{JOB_TOKEN}".encode()).decode()):
        world.told[:] = [f"a line with {told} in it"]
        assert leaks(world) == ["output"]


def draft(act, **more):
    return act(mode="draft", upstream=UPSTREAM, **more)


# --- draft -------------------------------------------------------------------------


def test_drafts_are_created_left_as_they_are_and_closed(world, act):
    ran = draft(act)
    assert ran.ok, world.everything()
    assert ran.outputs["findings"] == "3"
    assert ran.outputs["fixable"] == "3"
    found = {d["branch"]: d for d in ran.drafts}
    assert found.keys() == {FAMILY, SINGLES}
    assert {d["operation"] for d in ran.drafts} == {"created"}
    for one in ran.drafts:
        pull = world.fork.pulls[one["number"]]
        assert (pull.head, pull.draft, pull.user) == (one["branch"], True, ACTIONS)
        assert one["url"].endswith(f"/{FORK}/pull/{one['number']}")
    assert world.upstream.pulls == {}

    again = draft(act)
    assert again.ok
    assert {d["operation"] for d in again.drafts} == {"none"}
    assert {d["number"] for d in again.drafts} == {d["number"] for d in ran.drafts}

    mended = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
    commit_files(world.fork, mended, "Hand up tensors in VegaVision")
    last = draft(act)
    assert last.ok
    told = {d["number"]: d["operation"] for d in last.drafts}
    assert told == {
        found[SINGLES]["number"]: "closed",
        found[FAMILY]["number"]: "none",
    }
    assert last.outputs["fixable"] == "2"
    assert world.open_heads() == [FAMILY]


def test_the_summary_tells_of_the_drafts_and_folds_each_finding(world, act):
    ran = draft(act)
    assert f"# Drafts in {FORK}" in ran.summary
    for one in ran.drafts:
        assert f"[#{one['number']}](<{one['url']}>)" in ran.summary
    assert ran.summary.count("<details>") == 3
    assert "<summary><b>VegaVisionForConditionalGeneration</b>" in ran.summary
    assert "| contract | fixable |" in ran.summary


def test_commits_are_by_the_actions_bot_and_unsigned(world, act):
    draft(act)
    told = run_git(world.fork.folder, "log", "-1", "--format=%an <%ae>%n%B", FAMILY)
    address = "41898282+github-actions[bot]@users.noreply.github.com"
    assert told.splitlines()[0] == f"{ACTIONS} <{address}>"
    assert "Signed-off-by" not in told


def test_the_author_may_be_named(world, act):
    draft(act, author="Ada Example <ada@example.invalid>")
    told = run_git(world.fork.folder, "log", "-1", "--format=%an <%ae>", FAMILY)
    assert told == "Ada Example <ada@example.invalid>"


def test_a_cap_holds_drafts_back(world, act):
    ran = draft(act, max_new="1")
    assert ran.ok
    assert [d["operation"] for d in ran.drafts] == ["created"]
    assert "held back" in ran.summary


def test_only_fixable_findings_become_drafts(world, act):
    doubtful = wrapper("LyraVL", sound=True).replace(
        "        inputs_embeds=None,\n        **kwargs: object,\n",
        "        inputs_embeds=None,\n",
    )
    files = {f"{MODELS}/{module}.py": None for module in BROKEN}
    files |= {
        f"{MODELS}/lyra_vl.py": doubtful,
        f"{MODELS}/registry.py": registry({"lyra_vl": "LyraVL"}),
        "vlmend.toml": 'level = "review"\n',
    }
    commit_files(world.fork, files, "Something for a person to look at")
    ran = draft(act)
    assert ran.ok, world.everything()
    assert "| contract | review |" in ran.summary, "or this shows nothing"
    assert ran.drafts == []
    assert world.open_heads() == []


def test_the_upstream_gets_no_draft_whatever_the_token_may(world, act):
    world.upstream.writers.add(ACTIONS)
    ran = draft(act, repository=UPSTREAM)
    assert not ran.ok
    assert len(ran.errors) == 1
    assert "is the upstream itself" in ran.errors[0]
    assert world.upstream.pulls == {}


def test_what_is_no_fork_gets_no_draft(world, act):
    stray = world.forge.add_repository("you/stray")
    commit_files(stray, {"README.md": "no fork\n"}, "Start")
    stray.writers.add(ACTIONS)
    ran = draft(act, repository="you/stray")
    assert not ran.ok
    assert "is not a fork of them/vllm" in ran.errors[0]
    assert stray.pulls == {}


def test_publish_refuses_in_actions(world, act):
    draft(act)
    number = next(iter(world.fork.pulls))
    ended = world.at_terminal(
        [UPSTREAM], "publish", f"{FORK}#{number}", GITHUB_ACTIONS="true"
    )
    assert ended.code == 3
    assert "not in CI" in ended.text
    assert world.upstream.pulls == {}


# --- report ------------------------------------------------------------------------


def checkout(world, repository, commit, *, depth=1):
    """Do what actions/checkout does, with a token that does not stay."""
    place = world.place / "workspace"
    place.mkdir()
    url = f"{world.rig.web}/{repository.full_name}.git"
    for words in (
        ("init", "-q", "--template=", "."),
        ("remote", "add", "origin", url),
        ("fetch", "-q", "--no-tags", f"--depth={depth}", "origin", commit),
        ("checkout", "-q", "--detach", commit),
    ):
        run_git(place, *words)
    return place


def test_a_report_lists_what_is_wrong_and_passes(world, act):
    checkout(world, world.fork, world.fork.head("main"))
    ran = act(mode="report", event="workflow_dispatch", token="")
    assert ran.ok, world.everything()
    assert ran.outputs["findings"] == ran.outputs["fixable"] == "3"
    assert ran.drafts == []
    assert [level for level, _ in ran.annotations] == ["warning"] * 3
    path = f"file={MODELS}/vega_vision.py,line="
    assert any(path in line for line in ran.log)
    sarif = json.loads(Path(ran.outputs["sarif-file"]).read_text())
    assert len(sarif["runs"][0]["results"]) == 3
    page = Path(ran.outputs["html-file"]).read_text()
    assert "VegaVisionForConditionalGeneration" in page
    assert "| contract |" in ran.summary


def test_a_tree_on_the_forge_is_read_with_the_token(world, act):
    ran = act(mode="report", target=f"{FORK}@main")
    assert ran.ok, world.everything()
    assert ran.outputs["findings"] == "3"


def test_codemods_are_chosen_by_either_separator(world, act):
    checkout(world, world.fork, world.fork.head("main"))
    ran = act(mode="report", codemods="explicit-architectures,\n forward-kwargs")
    assert ran.ok
    assert ran.outputs["findings"] == "0"
    assert "delegate-intermediate-tensors" not in ran.summary


def test_a_file_that_cannot_be_judged_fails_the_step(world, act):
    broken = {f"{MODELS}/vega_vision.py": "class Broken(:\n"}
    commit_files(world.fork, broken, "Break")
    checkout(world, world.fork, world.fork.head("main"))
    ran = act(mode="report")
    assert not ran.ok
    assert any("nothing is claimed of it" in one for one in ran.errors)


def test_a_long_summary_is_cut_by_whole_findings(world, act):
    names = {f"wide{i}_vl": f"Wide{i}VL" for i in range(64)}
    long = f"        # {'A long line that the diff shows. ' * 600}\n"
    files = {
        f"{MODELS}/{module}.py": wrapper(name).replace(
            "\n    def forward(", f"{long}\n    def forward("
        )
        for module, name in names.items()
    }
    files[f"{MODELS}/registry.py"] = registry(names)
    commit_files(world.fork, files, "Many")
    checkout(world, world.fork, world.fork.head("main"))
    ran = act(mode="report")
    assert ran.ok, world.everything()
    size = len(ran.summary.encode())
    assert SUMMARY_BYTES * 0.9 < size <= SUMMARY_BYTES
    assert ran.summary.count("<details>") == ran.summary.count("</details>")
    shown = ran.summary.count("<details>")
    assert 0 < shown < 64
    left = int(ran.outputs["findings"]) - shown
    assert f"Left out here, to keep within what GitHub shows: {left} classes" in (
        ran.summary
    )


# --- guard -------------------------------------------------------------------------


class PullRequest:
    """A change to the upstream, merged with its base as GitHub does to test it."""

    def __init__(self, world, origin, files):
        self.head = commit_files(origin, files, "A change", branch="topic")
        # The base goes on meanwhile.
        later = {"docs/page1.md": "later\n"}
        self.base = commit_files(world.upstream, later, "Later")
        self.pull = world.forge.open_pull(
            world.upstream, origin, "topic", "A change", "", "somebody"
        )
        folder = world.upstream.folder
        tree = run_git(folder, "merge-tree", "--write-tree", self.base, self.head)
        somebody = ("-c", "user.name=x", "-c", "user.email=x@example.invalid")
        parents = ("-p", self.base, "-p", self.head)
        self.merge = run_git(
            folder, *somebody, "commit-tree", "-m", "Merge", *parents, tree
        )
        run_git(folder, "update-ref", f"refs/pull/{self.pull.number}/merge", self.merge)
        ends = {"base": {"sha": self.base}, "head": {"sha": self.head}}
        self.payload = {"pull_request": {"number": self.pull.number, **ends}}


NEW = "AltairVL"
BREAKING = {
    f"{MODELS}/altair_vl.py": wrapper(NEW),
    f"{MODELS}/registry.py": registry({"altair_vl": NEW}),
}
SOUND = BREAKING | {f"{MODELS}/altair_vl.py": wrapper(NEW, sound=True)}


def event_file(world, payload):
    place = world.place / "payload"
    place.write_text(json.dumps(payload))
    return {"GITHUB_EVENT_PATH": str(place)}


@pytest.fixture
def guard(world, act):
    def run(change, *, commit=None, depth=1, token=JOB_TOKEN, event="pull_request"):
        checkout(world, world.upstream, commit or change.merge, depth=depth)
        world.exchanges.clear()
        more = event_file(world, change.payload)
        return act(
            event=event, repository=UPSTREAM, token=token, mode="guard", more=more
        )

    return run


@pytest.mark.parametrize("depth", [1, 2, 50])
def test_a_pull_request_that_breaks_a_contract_fails(world, guard, depth):
    ran = guard(PullRequest(world, world.upstream, BREAKING), depth=depth)
    assert not ran.ok
    assert ran.outputs["findings"] == ran.outputs["fixable"] == "1"
    assert sum("AltairVL" in one for one in ran.errors) == 1, world.everything()
    assert not any("Polaris" in one for one in ran.errors)
    assert any("`vlmend fix`" in one for one in ran.errors)
    told = f"file={MODELS}/altair_vl.py,line="
    assert any(told in line for line in ran.log)


def test_a_pull_request_that_breaks_nothing_passes(world, guard):
    ran = guard(PullRequest(world, world.upstream, SOUND))
    assert ran.ok, world.everything()
    assert ran.outputs["findings"] == "0"
    assert ran.errors == []


@pytest.mark.parametrize("token", [JOB_TOKEN, ""], ids=["read-only", "none"])
def test_a_pull_request_from_a_fork_needs_no_right_to_write(world, guard, token):
    world.fork.writers.clear()
    assert ACTIONS not in world.upstream.writers
    ran = guard(PullRequest(world, world.fork, BREAKING), token=token)
    assert ran.outputs["findings"] == "1", world.everything()
    assert not ran.ok
    asked = [(q.method, q.path) for q, _ in world.exchanges]
    assert all(".git/" in path and "receive" not in path for _, path in asked)


def test_the_head_of_a_pull_request_can_be_checked_out(world, guard):
    change = PullRequest(world, world.fork, BREAKING)
    ran = guard(change, commit=change.head)
    assert ran.outputs["findings"] == "1", world.everything()


def test_a_merge_queue_is_guarded(world, guard):
    change = PullRequest(world, world.upstream, BREAKING)
    change.payload = {
        "merge_group": {"base_sha": change.base, "head_sha": change.merge}
    }
    ran = guard(change, event="merge_group")
    assert ran.outputs["findings"] == "1", world.everything()


def test_what_somebody_wrote_is_no_command_to_the_runner(world, act):
    """A line that is wrapped can begin with any word of a commit's subject."""
    draft(act)
    mended = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
    commit_files(world.fork, mended, f"Mend{' ::add-mask::Polaris' * 12} (#7)")
    ran = draft(act)
    assert ran.ok, world.everything()
    told = [line.strip() for line in ran.raw.splitlines()]
    assert any(line.startswith("::add-mask::Polaris") for line in told), "or no test"
    assert "Polaris" not in "".join(ran.masked)


def test_a_strangers_tree_runs_no_code(world, guard):
    """A change cannot put itself on the import path."""
    ran_it = world.place / "ran"
    code = f"open({str(ran_it)!r}, 'a').write(__file__)\n"
    names = ("pip", "venv", "click", "git", "vlmend", "sitecustomize", "libcst")
    files = BREAKING | {f"{name}.py": code for name in names}
    files |= {"vlmend/__init__.py": code, "vlmend/cli/__init__.py": code}
    ran = guard(PullRequest(world, world.fork, files))
    assert not ran_it.exists()
    assert ran.outputs["findings"] == "1", world.everything()


# --- what can be wrong -------------------------------------------------------------


def one_error(ran):
    assert not ran.ok
    assert len(ran.errors) == 1, ran.everything()
    assert "What to do: " in ran.errors[0] or "(" in ran.errors[0]
    return ran.errors[0]


def test_an_unknown_mode(world, act):
    told = one_error(act(mode="drafts"))
    assert "the input 'mode' is 'drafts', which is no mode" in told
    assert "did you mean draft?" in told


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target", "issues"])
def test_drafts_are_not_made_at_a_strangers_bidding(world, act, event):
    told = one_error(draft(act, event=event))
    assert f"mode draft does not run on the event '{event}'" in told
    assert "`on:` schedule or workflow_dispatch" in told
    assert world.exchanges == []


@pytest.mark.parametrize("event", ["schedule", "pull_request_target"])
def test_a_guard_needs_a_pull_request(world, act, event):
    told = one_error(act(mode="guard", event=event))
    assert f"mode guard does not run on the event '{event}'" in told
    assert "`on:` pull_request" in told


def test_a_permission_that_is_missing(world, act):
    world.fork.writers.discard(ACTIONS)
    told = one_error(draft(act))
    assert "the token may not push to the fork" in told
    assert "`contents: write` and `pull-requests: write`" in told
    assert world.open_heads() == []


def test_pull_requests_that_actions_may_not_create(world, act):
    def fault(request, answer):
        if request.method == "POST" and request.path.endswith("/pulls"):
            return refusal(
                403,
                "GitHub Actions is not permitted to create or approve pull requests.",
            )
        return answer()

    world.fault = fault
    ran = draft(act, max_new="1")
    told = one_error(ran)
    assert "not permitted to create" in told
    assert "Settings, Actions, General: allow GitHub Actions to create" in told
    world.fault = None
    assert draft(act).ok, "the next run completes it"
    assert world.open_heads() == [FAMILY, SINGLES]


def test_a_fork_without_actions(world, act):
    world.fork.refusals.add("actions")
    told = one_error(draft(act, repository="you/tools", target=FORK))
    assert f"{FORK}: Actions are off" in told
    assert "allow them" in told
    assert world.open_heads() == []


@pytest.mark.parametrize("asked", ["allowed", "forbidden"])
def test_a_fork_elsewhere_with_actions(world, act, asked):
    def fault(request, answer):
        if request.path.endswith("/actions/permissions"):
            return refusal(403, "Resource not accessible by integration")
        return answer()

    world.fault = fault if asked == "forbidden" else None
    ran = draft(act, repository="you/tools", target=f"{FORK}@main", max_new="1")
    assert ran.ok, world.everything()
    assert len(world.open_heads()) == 1


def test_a_token_that_is_empty(world, act):
    told = one_error(draft(act, token=""))
    assert "the input 'token' is empty" in told


def test_a_token_that_is_not_valid(world, act):
    told = one_error(draft(act, token="ghs_Expired"))
    assert "Bad credentials" in told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("author", "Ada"),
        ("max_new", "many"),
        ("max_open", "-1"),
        ("codemods", "forward-kwarg"),
        ("target", "no/such@x:y"),
        ("upstream", "--upload-pack=x"),
    ],
)
def test_an_input_that_is_no_use(world, act, name, value):
    inputs = {"upstream": UPSTREAM, name: value}
    told = one_error(act(mode="draft", **inputs))
    assert value.partition("@")[0] in told


def test_no_checkout(world, act):
    ends = {"base": {"sha": "0" * 40}, "head": {"sha": "1" * 40}}
    more = event_file(world, {"pull_request": ends})
    told = one_error(act(mode="guard", event="pull_request", more=more))
    assert "is no checkout" in told
    assert "put actions/checkout before" in told


def test_outside_a_job(world, act):
    told = one_error(act(mode="report", more={"GITHUB_EVENT_NAME": ""}))
    assert "not a job of GitHub Actions" in told


def test_no_python_that_is_new_enough(world, act, tmp_path):
    for name in ("python3", *(f"python3.{n}" for n in range(11, 15))):
        program = tmp_path / name
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    told = one_error(act(more={"PATH": f"{tmp_path}:/usr/bin:/bin"}))
    assert "put actions/setup-python before this step" in told


def test_rate_limits_end_a_run_early_without_failing_it(world, act):
    def fault(request, answer):
        if request.method == "POST" and request.path.endswith("/pulls"):
            return refusal(
                403, "You have exceeded a secondary rate limit", Retry_After="900"
            )
        return answer()

    world.fault = fault
    ran = draft(act)
    assert ran.ok, world.everything()
    assert any("the next run goes on" in told for _, told in ran.annotations)
    assert ran.drafts == []
