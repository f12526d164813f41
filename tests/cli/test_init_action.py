"""The workflow file: written once, brought up to date, never over a person's work."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from vlmend.cli.action import origin
from vlmend.cli.action.workflow import PINS, PLACE, Wanted, render, usual_schedule

ROOT = Path(__file__).resolve().parents[2]
ACTION = f"them/vlmend@{'0123456789' * 4}"
NEWER = f"them/vlmend@{'abcdef0123' * 4}"
REPOSITORY = ("--repository", "me/vllm")
GIVEN = (*REPOSITORY, "--action", ACTION)
WANTED = {
    "draft": Wanted("draft", "me/vllm", ACTION, "17 3 * * *", "vllm-project/vllm"),
    "report": Wanted("report", "me/vllm", ACTION, "17 3 * * *"),
    "guard": Wanted("guard", "me/vllm", ACTION),
}


@pytest.fixture
def place(tmp_path):
    return tmp_path / PLACE


@pytest.fixture
def init(vlmend, tmp_path):
    return lambda *words: vlmend("init-action", str(tmp_path), *words)


def document(text):
    found = yaml.safe_load(text)
    found["on"] = found.pop(True)  # YAML 1.1 takes the word for a truth value
    return found


def test_the_file_is_written_and_the_next_steps_are_told(init, place):
    ended = init(*GIVEN)
    assert ended.code == 0, ended.err
    found = document(place.read_text())
    (job,) = found["jobs"].values()
    assert job["if"] == "github.repository == 'me/vllm'"
    assert job["steps"][0]["uses"] == ACTION
    assert job["steps"][0]["with"]["mode"] == "draft"
    assert "allow GitHub Actions to create pull requests" in ended.err


def test_a_second_time_changes_nothing(init, place):
    init(*GIVEN)
    before = place.stat()
    ended = init()
    assert ended.code == 0, ended.err
    assert ended.out == f"{place}: up to date\n"
    assert place.stat() == before


PERMISSIONS = {
    "draft": {"contents": "write", "pull-requests": "write"},
    "report": {"contents": "read", "security-events": "write"},
    "guard": {"contents": "read"},
}
EVENTS = {
    "draft": {"schedule", "workflow_dispatch"},
    "report": {"schedule", "workflow_dispatch"},
    "guard": {"pull_request"},
}


@pytest.mark.parametrize("mode", WANTED)
def test_a_mode_has_its_events_and_no_more_rights_than_it_needs(mode):
    found = document(render(WANTED[mode]))
    (job,) = found["jobs"].values()
    assert found["permissions"] == {}
    assert job["permissions"] == PERMISSIONS[mode]
    assert set(found["on"]) == EVENTS[mode]
    assert found["concurrency"]["group"].startswith("vlmend-")
    assert found["concurrency"]["cancel-in-progress"] is (mode == "guard")
    for step in job["steps"]:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])


@pytest.mark.parametrize("mode", WANTED)
def test_the_comments_say_what_github_does_not(mode):
    text = " ".join(render(WANTED[mode]).replace("#", " ").split())
    assert "Which token does what" in text
    assert ("60 days" in text) is (mode != "guard")
    assert ("In a new fork all of them are off" in text) is (mode != "guard")
    assert ("Allow GitHub Actions to create and approve" in text) is (mode == "draft")
    assert ("`pull_request_target` would hand" in text) is (mode == "guard")


def test_the_guard_checks_out_enough_to_find_the_base():
    (job,) = document(render(WANTED["guard"]))["jobs"].values()
    checkout = job["steps"][0]["with"]
    assert checkout == {"fetch-depth": 2, "persist-credentials": False}


def test_our_own_workflows_pin_the_same_commits():
    pins = {pin for pin, _ in PINS.values()}
    named = {pin.partition("@")[0] for pin in pins}
    found = set()
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for use in re.findall(r"uses: (\S+)", file.read_text()):
            if use.partition("@")[0] in named:
                found.add(use)
    assert found
    assert found <= pins


# --- an edited file ------------------------------------------------------------------


def edited(place):
    text = place.read_text().replace("timeout-minutes: 30", "timeout-minutes: 5")
    place.write_text(text)
    return text


def test_an_edited_file_is_left_alone_and_the_difference_is_shown(init, place):
    init(*GIVEN)
    text = edited(place)
    ended = init()
    assert ended.code == 3
    assert place.read_text() == text
    assert "-    timeout-minutes: 5\n+    timeout-minutes: 30\n" in ended.out
    assert "--force writes over it" in ended.err


def test_force_writes_over_it_and_shows_what_is_lost(init, place):
    init(*GIVEN)
    before = place.read_text()
    edited(place)
    ended = init("--force")
    assert ended.code == 0
    assert "-    timeout-minutes: 5\n" in ended.out
    assert place.read_text() == before


def test_a_file_of_a_persons_own_is_left_alone(init, place):
    place.parent.mkdir(parents=True)
    place.write_text("name: mine\n")
    assert init(*GIVEN).code == 3
    assert place.read_text() == "name: mine\n"
    assert init(*GIVEN, "--check").code == 1
    assert init(*GIVEN, "--force").code == 0


def test_a_file_of_an_older_vlmend_is_brought_up_to_date_as_it_was_meant(init, place):
    """What was not edited carries its options along."""
    init(*GIVEN, "--mode", "report", "--schedule", "1 2 * * 3")
    older = init("--action", NEWER, "--check")
    assert older.code == 1
    assert "out of date" in older.out
    assert f"+        uses: {NEWER}" in older.out
    ended = init("--action", NEWER)
    assert ended.code == 0
    assert f"-        uses: {ACTION}" in ended.out
    found = document(place.read_text())
    assert found["on"]["schedule"] == [{"cron": "1 2 * * 3"}]
    assert "report" in found["jobs"]


# --- check ---------------------------------------------------------------------------


def test_check_writes_nothing(init, place):
    ended = init(*GIVEN, "--check")
    assert ended.code == 1
    assert "is not there" in ended.out
    assert not place.exists()


def test_check_of_a_file_that_is_up_to_date(init):
    init(*GIVEN)
    ended = init("--check")
    assert ended.code == 0
    assert "up to date" in ended.out


def test_check_of_an_edited_file(init, place):
    init(*GIVEN)
    edited(place)
    ended = init("--check")
    assert ended.code == 1
    assert f"{place}: edited" in ended.out


# --- where it comes from, where it goes ----------------------------------------------


def test_no_commit_is_invented(init, place):
    ended = init(*REPOSITORY)
    assert ended.code == 2
    assert "--action OWNER/REPO@COMMIT" in ended.err
    assert not place.exists()


@pytest.mark.parametrize(
    "action",
    ["them/vlmend", "them/vlmend@v1", "them/vlmend@0123abc", f"x@{'0' * 40}"],
)
def test_what_is_not_pinned_is_refused(init, place, action):
    ended = init(*REPOSITORY, "--action", action)
    assert ended.code == 2
    assert "is not pinned" in ended.err
    assert not place.exists()


def test_a_release_knows_the_commit_that_it_was_built_from(monkeypatch, tmp_path):
    (tmp_path / origin.RELEASED).write_text(json.dumps({"action": ACTION}))
    monkeypatch.setattr(origin, "files", lambda package: tmp_path)
    assert origin.known_origin() == ACTION


def test_what_stands_in_the_repository_names_no_commit():
    recorded = json.loads((ROOT / "cli" / "action" / origin.RELEASED).read_text())
    assert recorded == {"action": ""}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/me/vllm.git", "me/vllm"),
        ("https://github.com/me/vllm", "me/vllm"),
        ("git@github.com:me/vllm.git", "me/vllm"),
        ("ssh://git@github.com/me/vllm", "me/vllm"),
        ("https://example.invalid/me/vllm", None),
        ("https://example.invalid/github.com/me/vllm", None),
        ("/somewhere/github.com/me/vllm", None),
    ],
)
def test_the_repository_is_read_from_the_remote(url, name):
    assert origin.repository_of(url) == name


def test_the_remote_says_which_repository_it_is_for(init, tmp_path, place):
    for words in (
        ("init", "-q"),
        ("remote", "add", "origin", "git@github.com:ada/vllm.git"),
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    assert init("--action", ACTION).code == 0
    assert "github.repository == 'ada/vllm'" in place.read_text()


def test_pip_knows_the_commit_of_what_it_installed_from_a_repository(tmp_path):
    """A real installation: pip writes direct_url.json, and that is what is read."""
    package = tmp_path / "site"
    info = package / "vlmend-9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vlmend\nVersion: 9\n")
    repository, commit = ACTION.split("@")
    told = {
        "url": f"https://github.com/{repository}.git",
        "vcs_info": {"vcs": "git", "commit_id": commit, "requested_revision": "v1"},
    }
    (info / "direct_url.json").write_text(json.dumps(told))
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "from vlmend.cli.action.origin import known_origin; print(known_origin())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ACTION


# --- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--schedule", "daily"), "not five fields of cron"),
        (("--schedule", "17 3 * *\n* x"), "not five fields of cron"),
        (("--repository", "vllm"), "not a repository"),
        (("--mode", "guard", "--schedule", "1 2 * * *"), "a guard runs on pull"),
        (("--mode", "guard", "--upstream", "a/b"), "only drafts need to know it"),
        (("--upstream", "a'b"), "not a repository"),
    ],
)
def test_an_option_that_is_no_use(init, place, words, told):
    ended = init(*GIVEN, *words)
    assert ended.code == 2
    assert told in ended.err
    assert not place.exists()


def test_a_folder_that_is_not_there(vlmend, tmp_path):
    ended = vlmend("init-action", str(tmp_path / "none"), *GIVEN)
    assert ended.code == 2
    assert "no such folder" in ended.err


def test_a_checkout_without_a_remote(init):
    ended = init("--action", ACTION)
    assert ended.code == 2
    assert "--repository OWNER/REPO" in ended.err


def test_a_place_that_cannot_be_written(init, tmp_path):
    (tmp_path / ".github").write_text("a file")
    ended = init(*GIVEN)
    assert ended.code == 2
    assert "cannot be made" in ended.err


def test_schedules_are_spread_and_keep_off_the_full_hour():
    times = {usual_schedule(f"user{n}/vllm") for n in range(200)}
    minutes = {int(time.split()[0]) for time in times}
    assert len(times) > 100
    assert min(minutes) >= 3
    assert max(minutes) <= 56
    assert usual_schedule("Me/vLLM") == usual_schedule("me/vllm")
