"""``vlmend scan``: what is wrong, each finding with its proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmend.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vlmend.cli.guard import Guard
    from vlmend.cli.judge import Judged
    from vlmend.codemods.codemod import Finding


@click.command("scan")
@options.judging
@options.narrowing
@options.levelled
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show every status, sound classes included.",
)
@click.option(
    "--strict/--no-strict",
    default=False,
    help="Let an unproven suspicion, or an unused suppression, exit with 1, too.",
)
@options.guarding
@click.option(
    "--write-baseline",
    "written",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="List what is found in FILE, for --baseline, and exit with 0.",
)
@options.forgiving
@options.formatted("text", "json", "github", "sarif", "markdown")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the result to FILE instead of standard output.",
)
def command(
    target: str,
    vllm: str | None,
    codemods: tuple[str, ...],
    classes: tuple[str, ...],
    excluded: tuple[str, ...],
    level: str,
    everything: bool,
    strict: bool,
    changed: bool,
    base: str | None,
    baseline: Path | None,
    written: Path | None,
    exit_zero: bool,
    style: str,
    output: Path | None,
) -> int:
    """List what is wrong in TARGET, each finding with its proof.

    Shown are proven defects (fixable, blocked) and suspicions (unproven). What decides
    the exit code are fixable and blocked findings, review findings with --level review,
    and unproven ones with --strict. With --changed or --baseline, only what is new
    counts.

    \b
    Examples
      vlmend scan                                    the current directory
      vlmend scan vllm==0.21.0 --level review        also what a person must look at
      vlmend scan . --class 'Qwen3*' --all           all there is about some classes
      vlmend scan ./my_plugin --vllm vllm==0.21.0    a plugin against its vLLM
      vlmend scan . --changed --base origin/main     what a branch brings in
      vlmend scan . --format sarif -o vlmend.sarif   for code scanning
    """  # noqa: D301 - click wants the character
    from vlmend.cli.guard import guard
    from vlmend.cli.judge import Request, judging
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.select import Level, Selection

    options.require_changed(changed, base)
    asked = Selection(Level(level), everything, strict, classes, excluded)
    request = Request(target, vllm, codemods, changed=changed, base=base)
    with judging(request, asked) as judged:
        if written is not None:
            return _write_baseline(judged, written)
        guarded = guard(judged, baseline)
        selection = guarded.selection
        shown = [f for f in judged.result.findings if selection.shows(f)]
        _deliver(_report(judged, shown, guarded, style, output is None), output)
        failed = any(map(selection.fails, shown))
        if selection.strict and judged.unused and not changed:
            failed = True
        return exit_code(judged, failed and not exit_zero)


def _report(
    judged: Judged,
    shown: Sequence[Finding],
    guarded: Guard,
    style: str,
    to_terminal: bool,
) -> Iterator[str]:
    """Yield the lines of the result."""
    from vlmend.cli.console import PIPED_WIDTH, width
    from vlmend.cli.report import json

    match style:
        case "json":
            yield json.dumped(json.scan_document(judged, shown, guarded))
        case "sarif":
            from vlmend.cli.report.sarif import sarif_document

            yield json.dumped(sarif_document(judged, shown, guarded))
        case "github":
            from vlmend.cli.report.github import workflow_commands

            yield from workflow_commands(judged, shown)
        case "markdown":
            from vlmend.cli.report.summary import ROOM, scan_markdown

            whole = "`vlmend scan --format json` has"
            yield from scan_markdown(judged, shown, guarded, ROOM, whole)
        case _:
            from vlmend.cli.report.text import scan_report

            columns = width() if to_terminal else PIPED_WIDTH
            selection = guarded.selection
            yield from scan_report(judged, shown, selection, columns, guarded)


def _deliver(lines: Iterator[str], output: Path | None) -> None:
    """Print the lines, or write them to a file.

    Raises:
        UserError: the file cannot be written.
    """
    if output is None:
        for line in lines:
            click.echo(line)
        return
    from vlmend.cli.files import write_file

    text = "".join(f"{click.unstyle(line)}\n" for line in lines)
    write_file(output, text.encode("utf-8", "backslashreplace"))


def _write_baseline(judged: Judged, place: Path) -> int:
    """List what is found; a file that could not be judged is trouble all the same."""
    from vlmend.cli.baseline import write_baseline
    from vlmend.cli.console import note
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.report.words import counted

    concerned = filter(judged.selection.concerns, judged.result.findings)
    count = write_baseline(place, concerned)
    note(f"{place}: {counted(count, 'finding')} listed")
    return exit_code(judged, findings=False)
