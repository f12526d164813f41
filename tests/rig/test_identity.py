"""Who may write where, as whom; and whose things stay as they are."""

from __future__ import annotations

import pytest
from worlds import FORK, TOKEN, UPSTREAM

from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files

pytestmark = pytest.mark.rig

SINGLES = "vlmend/delegate-intermediate-tensors/singles"


def test_the_upstream_is_no_fork(world):
    world.upstream.writers.add("you")
    ended = world.run("draft", "--fork", UPSTREAM, "--upstream", UPSTREAM)
    assert ended.code == 3
    assert "is the upstream itself" in ended.err
    assert not [q for q, _ in world.exchanges if q.method != "GET"]


def test_a_name_that_redirects_to_the_upstream_is_no_fork(world):
    world.upstream.writers.add("you")
    world.forge.former_names["you/moved"] = world.upstream.id
    ended = world.run("draft", "--fork", "you/moved", "--upstream", UPSTREAM)
    assert ended.code == 3
    assert world.upstream.pulls == {}


def test_a_repository_that_is_no_fork_is_refused(world):
    world.forge.add_repository("you/own")
    ended = world.run("draft", "--fork", "you/own", "--upstream", UPSTREAM)
    assert ended.code == 3
    assert "is not a fork of them/vllm" in ended.err


def test_a_fork_of_another_root_is_refused(world):
    other = world.forge.add_repository("else/vllm")
    world.forge.add_repository("you/elses", parent=other)
    ended = world.run("draft", "--fork", "you/elses", "--upstream", UPSTREAM)
    assert ended.code == 3
    assert "is a fork of else/vllm, not of them/vllm" in ended.err


def test_missing_rights_are_named_before_work_begins(world):
    world.fork.writers.clear()
    ended = world.draft()
    assert ended.code == 2
    assert "may not push" in ended.err
    assert "'Contents' and 'Pull requests'" in ended.err
    assert not [q for q, _ in world.exchanges if ".git/" in q.path]


ACTIONS = "github-actions[bot]"
APP_TOKEN = "ghs_SecretOfAnActionsJob77"


def as_actions(world):
    world.forge.add_account(ACTIONS, APP_TOKEN, "Bot")
    ended = world.draft(GITHUB_TOKEN=APP_TOKEN, GITHUB_ACTIONS="true")
    assert APP_TOKEN not in ended.text
    return ended


def test_an_apps_token_may_push_though_github_says_no_of_every_right(world):
    world.fork.writers.add(ACTIONS)
    ended = as_actions(world)
    assert ended.code == 0, world.everything()
    assert len(world.open_heads()) == 2
    assert world.fork.head("vlmend/access") is None


def test_an_apps_token_without_rights_is_found_out_before_work_begins(world):
    ended = as_actions(world)
    assert ended.code == 2, world.everything()
    assert "the token may not push to the fork" in ended.err
    assert "`contents: write` and `pull-requests: write`" in ended.err
    assert not [q for q, _ in world.exchanges if q.path.endswith("/pulls")]


def test_missing_scopes_are_named(world):
    world.forge.accounts[TOKEN].scopes = ("read:org",)
    ended = world.draft()
    assert ended.code == 2
    assert "'public_repo' (or 'repo') is missing" in ended.err


def test_an_archived_fork_is_named(world):
    world.fork.archived = True
    ended = world.draft()
    assert ended.code == 2
    assert "archived" in ended.err


def test_a_bad_token_is_one_line(world):
    ended = world.draft(GITHUB_TOKEN="wrong")
    assert ended.code == 2
    assert "Bad credentials" in ended.err
    assert "wrong" not in ended.text


def test_no_token_is_one_line(world):
    ended = world.draft(GITHUB_TOKEN="", PATH="/usr/bin:/bin")
    assert ended.code == 2
    assert "no GitHub token" in ended.err


def test_a_token_from_a_file(world):
    world.not_searched.add("token")
    place = world.place / "token"
    place.write_text(f"{TOKEN}\n")
    assert world.draft("--token-file", str(place), GITHUB_TOKEN="").code == 0


def test_the_token_is_not_sent_in_clear(world):
    ended = world.draft("--api-url", "http://forge.invalid/api/v3")
    assert ended.code == 2
    assert "not sent unencrypted" in ended.err


def test_unattended_drafts_are_not_signed_off(world):
    assert world.draft().code == 0
    message = run_git(world.fork.folder, "log", "-1", "--format=%B", SINGLES)
    assert "Signed-off-by" not in message
    assert "Co-authored-by: vlmend " in message


