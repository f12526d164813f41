"""``vlmend history``: when each finding came, when it went, and by what."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmend.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlmend.cli.past.lives import Life, Snapshot


@click.command("history")
@click.argument("target", default=".", metavar="[TARGET]")
@click.option(
    "--codemod",
    "codemods",
    multiple=True,
    metavar="ID",
    help="Run only this codemod (repeatable).",
)
@options.narrowing
@click.option(
    "--finding",
    metavar="FINGERPRINT",
    help="Only this finding; its first six digits will do.",
)
@click.option(
    "--releases",
    metavar="SPEC",
    help="Over releases, as pip writes a range: 'vllm>=0.8'.",
)
@click.option(
    "--git",
    "revisions",
    metavar="[REV..REV]",
    help="Over the commits of the clone TARGET that touch the files involved.",
    is_flag=False,
    flag_value="HEAD",
)
@options.formatted("text", "json", "markdown", "svg")
def command(
    target: str,
    codemods: tuple[str, ...],
    classes: tuple[str, ...],
    excluded: tuple[str, ...],
    finding: str | None,
    releases: str | None,
    revisions: str | None,
    style: str,
) -> int:
    """Show when each finding came, when it went, and how long it lived.

    Over releases, which are fetched once and kept, or over the commits of a clone that
    touch the files involved; then with the commit and the pull request that its subject
    names. A class is followed through renames and moves by its name.

    \b
    Examples
      vlmend history --releases 'vllm>=0.20'            what came and went since
      vlmend history . --git v0.21.0..HEAD --class 'Cohere*'
      vlmend history --releases 'vllm>=0.8' --format svg > timeline.svg
      vlmend history --releases 'vllm>=0.8' --finding 99a531
    """  # noqa: D301 - click wants the character
    from vlmend.cli.cache import FactsStore
    from vlmend.cli.console import complain, progress
    from vlmend.cli.errors import UserError
    from vlmend.cli.judge import choose_codemods
    from vlmend.cli.past.commits import commit_snapshots
    from vlmend.cli.past.lives import lives_of
    from vlmend.cli.past.releases import chosen_versions, release_snapshots
    from vlmend.cli.select import Selection

    if (releases is None) == (revisions is None):
        raise click.UsageError("say over what: --releases SPEC, or --git [REV..REV]")
    if revisions is not None and "@" in target and not Path(target).exists():
        raise UserError(
            f"{target}: a history is read from the commits of a clone on this machine",
            hint="clone it: vlmend history FOLDER --git [REV..REV]",
        )
    selection = Selection(every_status=True, classes=classes, excluded=excluded)
    chosen = choose_codemods(codemods)
    missing: list[UserError] = []
    with ExitStack() as stack:
        cache = stack.enter_context(FactsStore())
        report = stack.enter_context(progress())
        if releases is not None:
            snapshots = list(
                release_snapshots(
                    chosen_versions(releases), chosen, cache, report, missing.append
                )
            )
        else:
            snapshots = list(
                commit_snapshots(
                    Path(target).expanduser(),
                    "" if revisions in (None, "HEAD") else revisions or "",
                    chosen,
                    cache,
                    report,
                    selection.concerns,
                )
            )
    lives = [
        life
        for life in lives_of(snapshots)
        if any(selection.concerns(f) for f in life.findings)
    ]
    if releases is None:
        _remember_arrivals(snapshots, lives)
    if finding is not None:
        lives = [life for life in lives if _is(life, finding)]
    if finding is not None and not lives:
        raise UserError(f"--finding {finding}: no state has such a finding")
    _print(snapshots, lives, style)
    for error in missing:
        complain(f"left out: {error.message}")
    return 0


def _remember_arrivals(snapshots: Sequence[Snapshot], lives: Sequence[Life]) -> None:
    """Keep which commit brought a defect: ``explain`` and drafts then say so."""
    from vlmend.cli.past.arrival import remember

    for life in lives:
        # What the first state has may be older than that.
        if life.seen[0] > 0:
            prints = list(dict.fromkeys(f.fingerprint for f in life.findings))
            remember(prints, snapshots[life.seen[0]].moment)


def _is(life: Life, fingerprint: str) -> bool:
    return any(f.fingerprint.startswith(fingerprint) for f in life.findings)


def _print(snapshots: Sequence[Snapshot], lives: Sequence[Life], style: str) -> None:
    from vlmend.cli.console import width
    from vlmend.cli.past import telling
    from vlmend.cli.report.json import dumped

    if style == "json":
        click.echo(dumped(telling.document(snapshots, lives)))
    elif style == "svg":
        from vlmend.cli.past.timeline import timeline

        click.echo(timeline(snapshots, lives))
    else:
        lines = (
            telling.markdown(snapshots, lives)
            if style == "markdown"
            else telling.text(snapshots, lives, width())
        )
        for line in lines:
            click.echo(line)
