"""``vlmend preview``: the fixes as a diff, and as a page; the target stays as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmend.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlmend.cli.judge import Judged
    from vlmend.cli.select import Selection
    from vlmend.codemods.codemod import Finding
    from vlmend.codemods.engine import FilePatch


@click.command("preview")
@options.judging
@options.narrowing
@options.levelled
@click.option(
    "--stat", is_flag=True, help="Only say which files would change, and by how much."
)
@click.option(
    "--pr-text",
    "pr_text",
    is_flag=True,
    help="Print the pull requests that `draft` would open, without asking any forge.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a page to look at: one file that needs no network.",
)
@click.option(
    "--open",
    "opened",
    is_flag=True,
    help="Open the page in a browser; without --html it is kept in the cache.",
)
@options.forgiving
@options.formatted("text", "json")
def command(
    target: str,
    vllm: str | None,
    codemods: tuple[str, ...],
    classes: tuple[str, ...],
    excluded: tuple[str, ...],
    level: str,
    stat: bool,
    pr_text: bool,
    page: Path | None,
    opened: bool,
    exit_zero: bool,
    style: str,
) -> int:
    """Show the fixes for TARGET as a unified diff and change nothing in it.

    The diff is headed by its reasons and is valid input for `git apply`. Defects that
    cannot be mended are named on standard error. Exits with 1 when there is anything
    that `scan` would call a finding.

    The page of --html also shows the cited lines of every proof, and every class by
    contract, whatever its status.

    \b
    Examples
      vlmend preview vllm==0.21.0              what would change in a release
      vlmend preview . | git apply             apply it by hand
      vlmend preview . --stat                  how much would change
      vlmend preview . --pr-text               what would be said of it
      vlmend preview . --format json           findings and diffs for other tools
      vlmend preview . --open                  all of it in a browser
    """  # noqa: D301 - click wants the character
    from vlmend.cli.judge import Request, judging
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.page_file import deliver, page_place
    from vlmend.cli.report import json
    from vlmend.cli.select import Level, Selection

    if stat and style == "json":
        raise click.UsageError("--stat is text; with --format json it means nothing")
    if pr_text and (stat or style == "json"):
        raise click.UsageError("--pr-text is a text of its own: no --stat, no --format")
    place = page_place(page, target) if page or opened else None
    selection = Selection(Level(level), classes=classes, excluded=excluded)
    with judging(Request(target, vllm, codemods), selection) as judged:
        selection = judged.selection
        shown = [f for f in judged.result.findings if selection.shows(f)]
        patches: list[FilePatch] = []
        if style == "json":
            click.echo(json.dumped(json.scan_document(judged, shown)))
        else:
            patches = judged.patches(f for f in shown if selection.writes(f))
            if pr_text:
                _print_pull_requests(judged, [f for f in shown if selection.writes(f)])
            else:
                _print_patches(patches, stat)
            _print_summary(judged, shown, selection, patches)
        if place is not None:
            from vlmend.cli.report.page import render

            sys.stdout.flush()
            deliver(render(judged, selection, patches), place, opened=opened)
        return exit_code(judged, any(map(selection.fails, shown)) and not exit_zero)


def _print_pull_requests(judged: Judged, findings: Sequence[Finding]) -> None:
    from vlmend.cli.console import printable
    from vlmend.cli.drafts.offline import texts_of
    from vlmend.cli.drafts.scopes import GroupBy
    from vlmend.cli.drafts.text import Texts, template_folders
    from vlmend.cli.explain import history_of

    texts = Texts(template_folders(None))
    knows = history_of(judged.target)
    for title, body in texts_of(judged, findings, GroupBy.SCOPE, texts, knows):
        for line in (title, "", *body.rstrip("\n").split("\n"), ""):
            click.echo(printable(line))


def _print_patches(patches: Sequence[FilePatch], stat: bool) -> None:
    from vlmend.cli.console import PIPED_WIDTH, on_terminal, width
    from vlmend.cli.report import diff

    if stat:
        for line in diff.stat(patches):
            click.echo(line)
        return
    if on_terminal():
        for patch in patches:
            for line in diff.explained(patch, width()):
                click.echo(diff.painted(line))
        return
    # Bytes, so that line ends and odd characters arrive at `git apply` as they are.
    stream = sys.stdout.buffer
    for patch in patches:
        for line in diff.explained(patch, PIPED_WIDTH):
            stream.write(line.encode("utf-8", "surrogateescape"))
    stream.flush()


def _print_summary(
    judged: Judged,
    shown: Sequence[Finding],
    selection: Selection,
    patches: Sequence[FilePatch],
) -> None:
    """Say on standard error what the diff leaves open."""
    from vlmend.cli.console import PIPED_WIDTH, note
    from vlmend.cli.report.text import describe, tally
    from vlmend.cli.report.words import counted, place, wrapped

    mended = {f.fingerprint for patch in patches for f in patch.findings}
    for finding in shown:
        if finding.fingerprint not in mended:
            note(f"{finding.status} {finding.class_name}")
            note(f"  {place(finding.file, finding.line, finding.source)}")
            note(wrapped(finding.message, PIPED_WIDTH, "  "))
    classes = counted(len(judged.result.models), "model class", "model classes")
    found = tally(f.status for f in shown) or "nothing wrong was found"
    note(f"{describe(judged.target)}: {classes} judged; {found}")
    hidden = sum(
        f.status == "review" and selection.concerns(f) for f in judged.result.findings
    )
    if hidden and selection.level == "fixable":
        note(f"{hidden} more to review: --level review")
