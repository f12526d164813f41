"""What a pull request is compared with, also where the checkout has no history.

Works with a token that may only read, and for public repositories without one: that is
all that a pull request from a fork is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.errors import UserError
from vlmend.cli.forge.places import server_at
from vlmend.cli.forge.token import Token, find_token
from vlmend.cli.git_run import GitFailed, GitRunner

if TYPE_CHECKING:
    from vlmend.cli.action.runner import Job

_DEPTHS: Final = (2, 64, 1024, 2147483647)
"""How much history is fetched until it is enough; the last is git's word for all."""


def base_of(job: Job, target: str, token: str) -> str:
    """Return the commit that the checkout is compared with, and make sure it is there.

    What is missing of a shallow checkout is fetched: two commits where the checkout is
    the merge that GitHub makes of a pull request, more otherwise.

    Args:
        job: tells of the pull request.
        target: the checkout.
        token: may be empty.

    Raises:
        UserError: the event tells no base, or its history cannot be had.
    """
    base, head = _ends(job.payload)
    git = GitRunner(_checkout(target), _token_for_origin(target, token))
    tip = _tip(git, target)
    found = _known(git, base, head)
    shallow = git.run("rev-parse", "--is-shallow-repository").strip() == "true"
    for depth in _DEPTHS if shallow else (None,):
        if found is not None:
            return found
        _fetch(git, depth, (tip, base))
        found = _known(git, base, head)
    if found is None:
        raise UserError(
            f"the pull request's base {base[:12]} and the checkout have no history in"
            " common",
            hint="let actions/checkout check out the pull request itself: no `ref:`",
        )
    return found


def _ends(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the commits that a pull request, or a merge queue's entry, is between."""
    with suppress(KeyError, TypeError):
        pull = payload["pull_request"]
        return str(pull["base"]["sha"]), str(pull["head"]["sha"])
    with suppress(KeyError, TypeError):
        entry = payload["merge_group"]
        return str(entry["base_sha"]), str(entry["head_sha"])
    raise UserError(
        "the event names no pull request", hint="in the workflow: `on: pull_request`"
    )


def _checkout(target: str) -> Path:
    place = Path(target)
    if not place.is_dir():
        raise UserError(
            f"{target}: no such folder",
            hint="mode guard judges a checkout: put actions/checkout before this step",
        )
    return place


def _tip(git: GitRunner, target: str) -> str:
    try:
        return git.run("rev-parse", "--verify", "HEAD").strip()
    except GitFailed as error:
        if "dubious ownership" in error.told:
            raise UserError(
                f"{target}: git refuses a checkout of another owner",
                hint=f"git config --global --add safe.directory {target}",
            ) from None
        raise UserError(
            f"{target}: is no checkout",
            hint="put actions/checkout before this step",
        ) from None


def _known(git: GitRunner, base: str, head: str) -> str | None:
    """Return the base, as far as the history that is there tells."""
    parents = git.run("rev-list", "--parents", "-n", "1", "HEAD").split()[1:]
    if len(parents) == 2 and parents[1] == head and _has(git, parents[0]):
        # The merge that GitHub made: its first parent is the base as it is now.
        return parents[0]
    if not _has(git, base):
        return None
    with suppress(GitFailed):
        git.run("merge-base", base, "HEAD")
        return base
    return None


def _has(git: GitRunner, commit: str) -> bool:
    try:
        git.run("cat-file", "-e", f"{commit}^{{commit}}")
    except GitFailed:
        return False
    return True


def _fetch(git: GitRunner, depth: int | None, commits: tuple[str, ...]) -> None:
    words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
    if depth is not None:
        words.append(f"--depth={depth}")
    try:
        git.network(*words, "origin", *commits)
    except GitFailed as error:
        raise UserError(
            f"the history that the base is in cannot be fetched: {error.message}",
            hint="give actions/checkout `fetch-depth: 0`; for a private repository the"
            " job needs `contents: read`",
        ) from None


def _token_for_origin(target: str, token: str) -> Token | None:
    """Return the token, if the checkout comes from the server that it is for."""
    if not token:
        return None
    server = server_at(None)
    url = ""
    with suppress(GitFailed):
        url = GitRunner(Path(target)).run("remote", "get-url", "origin").strip()
    if not url.startswith(f"{server.web}/"):
        return None
    os.environ["GH_TOKEN"] = token  # taken out again at once
    return find_token(None, server.host)
