"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Verb = TypeVar("Verb", bound=Callable[..., Any])


def judging(verb: Verb) -> Verb:
    """Add ``target``, ``vllm`` and ``codemods``: what a request is made of."""
    verb = click.option(
        "--codemod",
        "codemods",
        multiple=True,
        metavar="ID",
        help="Run only this codemod (repeatable).",
    )(verb)
    verb = click.option(
        "--vllm",
        metavar="TARGET",
        help="For a plugin package: the vLLM tree that it is judged against.",
    )(verb)
    return click.argument("target", default=".", metavar="[TARGET]")(verb)


def narrowing(verb: Verb) -> Verb:
    """Add ``classes`` and ``excluded``: which model classes are meant."""
    verb = click.option(
        "--exclude",
        "excluded",
        multiple=True,
        metavar="GLOB",
        help="Leave out what matches by class, module:Class or file (repeatable).",
    )(verb)
    return click.option(
        "--class",
        "classes",
        multiple=True,
        metavar="GLOB",
        help="Only classes whose name, or module:Class, matches (repeatable).",
    )(verb)


def levelled(verb: Verb) -> Verb:
    """Add ``level``: how sure a fix has to be."""
    return click.option(
        "--level",
        type=click.Choice(["fixable", "review"]),
        default="fixable",
        show_default=True,
        help="'review' adds fixes that a person must look at before they are trusted.",
    )(verb)


def formatted(*styles: str) -> Callable[[Verb], Verb]:
    """Add ``style``: how the result is printed; the first one is the default."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=styles[0],
        show_default=True,
        help="How to print the result.",
    )


def forgiving(verb: Verb) -> Verb:
    """Add ``exit_zero``."""
    return click.option(
        "--exit-zero", is_flag=True, help="Exit with 0 even when there are findings."
    )(verb)
