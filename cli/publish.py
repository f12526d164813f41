"""``vlmend publish``: a person brings one draft upstream."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from vlmend.cli import forge_options

_NAMED: Final = re.compile(
    r"(?:(?:https?://[^/\s]+/)?(?P<repository>[^/\s#]+/[^/\s#]+)(?:/pull/|#)|#?)"
    r"(?P<number>\d+)/?"
)


@click.command("publish")
@click.argument("pull", metavar="PR")
@click.option(
    "--fork",
    metavar="OWNER/REPO",
    help="The fork that the draft is in, where PR is only a number.",
)
@forge_options.connected
@click.option(
    "--not-duplicate",
    metavar="REASON",
    help="Why what the duplicate search finds is none; the reason goes into the text.",
)
@click.option(
    "--templates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Look for text templates here first.",
)
def command(
    pull: str,
    fork: str | None,
    upstream: str,
    api_url: str | None,
    token_file: Path | None,
    max_wait: float,
    not_duplicate: str | None,
    templates: Path | None,
) -> int:
    """Bring one draft upstream, in your name. PR is OWNER/REPO#N, its address, or N.

    This is a person's act: it runs at a terminal only, and not in CI. It shows each
    hunk with its proof, asks which tests you ran and what came of them, commits again
    under your identity and with your sign-off, searches for duplicates once more, and
    then opens a draft upstream from the fork.

    \b
    Examples
      vlmend publish me/vllm#12
      vlmend publish 12 --fork me/vllm
      vlmend publish https://github.com/me/vllm/pull/12
    """  # noqa: D301 - click wants the character
    from vlmend.cli.commits import configured_identity, signing_settings
    from vlmend.cli.drafts.ground import Access, prepare
    from vlmend.cli.drafts.publishing import Publication
    from vlmend.cli.drafts.text import Texts, template_folders
    from vlmend.cli.errors import UserError
    from vlmend.cli.forge.consent import require_person
    from vlmend.cli.forge.pulls import PullRequests
    from vlmend.cli.world import current_world

    require_person()
    named = _NAMED.fullmatch(pull)
    where = fork or (named["repository"] if named is not None else None)
    if named is None or where is None:
        raise UserError(
            f"{pull}: not a pull request",
            hint="OWNER/REPO#N, its address, or N with --fork OWNER/REPO",
        )
    access = Access(where, upstream, None, api_url, token_file, max_wait)
    identity = configured_identity(None, person=True)
    ground = prepare(access, current_world())
    draft = PullRequests(ground.forge, ground.pair.fork).get(int(named["number"]))
    publication = Publication(
        ground,
        draft,
        identity,
        Texts(template_folders(templates)),
        not_duplicate,
        signing_settings(None),
    )
    click.echo(f"upstream: {publication.run()}")
    return 0
