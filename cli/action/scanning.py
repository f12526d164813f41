"""The modes ``report`` and ``guard``: a tree is judged and stays as it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vlmend.cli.action.inputs import Inputs, Mode
from vlmend.cli.action.results import Results, results_of, told_errors

if TYPE_CHECKING:
    from vlmend.cli.action.runner import Job


def scan(inputs: Inputs, job: Job) -> Results:
    """Judge a tree; in mode ``guard``, only what the pull request brings in counts.

    Raises:
        UserError: there is no such tree, or nothing to compare it with.
    """
    from vlmend.cli.guard import guard
    from vlmend.cli.judge import Request, judging
    from vlmend.cli.outcome import EXIT_FINDINGS, exit_code
    from vlmend.cli.targets import is_on_forge

    target = inputs.target or str(job.workspace)
    base = None
    if inputs.mode is Mode.GUARD:
        from vlmend.cli.action.base import base_of

        base = base_of(job, target, inputs.token)
    elif inputs.token and is_on_forge(target):
        os.environ["GH_TOKEN"] = inputs.token  # taken out again by what reads the tree
    request = Request(
        target, None, inputs.codemods, changed=base is not None, base=base
    )
    with judging(request) as judged:
        guarded = guard(judged, None)
        guards = inputs.mode is Mode.GUARD
        results = results_of(judged, guarded, job.scratch, failing=guards)
        new = any(map(guarded.selection.fails, judged.result.findings))
        results.code = exit_code(judged, new and guards)
        results.failures += told_errors(judged)
    if results.code == EXIT_FINDINGS:
        results.failures.append(
            (
                "error",
                "this change breaks a contract that the base keeps",
                "the annotations say where; `vlmend fix` writes the missing lines",
            )
        )
    return results
