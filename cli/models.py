"""``vlmend models``: which model class keeps which contract."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from vlmend.cli import options

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged
    from vlmend.cli.report.coverage import Coverage
    from vlmend.cli.select import Selection


@click.command("models")
@options.judging
@options.narrowing
@click.option(
    "--against", metavar="TARGET", help="Also say what changed since this other tree."
)
@options.formatted("text", "json", "markdown")
def command(
    target: str,
    vllm: str | None,
    codemods: tuple[str, ...],
    classes: tuple[str, ...],
    excluded: tuple[str, ...],
    against: str | None,
    style: str,
) -> int:
    """Show every multimodal or pipeline-parallel class of TARGET by contract.

    A class that inherits its defect shows the base to mend ("fixable via Base"). Exits
    with 0 whatever the table says.

    \b
    Examples
      vlmend models vllm==0.33.0                           the table, with counts
      vlmend models . --class '*ForConditionalGeneration'  some of it
      vlmend models . --against vllm==0.32.0               what changed since a release
      vlmend models . --format markdown > models.md        for a wiki or an issue
    """  # noqa: D301 - click wants the character
    from vlmend.cli.console import width
    from vlmend.cli.judge import Request, judging
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.report import coverage as tables
    from vlmend.cli.report import coverage_text, json, markdown
    from vlmend.cli.select import Selection

    request = Request(target, vllm, codemods)
    selection = Selection(classes=classes, excluded=excluded)
    with ExitStack() as stack:
        judged = stack.enter_context(judging(request, selection))
        table = _table(judged, selection)
        changes = other = None
        if against is not None:
            # A plugin is compared with its own past, on the same vLLM.
            other = stack.enter_context(judging(replace(request, target=against)))
            changes = tables.changes(_table(other, selection), table)
        before = other.target if other is not None else None
        code = max(exit_code(each, findings=False) for each in (judged, other) if each)
        if style == "json":
            document = json.models_document(judged, table, changes, before)
            click.echo(json.dumped(document))
            return code
        if style == "markdown":
            lines = [*markdown.coverage_markdown(judged, table)]
            if changes is not None and before is not None:
                lines += [
                    "",
                    *markdown.changes_markdown(changes, before, judged.target),
                ]
        else:
            lines = [*coverage_text.coverage_report(judged, table, width())]
            if changes is not None and before is not None:
                lines += [
                    "",
                    *coverage_text.changes_report(changes, before, judged.target),
                ]
        for line in lines:
            click.echo(line)
        return code


def _table(judged: Judged, selection: Selection) -> Coverage:
    from vlmend.cli.report.coverage import coverage

    models = [m for m in judged.result.models if selection.concerns(m)]
    return coverage(judged.result, [c.id for c in judged.codemods], models)
