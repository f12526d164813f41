"""The mode ``draft``: proven fixes become drafts inside the fork, and nowhere else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from vlmend.cli.action.results import Results, results_of, told_errors
from vlmend.cli.drafts.report import Line, Outcome
from vlmend.cli.errors import EXIT_REFUSED, EXIT_TROUBLE, UserError
from vlmend.cli.forge.calls import ForgeError

if TYPE_CHECKING:
    from vlmend.cli.action.inputs import Inputs
    from vlmend.cli.action.runner import Job
    from vlmend.cli.commits import Identity
    from vlmend.cli.drafts.ground import Ground

OPERATIONS: Final = {
    Outcome.CREATED: "created",
    Outcome.UPDATED: "updated",
    Outcome.REOPENED: "updated",
    Outcome.CLOSED: "closed",
    Outcome.UNCHANGED: "none",
    Outcome.LEFT_ALONE: "none",
}
"""What the output says became of a draft; what is not listed has no draft."""

_NUMBER: Final = re.compile(r"/pull/(\d+)/?$")


def draft(inputs: Inputs, job: Job) -> Results:
    """Bring the drafts of a fork in line with what can be mended there.

    Raises:
        UserError: rights are missing, or the fork is no use.
        Refused: it is no fork of the upstream.
    """
    from vlmend.cli.commits import signing_settings
    from vlmend.cli.drafts.ground import Access, judged_at, prepare
    from vlmend.cli.drafts.run import DraftRun
    from vlmend.cli.drafts.wishes import Wishes
    from vlmend.cli.guard import guard
    from vlmend.cli.outcome import exit_code
    from vlmend.cli.world import current_world

    fork, _, base = (inputs.target or job.repository).partition("@")
    os.environ["GH_TOKEN"] = inputs.token  # taken out again by Access
    access = Access(fork, inputs.upstream, base or None)
    wishes = Wishes(
        max_new=inputs.max_new,
        max_open=inputs.max_open,
        identity=_identity(inputs),
        signing=signing_settings(None),
    )
    ground = prepare(access, current_world())
    require_actions(ground, job)
    label = f"{ground.pair.fork_name}@{ground.base}"
    with judged_at(
        ground.workspace,
        "fork",
        ground.commit,
        label,
        inputs.codemods,
        configured=True,
    ) as judged:
        run = DraftRun(ground, judged, wishes)
        # The level of a selection is `fixable` unless a person asks for more.
        wanted = [f for f in judged.result.findings if judged.selection.writes(f)]
        code = run.run(wanted)
        lines = run.report.lines
        lead = list(_lead(ground, lines))
        results = results_of(judged, guard(judged, None), job.scratch, lead)
        results.drafts = json.dumps(list(_drafts(lines)))
        results.failures += [*told_errors(judged), *_failures(lines, code)]
        trouble = exit_code(judged, findings=False)
        results.code = trouble or (EXIT_TROUBLE if code == EXIT_TROUBLE else 0)
    return results


def _identity(inputs: Inputs) -> Identity:
    from vlmend.cli.commits import Identity, configured_identity

    if inputs.author is not None:
        return Identity(*inputs.author)
    return configured_identity(None, person=False)


def require_actions(ground: Ground, job: Job) -> None:
    """Refuse another repository's fork in which Actions are off: nothing checks there.

    In the repository that the job runs in they are on. Where the token may not ask,
    nothing is said.

    Raises:
        UserError: they are off.
    """
    from vlmend.cli.forge.places import same_repository

    name = ground.pair.fork_name
    if same_repository(name, job.repository):
        return
    url = f"{ground.pair.fork.url}/actions/permissions"
    requester = ground.forge.github.requester
    try:
        answer = ground.forge.calls.read(
            f"ask whether Actions are on in {name}",
            lambda: requester.requestJsonAndCheck("GET", url)[1],
        )
    except ForgeError as error:
        if error.status in (403, 404):
            return
        raise
    if isinstance(answer, dict) and answer.get("enabled") is False:
        raise UserError(
            f"{name}: Actions are off, so no draft would be checked there",
            hint="in the fork: the tab Actions, or Settings, Actions, General: allow"
            " them",
        )


def _drafts(lines: Sequence[Line]) -> Iterator[dict[str, object]]:
    for line in lines:
        number = _NUMBER.search(line.where)
        operation = OPERATIONS.get(line.outcome)
        if number is None or operation is None:
            continue
        yield {
            "number": int(number[1]),
            "url": line.where,
            "operation": operation,
            "branch": line.what,
        }


def _failures(
    lines: Sequence[Line], code: int
) -> Iterator[tuple[str, str, str | None]]:
    for outcome, level in ((Outcome.FAILED, "error"), (Outcome.DUPLICATE, "warning")):
        # What went wrong for one reason is said once.
        reasons = dict.fromkeys(line.why for line in lines if line.outcome is outcome)
        for why in reasons:
            names = [line.what for line in lines if line.why == why]
            yield level, f"no draft for {', '.join(names)}: {why}", None
    told = (Outcome.DUPLICATE, Outcome.LEFT_ALONE)
    if code == EXIT_REFUSED and not any(line.outcome in told for line in lines):
        yield (
            "warning",
            "GitHub's rate limit ended this run early",
            "nothing; the next run goes on where this one stopped",
        )


def _lead(ground: Ground, lines: Sequence[Line]) -> Iterator[str]:
    """Yield what the summary says of the drafts."""
    from vlmend.cli.report.markdown import escaped
    from vlmend.cli.report.words import counted

    pair = ground.pair
    yield f"# Drafts in {escaped(pair.fork_name)}"
    yield ""
    behind = (
        f"{counted(ground.behind, 'commit')} behind" if ground.behind else "up to date"
    )
    yield (
        f"Base {escaped(ground.base)} at {ground.commit[:12]},"
        f" {behind}{' with' if not ground.behind else ''}"
        f" {escaped(pair.upstream_name)}."
    )
    yield ""
    if not lines:
        yield "Nothing to do: no draft is open, and nothing can be mended."
        yield ""
        return
    yield "| draft | | why |"
    yield "|---|---|---|"
    for line in lines:
        number = _NUMBER.search(line.where)
        what = escaped(line.what)
        shown = f"[#{number[1]}](<{line.where}>) {what}" if number else what
        yield f"| {shown} | {line.outcome.value} | {escaped(line.why)} |"
    yield ""
