"""``vlmend config``: the configuration of a tree, looked at by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vlmend.cli.settings import Settings


@click.group("config")
def command() -> None:
    """Look at a configuration: vlmend.toml, [tool.vlmend], or a file of its own.

    \b
    Examples
      vlmend config check                  the current directory's
      vlmend config check vllm-checkout    another tree's
      vlmend config check --config ci.toml a file by itself
    """  # noqa: D301 - click wants the character


@command.command("check")
@click.argument("target", default=".", metavar="[TARGET]")
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Check this file instead of the target's own configuration.",
)
def check(target: str, file: Path | None) -> int:
    """Say which configuration holds for TARGET, what it says, and what is wrong.

    Each problem is one line. Exits with 0 when there is none, and with 2 otherwise.

    \b
    Examples
      vlmend config check
      vlmend config check vllm-checkout
      vlmend config check --config ci.toml
    """  # noqa: D301 - click wants the character
    from vlmend.cli.console import complain
    from vlmend.cli.errors import EXIT_TROUBLE
    from vlmend.cli.settings import read_settings

    settings = read_settings(file) if file is not None else _of_target(target)
    problems = [*settings.problems, *_unknown_codemods(settings)]
    for problem in problems:
        complain(problem)
    if problems:
        return EXIT_TROUBLE
    if not settings.place:
        click.echo("no configuration: neither vlmend.toml nor [tool.vlmend]")
        return 0
    click.echo(f"{settings.place}: sound")
    for key, value in settings.told():
        click.echo(f"  {key} = {_shown(value)}")
    return 0


def _of_target(target: str) -> Settings:
    from vlmend.cli.errors import UserError
    from vlmend.cli.settings import find_settings
    from vlmend.cli.targets import resolve_target
    from vlmend.codemods.analysis.tree import TreeError

    with resolve_target(target) as found:
        try:
            return find_settings(found.tree)
        except TreeError as error:
            raise UserError(str(error)) from error


def _unknown_codemods(settings: Settings) -> Iterator[str]:
    """Yield a line for every id that no codemod has."""
    from vlmend.cli.judge import known_codemods, nearest

    named = [("codemods", one) for one in settings.codemods]
    named += [("ignore", rule.codemod) for rule in settings.ignore]
    known = known_codemods() if named else {}
    for key, one in named:
        if one not in known:
            near = nearest(one, known, "codemods")
            lead = f"{settings.place}: {key}: there is no codemod {one!r}"
            yield f"{lead}; {near}" if near else lead


def _shown(value: object) -> str:
    from vlmend.cli.console import printable
    from vlmend.cli.settings import Ignore

    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Ignore):
        return printable(f"{value.codemod} on {value.classes} ({value.reason})")
    if isinstance(value, bool):
        return str(value).lower()
    return printable(f'"{value}"')
