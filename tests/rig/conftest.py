"""The stand-in, GitHub's description of itself, and worlds to run in."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

VARIABLE = "VLMEND_OPENAPI"
"""Names a trimmed description; without it one is fetched by npm, once, and kept."""


@pytest.fixture(scope="session")
def description() -> dict[str, Any]:
    named = os.environ.get(VARIABLE)
    kept = platformdirs.user_cache_path("vlmend") / "tests" / "octokit-openapi.json"
    place = Path(named) if named else kept
    import openapi

    if not named and not (place.is_file() and _is_current(place, openapi.USED)):
        openapi.main(place)
    found = json.loads(place.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def _is_current(place: Path, used: dict[str, set[str]]) -> bool:
    return set(json.loads(place.read_text("utf-8"))["paths"]) == set(used)


@pytest.fixture(scope="session")
def checker(description: dict[str, Any]) -> Iterator[Any]:
    from checking import Checker

    checker = Checker(description)
    yield checker
    if checker.problems:
        # Written out in full: pytest cuts long texts short.
        pytest.fail("\n".join(checker.problems), pytrace=False)


@pytest.fixture(scope="session")
def make_world(checker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from worlds import World, Zygote, make_seed

    from vlmend.cli.rig.server import Rig

    closing: list[Any] = []

    def make() -> World:
        home = tmp_path_factory.mktemp("world")
        seed = make_seed(home / "seed")
        rig = Rig(seed)
        running = rig.running()
        running.__enter__()
        mine = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}
        zygote = Zygote(HERE / "zygote.py", mine)
        world = World(home, rig, zygote, checker, seed)
        rig.intercept = world.intercept
        closing.append((running, zygote))
        world.fresh(warm=False)
        # One run that writes nothing fills the cache that later cases start from.
        ended = world.draft("--dry-run")
        assert ended.code == 0, world.everything()
        world.warm = world.place / "cache"
        return world

    yield make
    for running, zygote in closing:
        zygote.close()
        running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def _shared_world(make_world: Any) -> Any:
    return make_world()


@pytest.fixture
def world(_shared_world: Any) -> Iterator[Any]:
    """A fork of a small vLLM with three broken classes, untouched so far."""
    _shared_world.fresh()
    yield _shared_world
    assert list(_shared_world.leaks()) == []


@pytest.fixture
def whole_tree(world: Any, release: Callable[[str], Path]) -> Path:
    """Return a repository with all of 0.21.0."""
    from vlmend.cli.rig.model import run_git

    tree: Path = world.place / "tree"
    shutil.copytree(release("0.21.0"), tree, symlinks=True)
    run_git(tree, "init", "-q", "-b", "main")
    run_git(tree, "add", "-A", "-f")
    run_git(tree, "commit", "-q", "-m", "Release 0.21.0")
    return tree


@pytest.fixture
def whole(world: Any, whole_tree: Path) -> Any:
    """Return a world with an upstream that has all of 0.21.0, and a fork of it."""
    from worlds import FORK, TOKEN, UPSTREAM, Forge

    from vlmend.cli.rig.model import run_git

    home = world.place / "whole"
    home.mkdir()
    forge = Forge(home)
    forge.add_account("you", TOKEN)
    upstream = forge.add_repository(UPSTREAM)
    run_git(whole_tree, "push", "-q", str(upstream.folder), "main")
    forge.add_repository(FORK, parent=upstream)
    world.fresh(forge)
    return world
