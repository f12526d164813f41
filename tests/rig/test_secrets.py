"""The token reaches the API and git's own network calls, and nothing else at all.

Everything is made as talkative as it gets: ``--debug``, every library's logs, git's
traces with the variables named in them, and a `git` in front of git that writes down
what it is given. Then everything that is left behind is searched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from worlds import FORK, TOKEN, UPSTREAM, World, holds_token, talks_to_the_forge

from vlmend.cli.rig.exchange import PREFIX, refusal
from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

pytestmark = pytest.mark.rig

PLACES = ("--fork", FORK, "--upstream", UPSTREAM)
ANSWERS = ["y", "pytest", "3 passed", "", "y", UPSTREAM]
SECRET = "VLMEND_GIT_SECRET"
SPY = """\
#!/bin/sh
me={calls}/$$
printf '%s\\0' git "$@" >"$me.argv"
env -0 >"$me.env"
exec {git} "$@"
"""
GH = """\
#!/bin/sh
printf '%s\\n' "$*" >>{asked}
env >>{asked}
cat {store}
"""
VERBS = {
    "draft": ("draft", *PLACES),
    "draft --dry-run": ("draft", *PLACES, "--dry-run"),
    "draft --sync": ("draft", *PLACES, "--sync"),
    "status": ("status", *PLACES),
    "close-fixed": ("close-fixed", *PLACES),
    "publish": ("publish", f"{FORK}#1", "--upstream", UPSTREAM),
    "scan OWNER/REPO@REF": ("scan", f"{FORK}@main"),
}
WITHOUT_OPTION = ("scan OWNER/REPO@REF",)
ROADS = ("GH_TOKEN", "GITHUB_TOKEN", "--token-file", "gh auth token")


def script(place: Path, text: str) -> None:
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)


@pytest.fixture
def loud(world: World) -> dict[str, str]:
    """Variables that make everything talk, and a git that is listened to."""
    spied = world.place / "spied"
    spied.mkdir()
    # Judged call by call: see children() below.
    world.not_searched.add("spied")
    git = shutil.which("git")
    script(world.place / "bin" / "git", SPY.format(calls=spied, git=git))
    traces = world.place / "traces"
    traces.mkdir()
    names = ("TRACE", "TRACE_CURL", "TRACE_PACKET", "TRACE_SETUP", "TRACE2_EVENT")
    found = {f"GIT_{name}": str(traces / name) for name in names}
    config = world.place / "gitconfig"
    config.write_text(
        f"[trace2]\n\tenvVars = {SECRET}\n\tnormalTarget = {traces}/configured\n"
    )
    return found | {
        "GIT_CURL_VERBOSE": "1",
        "GIT_TRACE_REDACT": "0",
        "GIT_TRACE2_ENV_VARS": f"{SECRET},GH_TOKEN,GITHUB_TOKEN",
        "GIT_CONFIG_GLOBAL": str(config),
        "PATH": f"{world.place}/bin:{os.environ['PATH']}",
    }


def children(world: World) -> list[tuple[list[str], dict[str, str]]]:
    """Return what every git was given: its own helpers inherit it from there."""
    found = []
    for place in sorted((world.place / "spied").glob("*.argv")):
        argv = place.read_bytes().decode().split("\0")[:-1]
        held = place.with_suffix(".env").read_bytes().decode().split("\0")[:-1]
        found.append((argv, dict(line.split("=", 1) for line in held)))
    return found


def require_no_leak(world: World) -> None:
    assert list(world.leaks()) == []
    for argv, held in children(world):
        assert not any(holds_token(word) for word in argv), argv
        names = {name for name, value in held.items() if holds_token(value)}
        assert names <= ({SECRET} if talks_to_the_forge(argv) else set()), argv
    for clone in (world.place / "cache" / "clones").glob("*.git"):
        words = ["cat-file", "--batch-all-objects", "--batch", "--buffer"]
        held = subprocess.run(["git", "-C", clone, *words], stdout=subprocess.PIPE)
        assert not holds_token(held.stdout)
        assert "x-access-token" not in (clone / "config").read_text()


def take(world: World, road: str, words: tuple[str, ...], loud: dict[str, str]):
    """Run with the token on one road, and on no other."""
    variables = loud | {"GITHUB_TOKEN": ""}
    if road in ("GH_TOKEN", "GITHUB_TOKEN"):
        variables[road] = TOKEN
    elif road == "--token-file":
        world.not_searched.add("token")
        (world.place / "token").write_text(f"{TOKEN}\n")
        words = (*words, "--token-file", str(world.place / "token"))
    else:
        world.not_searched.add("gh-store")
        store, asked = world.place / "gh-store", world.place / "gh-asked"
        store.write_text(f"{TOKEN}\n")
        script(world.place / "bin" / "gh", GH.format(asked=asked, store=store))
    if words[0] == "publish":
        return world.at_terminal(ANSWERS, *words, debug=True, **variables)
    return world.run(*words, debug=True, **variables)


@pytest.mark.parametrize(
    ("verb", "road"),
    [
        (verb, road)
        for verb in VERBS
        for road in ROADS
        if not (verb in WITHOUT_OPTION and road == "--token-file")
    ],
)
def test_nothing_holds_the_token_after_a_run(world, loud, verb, road):
    if verb in ("publish", "status", "close-fixed"):
        only = ("--class", "Vega*") if verb == "publish" else ()
        assert world.draft(*only).code == 0, world.everything()
    if verb == "close-fixed":
        vega = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
        commit_files(world.fork, vega, "Mend it")
    if verb == "draft --sync":
        commit_files(world.upstream, {"docs/page1.md": "new\n"}, "News")
    ended = take(world, road, VERBS[verb], loud)
    assert ended.code == (1 if verb in WITHOUT_OPTION else 0), world.everything()
    require_no_leak(world)
    # The search can find: some call was given the secret, and the logs were written.
    assert any(SECRET in held for _, held in children(world)), "git had no token"
    assert (world.place / "log").stat().st_size > 0
    if road == "gh auth token":
        lines = (world.place / "gh-asked").read_text().splitlines()
        host = world.rig.web.removeprefix("http://")
        assert [x for x in lines if x.startswith("auth ")] == [
            f"auth token --hostname {host}"
        ]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("part", [f"{PREFIX}/repos/", ".git/"])
def test_nothing_holds_the_token_after_a_failure(world, loud, verb, part):
    def broken(request, act):
        # A server that repeats what it was sent, as a careless proxy may.
        if part in request.path:
            return refusal(403, f"no: {request.headers.get('Authorization')}")
        return act()

    world.fault = broken
    ended = take(world, "GH_TOKEN", VERBS[verb], loud)
    if verb in WITHOUT_OPTION and part != ".git/":
        assert ended.code == 1  # it asks git, and not the API
    else:
        assert ended.code == 2, world.everything()
        assert "Traceback" in ended.err
    require_no_leak(world)


def test_hooks_and_the_users_clone_do_not_see_it(world, loud, git):
    clone = world.place / "clone"
    git(world.place, "clone", "-q", str(world.fork.folder), str(clone))
    before = (clone / ".git" / "config").read_text()
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "pre-push"):
        script(clone / ".git" / "hooks" / name, f"#!/bin/sh\nenv >>{clone}/../hooked\n")
    words = ("draft", *PLACES, str(clone), "--run-hooks")
    ended = take(world, "GITHUB_TOKEN", words, loud)
    assert ended.code == 0, world.everything()
    assert "GIT_" in (world.place / "hooked").read_text()
    assert (clone / ".git" / "config").read_text() == before
    require_no_leak(world)
