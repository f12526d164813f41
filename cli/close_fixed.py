"""``vlmend close-fixed``: close own drafts whose finding is gone from the base."""

from __future__ import annotations

from pathlib import Path

import click

from vlmend.cli import forge_options


@click.command("close-fixed")
@forge_options.in_fork
@forge_options.connected
@click.option("--dry-run", is_flag=True, help="Only say what would be closed.")
def command(
    fork: str,
    base: str | None,
    upstream: str,
    api_url: str | None,
    token_file: Path | None,
    max_wait: float,
    dry_run: bool,
) -> int:
    """Close own open drafts in a fork whose finding is gone from the base.

    Each is closed with a comment that names the commit, and the pull request, that
    mended it; they are found in the history of the file. `draft` does the same.

    \b
    Examples
      vlmend close-fixed --fork me/vllm
      vlmend close-fixed --fork me/vllm --dry-run
      vlmend close-fixed --fork me/vllm --base main
    """  # noqa: D301 - click wants the character
    from vlmend.cli.drafts.ground import Access, judged_at, prepare
    from vlmend.cli.drafts.run import DraftRun
    from vlmend.cli.drafts.wishes import Wishes
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.world import current_world

    access = Access(fork, upstream, base, api_url, token_file, max_wait)
    ground = prepare(access, current_world())
    label = f"{ground.pair.fork_name}@{ground.base}"
    workspace, commit = ground.workspace, ground.commit
    with judged_at(workspace, "fork", commit, label, (), configured=True) as judged:
        run = DraftRun(ground, judged, Wishes(dry_run=dry_run))
        run.close_fixed(run.pulls.own("open"))
        if not run.report.lines:
            click.echo("nothing to close")
        return exit_code(judged, findings=False)
