"""A person's own clone as TARGET: it lends objects and hooks, and stays as it is."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from worlds import FORK, TOKEN, UPSTREAM

pytestmark = pytest.mark.rig

SINGLES = "vlmend/delegate-intermediate-tensors/singles"


def snapshot(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def clone(world, git):
    place = world.place / "clone"
    git(world.place, "clone", "-q", str(world.fork.folder), str(place))
    (place / "docs/page1.md").write_text("not committed\n")
    return place


def test_the_users_clone_stays_byte_identical_and_lends_its_objects(world, clone):
    before = snapshot(clone)
    ended = world.draft(str(clone), cache="cold")
    assert ended.code == 0, world.everything()
    assert snapshot(clone) == before
    lenders = list((world.place / "cold").rglob("info/alternates"))
    assert [p.read_text().strip() for p in lenders] == [str(clone / ".git/objects")]


def test_hooks_run_only_when_asked_and_without_the_token(world, clone):
    hook = clone / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\nenv >>{world.place}/hooked\n")
    hook.chmod(0o755)
    assert world.draft(str(clone), "--max-new", "1").code == 0
    assert not (world.place / "hooked").exists()
    ended = world.draft(str(clone), "--run-hooks")
    assert ended.code == 0, world.everything()
    seen = (world.place / "hooked").read_text()
    assert "GIT_INDEX_FILE" in seen
    assert TOKEN not in seen
    assert len(world.open_heads()) == 2


def test_a_hook_that_says_no_stops_its_scope(world, clone):
    hook = clone / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho nope >&2\nexit 1\n")
    hook.chmod(0o755)
    ended = world.draft(str(clone), "--run-hooks")
    assert ended.code == 3
    assert "a commit hook said no: nope" in " ".join(ended.out.split())
    assert world.fork.pulls == {}


def write_hook(clone, name, text):
    hook = clone / ".git/hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{text}\n")
    hook.chmod(0o755)


def test_pre_push_is_told_what_git_would_tell_it(world, clone):
    told = world.place / "told"
    write_hook(clone, "pre-push", f"echo $1 $2 >>{told}; cat >>{told}; env >>{told}")
    ended = world.draft(str(clone), "--run-hooks", "--max-new", "1")
    assert ended.code == 0, world.everything()
    (branch,) = world.open_heads()
    first, second, *env = told.read_text().splitlines()
    assert first == f"fork {world.rig.web}/{FORK}.git"
    ref = f"refs/heads/{branch}"
    assert second == f"{ref} {world.fork.head(branch)} {ref} {'0' * 40}"
    assert TOKEN not in "\n".join(env)


def test_pre_push_can_say_no(world, clone):
    write_hook(clone, "pre-push", "echo not today >&2; exit 1")
    ended = world.draft(str(clone), "--run-hooks")
    assert ended.code == 3
    assert "the pre-push hook said no: not today" in " ".join(ended.out.split())
    assert world.fork.pulls == {}
    assert world.fork.head(SINGLES) is None
    # Without being asked for, it is not run.
    assert world.draft(str(clone)).code == 0


# --- clones of every kind ------------------------------------------------------------


def plain(world, git, place):
    git(world.place, "clone", "-q", str(world.fork.folder), str(place))
    return place


def with_submodule(world, git, place):
    plain(world, git, place)
    allowed = ("-c", "protocol.file.allow=always")
    git(place, *allowed, "submodule", "add", "-q", str(world.fork.folder), "third")
    return place


def with_lfs(world, git, place):
    plain(world, git, place)
    (place / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs\n")
    git(place, "config", "filter.lfs.required", "true")
    git(place, "config", "filter.lfs.process", f"touch {world.place}/ran; false")
    return place


def with_alternates(world, git, place):
    words = ("clone", "-q", "--shared", str(world.fork.folder), str(place))
    git(world.place, *words)
    return place


def worktree(world, git, place):
    plain(world, git, world.place / "main-tree")
    words = ("worktree", "add", "-q", "--detach", str(place))
    git(world.place / "main-tree", *words)
    return place


def shallow(world, git, place):
    url = f"file://{world.fork.folder}"
    git(world.place, "clone", "-q", "--depth=1", url, str(place))
    return place


def without_commits(world, git, place):
    git(world.place, "init", "-q", str(place))
    return place


def no_repository(world, git, place):
    place.mkdir()
    return place


KINDS = (
    plain,
    with_submodule,
    with_lfs,
    with_alternates,
    worktree,
    shallow,
    without_commits,
    no_repository,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_drafts_come_out_the_same_with_every_kind_of_clone(world, git, kind):
    place = kind(world, git, world.place / "lender")
    before = snapshot(world.place / "lender")
    extra = snapshot(world.place / "main-tree")
    for _ in range(2):
        ended = world.draft(str(place), cache="cold")
        assert ended.code == 0, world.everything()
        assert "Traceback" not in ended.text
    assert ended.out.count("unchanged") == 2
    assert len(world.open_heads()) == 2
    assert snapshot(world.place / "lender") == before
    assert snapshot(world.place / "main-tree") == extra
    assert not (world.place / "ran").exists()
    # What it lent may go away: the cache mends itself.
    for folder in ("lender", "main-tree"):
        if (world.place / folder).exists():
            (world.place / folder).rename(world.place / f"{folder}-gone")
    assert world.draft(cache="cold").code == 0, world.everything()


VERBS = {
    "scan": ("scan", "."),
    "preview": ("preview", "."),
    "models": ("models", "."),
    "explain": ("explain", "VegaVisionForConditionalGeneration", "."),
    "draft --dry-run": ("draft", "--dry-run", "."),
    "draft": ("draft", "."),
    "status": ("status",),
    "close-fixed": ("close-fixed",),
}


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_touches_the_users_repository(world, clone, verb):
    name, *words = VERBS[verb]
    if name in ("draft", "status", "close-fixed"):
        words += ["--fork", FORK, "--upstream", UPSTREAM]
    before = snapshot(clone)
    ended = world.run(name, *words, cwd=clone)
    assert ended.code in (0, 1), world.everything()
    assert snapshot(clone) == before
