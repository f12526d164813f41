"""``vlmend scan``: what is wrong, each finding with its proof."""

from __future__ import annotations

import click

from vlmend.cli import options


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
    "--strict", is_flag=True, help="Let an unproven suspicion exit with 1, too."
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
    everything: bool,
    strict: bool,
    exit_zero: bool,
    style: str,
) -> int:
    """List what is wrong in TARGET, each finding with its proof.

    Shown are proven defects (fixable, blocked) and suspicions (unproven). What decides
    the exit code are fixable and blocked findings, review findings with --level review,
    and unproven ones with --strict.

    \b
    Examples
      vlmend scan                                    the current directory
      vlmend scan vllm==0.21.0 --level review        also what a person must look at
      vlmend scan . --class 'Qwen3*' --all           all there is about some classes
      vlmend scan ./my_plugin --vllm vllm==0.21.0    a plugin against its vLLM
      vlmend scan . --format json > report.json      for other tools
    """  # noqa: D301 - click wants the character
    from vlmend.cli.console import width
    from vlmend.cli.judge import Request, judging
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.report import json, text
    from vlmend.cli.select import Level, Selection

    selection = Selection(Level(level), everything, strict, classes, excluded)
    with judging(Request(target, vllm, codemods), selection) as judged:
        shown = [f for f in judged.result.findings if selection.shows(f)]
        if style == "json":
            click.echo(json.dumped(json.scan_document(judged, shown)))
        else:
            for line in text.scan_report(judged, shown, selection, width()):
                click.echo(line)
        return exit_code(judged, any(map(selection.fails, shown)) and not exit_zero)
