"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

CONFIG: Final = "vlmend.config"
"""Where a context keeps the value of ``--config``."""
TRANSFORMERS: Final = "vlmend.transformers"
"""Where a context keeps the value of ``--transformers``."""

Verb = TypeVar("Verb", bound=Callable[..., Any])


def _codemods_beginning_with(
    context: click.Context, option: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete an id at the shell, with what each codemod is about."""
    from click.shell_completion import CompletionItem

    from vlmend.cli.judge import known_codemods

    del context, option
    return [
        CompletionItem(name, help=codemod.summary)
        for name, codemod in known_codemods().items()
        if name.startswith(typed)
    ]


def judging(verb: Verb) -> Verb:
    """Add ``target``, ``vllm`` and ``codemods``: what a request is made of.

    ``--config`` and ``--transformers`` come with them;
    :func:`vlmend.cli.judge.judging` finds them by itself.
    """
    verb = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        expose_value=False,
        callback=_note_config,
        help="Read this configuration instead of the target's own.",
    )(verb)
    verb = click.option(
        "--transformers",
        metavar="VERSION|PATH",
        expose_value=False,
        callback=_note_transformers,
        help="Judge by this Transformers release instead of those the tree names.",
    )(verb)
    verb = click.option(
        "--codemod",
        "codemods",
        multiple=True,
        metavar="ID",
        shell_complete=_codemods_beginning_with,
        help="Run only this codemod (repeatable).",
    )(verb)
    verb = click.option(
        "--vllm",
        metavar="TARGET",
        help="For a plugin package: the vLLM tree that it is judged against.",
    )(verb)
    return click.argument("target", default=".", metavar="[TARGET]")(verb)


def _note_config(
    context: click.Context, _: click.Parameter, value: Path | None
) -> None:
    context.meta[CONFIG] = value


def _note_transformers(
    context: click.Context, _: click.Parameter, value: str | None
) -> None:
    context.meta[TRANSFORMERS] = value


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


def guarding(verb: Verb) -> Verb:
    """Add ``changed``, ``base`` and ``baseline``: what is not new does not count."""
    verb = click.option(
        "--baseline",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Pass over the findings that this file lists.",
    )(verb)
    verb = click.option(
        "--base",
        metavar="REV",
        help="With --changed: compare with where REV and the target parted"
        " [default: what pre-commit says, or HEAD].",
    )(verb)
    return click.option(
        "--changed",
        is_flag=True,
        help="Only what a change touches, and only what is new with it.",
    )(verb)


def require_changed(changed: bool, base: str | None) -> None:
    """Refuse a base that nothing is compared with."""
    if base is not None and not changed:
        raise click.UsageError("--base means nothing without --changed")
    if base is not None and not base.strip():
        # An unset variable in a CI script must not look like a clean change.
        raise click.UsageError("--base is empty; name a commit")


def forgiving(verb: Verb) -> Verb:
    """Add ``exit_zero``."""
    return click.option(
        "--exit-zero", is_flag=True, help="Exit with 0 even when there are findings."
    )(verb)
