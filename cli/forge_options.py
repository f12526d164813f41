"""Options of the verbs that talk to a forge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

Verb = TypeVar("Verb", bound=Callable[..., Any])

UPSTREAM: Final = "vllm-project/vllm"


def connected(verb: Verb) -> Verb:
    """Add ``upstream``, ``api_url``, ``token_file`` and ``max_wait``."""
    verb = click.option(
        "--max-wait",
        type=click.FloatRange(min=0),
        default=300,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for rate limits, all in all; then stop cleanly.",
    )(verb)
    verb = click.option(
        "--token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="A file with the token"
        " [default: GH_TOKEN, GITHUB_TOKEN, or what `gh auth token` says].",
    )(verb)
    verb = click.option(
        "--api-url",
        metavar="URL",
        help="A GitHub Enterprise server: https://HOST/api/v3"
        " [default: GITHUB_API_URL, or github.com].",
    )(verb)
    return click.option(
        "--upstream",
        default=UPSTREAM,
        show_default=True,
        metavar="OWNER/REPO",
        help="What the fork is a fork of.",
    )(verb)


def in_fork(verb: Verb) -> Verb:
    """Add ``fork`` and ``base``."""
    verb = click.option(
        "--base",
        metavar="BRANCH",
        help="The fork's branch that drafts go to [default: its main branch].",
    )(verb)
    return click.option(
        "--fork", required=True, metavar="OWNER/REPO", help="The fork to work in."
    )(verb)


def chosen_codemods(verb: Verb) -> Verb:
    """Add ``codemods``."""
    return click.option(
        "--codemod",
        "codemods",
        multiple=True,
        metavar="ID",
        help="Run only this codemod (repeatable).",
    )(verb)
