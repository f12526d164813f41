"""``vlmend status``: what became of own drafts and pull requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmend.cli import forge_options, options

if TYPE_CHECKING:
    from vlmend.cli.drafts.status import FailingCheck, Leftover, State


@click.command("status")
@forge_options.in_fork
@forge_options.connected
@options.formatted("text", "json")
def command(
    fork: str,
    base: str | None,
    upstream: str,
    api_url: str | None,
    token_file: Path | None,
    max_wait: float,
    style: str,
) -> int:
    """Show own drafts in a fork, and own pull requests upstream.

    For each: its state, its checks (a failing check that fails on the base, too, is not
    ours), reviews, whether it can be merged, whether upstream has mended the defect
    meanwhile, who refused it and when. Branches that a run left behind without a pull
    request are listed at the end. Nothing is written.

    \b
    Examples
      vlmend status --fork me/vllm
      vlmend status --fork me/vllm --base main
      vlmend status --fork me/vllm --format json
    """  # noqa: D301 - click wants the character
    from vlmend.cli.drafts.ground import Access, judged_at, prepare
    from vlmend.cli.drafts.status import StatusReader, document
    from vlmend.cli.report.json import dumped
    from vlmend.cli.world import current_world

    access = Access(fork, upstream, base, api_url, token_file, max_wait)
    ground = prepare(access, current_world())
    label = f"{ground.pair.upstream_name}@{ground.upstream_branch}"
    with judged_at(
        ground.workspace, "upstream", ground.upstream_commit, label, ()
    ) as judged:
        reader = StatusReader(ground, judged.result)
        states = reader.drafts()
        leftovers = reader.leftovers(states)
    if style == "json":
        click.echo(dumped(document(states, leftovers)))
        return 0
    for line in _text(states, leftovers):
        click.echo(line)
    return 0


def _text(states: list[State], leftovers: list[Leftover]) -> Iterator[str]:
    from vlmend.cli.console import printable
    from vlmend.cli.report.words import strong

    if not states and not leftovers:
        yield "no drafts, no pull requests, nothing left behind"
    for one in states:
        name = f"{one.repository}#{one.draft.number}"
        yield f"{one.state:8} {strong(printable(name))}  {printable(one.draft.title)}"
        yield from (f"         {printable(line)}" for line in _details(one))
    for left in leftovers:
        yield f"{'branch':8} {strong(printable(left.branch))}  no open pull request"
        yield f"         {_meaning(left)}"


def _meaning(left: Leftover) -> str:
    if not left.ours:
        return "a person has committed there"
    if left.closed:
        return "its pull request is closed"
    return "left by a run that was cut off; the next `vlmend draft` completes it"


def _details(one: State) -> Iterator[str]:
    yield one.draft.url
    if one.state in ("draft", "open"):
        can = {True: "yes", False: "no", None: "unknown"}[one.mergeable]
        yield f"checks: {one.checks}; review: {one.review}; mergeable: {can}"
    for check in one.failing:
        yield _failing(check)
    if one.touched_by:
        yield f"{one.touched_by} has committed to its branch; vlmend leaves it alone"
    if one.refused_by:
        moment = one.draft.closed_at
        when = f" on {moment:%Y-%m-%d}" if moment else ""
        yield f"refused by {one.refused_by}{when}"
    if one.unknown:
        yield one.unknown
    if one.fixed_upstream:
        yield "upstream no longer has the defect"


def _failing(check: FailingCheck) -> str:
    if check.ours is False:
        return f"{check.name} fails: {check.url}; not ours, the base: {check.base_url}"
    known = " (not run on the base)" if check.ours is None else ""
    return f"{check.name} fails: {check.url}{known}"