def test_the_actions_bot_is_the_author_where_nobody_is_configured(world):
    nobody = {
        f"GIT_{role}_{part}": ""
        for role in ("AUTHOR", "COMMITTER")
        for part in ("NAME", "EMAIL")
    }
    ended = world.draft(GITHUB_ACTIONS="true", **nobody)
    assert ended.code == 0, world.everything()
    author = run_git(world.fork.folder, "log", "-1", "--format=%an <%ae>", SINGLES)
    assert author.startswith("github-actions[bot] <41898282+")


def test_nobody_configured_is_one_line(world):
    nobody = {
        f"GIT_{role}_{part}": ""
        for role in ("AUTHOR", "COMMITTER")
        for part in ("NAME", "EMAIL")
    }
    ended = world.draft(**nobody)
    assert ended.code == 2
    assert "git does not know who you are" in ended.err


def test_a_sign_off_is_the_authors_and_the_committers_own(world):
    assert world.draft("--signoff").code == 0, world.everything()
    form = "%an <%ae>|%cn <%ce>|%(trailers:key=Signed-off-by,valueonly)"
    told = run_git(world.fork.folder, "log", "-1", f"--format={form}", SINGLES)
    assert len(set(told.split("|"))) == 1


def test_a_bot_does_not_sign_off(world):
    bot = {f"GIT_{role}_NAME": "some[bot]" for role in ("AUTHOR", "COMMITTER")}
    ended = world.draft("--signoff", **bot)
    assert ended.code == 3
    assert "a bot does not sign off" in ended.err


def test_review_needs_a_person(world):
    ended = world.draft("--level", "review")
    assert ended.code == 3
    assert world.exchanges == []


def test_publish_needs_a_person(world):
    for variables in ({}, {"CI": "1"}, {"GITHUB_ACTIONS": "true"}):
        ended = world.run("publish", f"{FORK}#1", "--upstream", UPSTREAM, **variables)
        assert ended.code == 3
        assert "a person's act" in ended.err
    assert world.exchanges == []


# --- owner/repo@ref as a TARGET ------------------------------------------------------


def test_every_reading_verb_takes_a_remote_target(world):
    sha = world.fork.head("main")
    ended = world.run("scan", f"{FORK}@main")
    assert ended.code == 1, world.everything()
    assert "VegaVisionForConditionalGeneration" in ended.out
    assert world.run("preview", f"{FORK}@{sha}").code == 1
    ended = world.run("explain", "VegaVisionForConditionalGeneration", f"{FORK}@main")
    assert ended.code == 0
    assert f"{MODELS}/vega_vision.py:" in ended.out
    assert world.run("models", f"{FORK}@main").code == 0


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (f"{FORK}@nowhere", "has no such branch, tag or commit"),
        ("you/nothing@main", "no such repository"),
        (f"{FORK}@--upload-pack=x", "not the name of a branch"),
        (f"{FORK}@a..b", "not the name of a branch"),
    ],
)
def test_a_remote_target_that_is_not_there(world, target, told):
    ended = world.run("scan", target)
    assert ended.code == 2
    assert told in ended.err


def test_fix_does_not_write_to_a_remote_target(world):
    ended = world.run("fix", f"{FORK}@main")
    assert ended.code == 2
    assert "only a directory can be written to" in ended.err
    assert world.exchanges == []


def test_a_history_is_read_from_a_clone(world):
    ended = world.run("history", f"{FORK}@main", "--git")
    assert ended.code == 2
    assert "a history is read from the commits of a clone" in ended.err
    assert world.exchanges == []


def test_a_remote_target_is_configured_by_its_own_tree(world):
    commit_files(world.fork, {"vlmend.toml": "strict = 3\n"}, "Configure")
    for words in (("config", "check"), ("scan",)):
        ended = world.run(*words, f"{FORK}@main")
        assert ended.code == 2, world.everything()
        assert "vlmend.toml: strict must be true or false" in ended.text


def test_verify_reads_a_remote_target(world):
    ended = world.run("verify", f"{FORK}@main")
    # The tree was read: it is this tree that says nothing about Transformers.
    assert ended.code == 2, world.everything()
    assert "the tree does not pin the Transformers" in ended.err
    assert [q for q, _ in world.exchanges if q.path.startswith(f"/{FORK}.git/")]


def test_a_draft_in_another_repositorys_branch_is_refused(world):
    for target in (f"{UPSTREAM}@main", "vllm==0.21.0"):
        ended = world.draft(target)
        assert ended.code == 2
        assert "drafts are made on the fork's own branch" in ended.err
    ended = world.draft(f"{FORK}@main")
    assert ended.code == 0, world.everything()


def test_a_name_that_is_none_is_told_before_a_token_is_asked_for(world):
    ended = world.run("draft", "--fork", "me", GITHUB_TOKEN="", PATH="/usr/bin:/bin")
    assert ended.code == 2
    assert "--fork me: not a repository" in ended.err
