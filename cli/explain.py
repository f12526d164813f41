"""``vlmend explain``: a codemod, a class or a finding, told from beginning to end."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

import click

from vlmend.cli import options

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged, Request
    from vlmend.cli.past.since import Knows
    from vlmend.cli.report.story import LineOf
    from vlmend.cli.targets import Target
    from vlmend.codemods.codemod import Codemod, Finding, Source

FINGERPRINT = re.compile(r"[0-9a-f]{6,16}")


@click.command("explain")
@click.argument("what", required=False, metavar="[CODEMOD|CLASS|FINGERPRINT]")
@click.option(
    "--runner-calls",
    is_flag=True,
    help="Print every call that TARGET's runners make of a model's forward.",
)
@click.option(
    "--since",
    is_flag=True,
    help="Find the commit that brought each finding, if TARGET is a clone; it is kept.",
)
@options.judging
def command(
    what: str | None,
    target: str,
    vllm: str | None,
    codemods: tuple[str, ...],
    *,
    runner_calls: bool,
    since: bool,
) -> int:
    """Explain a codemod, or all that is known about one class or finding of TARGET.

    A class is named by its bare name, by module:Class, or by a glob; a finding by the
    fingerprint that `scan` prints (its first six digits will do). Without anything to
    explain, the codemods are listed.

    \b
    Examples
      vlmend explain                                     which codemods there are
      vlmend explain delegate-intermediate-tensors       what one checks and writes
      vlmend explain DotsOCRForCausalLM vllm==0.11.0     the chain for a class
      vlmend explain 3f2a90c14b7d8e65 .                  the chain for a finding
      vlmend explain 3f2a90c14b7d8e65 . --since          and the commit that brought it
      vlmend explain --runner-calls vllm==0.33.0         what models are called with
    """  # noqa: D301 - click wants the character
    from vlmend.cli.judge import Request, choose_codemods, judging
    from vlmend.cli.outcome import exit_code

    if runner_calls:
        # There is nothing else to name: a lone word is the target.
        return _runner_calls(Request(what or target, vllm, codemods))
    known = {codemod.id: codemod for codemod in choose_codemods(())}
    if what is None:
        _list(known.values())
        return 0
    if what in known:
        _document(known[what])
        return 0
    with judging(Request(target, vllm, codemods)) as judged:
        if since:
            _find_arrivals(judged, what)
        for line in _stories(judged, what):
            click.echo(line)
        return exit_code(judged, findings=False)


def _runner_calls(request: Request) -> int:
    from vlmend.cli.console import width
    from vlmend.cli.judge import judging
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.report.runner_table import runner_table
    from vlmend.codemods.analysis.runner_calls import runner_calls

    with judging(request) as judged:
        for line in runner_table(runner_calls(judged.session.index), width()):
            click.echo(line)
        return exit_code(judged, findings=False)


def documentation(codemod: Codemod) -> str:
    """Return a codemod's documentation: its summary, then its class's docstring."""
    text = inspect.getdoc(type(codemod)) or ""
    return f"# {codemod.id}\n\n{text.strip()}\n"


def _list(codemods: Iterable[Codemod]) -> None:
    from vlmend.cli.report.words import strong

    for codemod in codemods:
        click.echo(f"{strong(codemod.id)}\n  {codemod.summary}")
    click.echo("\nvlmend explain ID tells more about one.")


def _document(codemod: Codemod) -> None:
    from vlmend.cli.console import colour_choice, on_terminal, width

    text = documentation(codemod)
    if not on_terminal():
        click.echo(text, nl=False)
        return
    # Rich lays Markdown out for a terminal; a pipe gets the Markdown itself.
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=width(), no_color=colour_choice() is False).print(Markdown(text))


def _stories(judged: Judged, what: str) -> Iterator[str]:
    from vlmend.cli.console import width
    from vlmend.cli.errors import UserError
    from vlmend.cli.judge import nearest
    from vlmend.cli.report.story import inherited_story, story
    from vlmend.cli.report.text import contract, heading

    found = [f for f in judged.result.findings if _named(f, what)]
    bases = [f for f in judged.result.findings if f.heirs and _inherited(f, what)]
    if not found and not bases:
        names = {f.class_name for f in judged.result.findings}
        names |= {m.class_name for m in judged.result.models}
        raise UserError(
            f"{what}: no codemod, and no class or finding in {judged.target.spec}",
            hint=nearest(what, names, "classes"),
        )
    knows = history_of(judged.target)
    yield from heading(judged)
    yield from contract(judged.result.contract, width())
    for finding in found:
        yield ""
        yield from story(finding, judged.diff(finding), _reader(judged), width(), knows)
    for finding in bases:
        if finding in found:
            continue
        heirs = [heir for heir in finding.heirs if _matches(heir, what)]
        yield ""
        yield from inherited_story(heirs, finding, width())
        yield ""
        yield from story(finding, judged.diff(finding), _reader(judged), width(), knows)


def _find_arrivals(judged: Judged, what: str) -> None:
    from vlmend.cli.cache import FactsStore
    from vlmend.cli.console import progress
    from vlmend.cli.errors import UserError
    from vlmend.cli.past.arrival import came_with
    from vlmend.cli.past.lives import DEFECTS

    target = judged.target
    place = target.repository or target.root
    if place is None or target.kind == "release":
        raise UserError(
            f"{target.spec}: --since reads the history of a clone",
            hint="vlmend history --releases goes over releases",
        )
    for finding in judged.result.findings:
        if not _named(finding, what) or finding.status not in DEFECTS:
            continue
        chosen = [c for c in judged.codemods if c.id == finding.codemod]
        with FactsStore() as cache, progress() as report:
            revision = target.revision or "HEAD"
            came_with(place, revision, finding, chosen, cache, report)


def history_of(target: Target) -> Knows:
    """Return a function that says whether a commit leads to what TARGET is."""
    from vlmend.cli.git_run import GitFailed, GitRunner
    from vlmend.cli.past.since import nothing_known

    place = target.repository or target.root
    if place is None or target.kind == "release":
        return nothing_known

    def knows(commit: str) -> bool:
        try:
            words = ("merge-base", "--is-ancestor", commit, target.revision or "HEAD")
            GitRunner(place).run(*words)
        except GitFailed:
            return False
        return True

    return knows


def _named(finding: Finding, what: str) -> bool:
    if FINGERPRINT.fullmatch(what) and finding.fingerprint.startswith(what):
        return True
    return _matches(f"{finding.module}:{finding.class_name}", what)


def _inherited(finding: Finding, what: str) -> bool:
    return any(_matches(heir, what) for heir in finding.heirs)


def _matches(key: str, what: str) -> bool:
    return fnmatchcase(key, what) or fnmatchcase(key.rpartition(":")[2], what)


def _reader(judged: Judged) -> LineOf:
    """Return a function that fetches the cited lines from the trees at hand."""
    from vlmend.codemods.analysis.tree import TreeError
    from vlmend.codemods.codemod import Source

    trees = {Source.TREE: judged.target.tree}
    if judged.base is not None:
        trees[Source.BASE] = judged.base.tree

    @cache
    def lines(source: Source, file: str) -> list[str]:
        try:
            return trees[source].read(file).decode("utf-8", "replace").splitlines()
        except (KeyError, TreeError):
            return []

    def line_of(source: Source, file: str, line: int) -> str | None:
        text = lines(source, file)
        return text[line - 1] if 0 < line <= len(text) else None

    return line_of
