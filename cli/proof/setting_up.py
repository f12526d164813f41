"""What a proof is set up with: its subjects, its environment, and a person's leave."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlmend.cli.errors import Refused
from vlmend.cli.proof.environment import Environment, make, plan_environment, reuse
from vlmend.cli.proof.keywords import keywords_of
from vlmend.cli.proof.pins import python_range, transformers_pin
from vlmend.cli.proof.prove import Subject
from vlmend.cli.proof.verdict import FORWARD, KNOWN

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged
    from vlmend.cli.releases import Progress
    from vlmend.codemods.codemod import Finding


def subjects_of(judged: Judged, findings: Sequence[Finding]) -> list[Subject]:
    """Return what can be run of these findings; other codemods' are left out."""
    names: Mapping[str, tuple[str, ...]] = {
        f"{m.module}:{m.class_name}": m.architectures for m in judged.result.models
    }
    subjects: list[Subject] = []
    for finding in findings:
        if finding.codemod not in KNOWN:
            continue
        known = names.get(f"{finding.module}:{finding.class_name}", ())
        name = finding.class_name
        architecture = name if name in known or not known else known[0]
        keywords: tuple[tuple[str, ...], ...] = ()
        if finding.codemod == FORWARD:
            keywords = keywords_of(judged.session.index, finding)
        subjects.append(Subject(finding, architecture, keywords))
    return subjects


def environment_for(
    judged: Judged,
    python: Path | None,
    torch_index: str | None,
    yes: bool,
    report: Progress,
) -> Environment:
    """Ask once, then return an interpreter that can run the tree.

    Args:
        judged: the tree.
        python: an interpreter that the person named; nothing is installed then.
        torch_index: where CPU builds of torch come from.
        yes: the person has agreed on the command line.
        report: told what is being installed.

    Raises:
        Refused: there is nobody to ask.
        UserError: there is no such environment, and none can be made.
    """
    tree = (judged.base or judged.target).tree
    pythons = python_range(tree)
    if python is not None:
        environment = reuse(python, pythons)
        _ask(judged.target.spec, "", yes)
        return environment
    pin, _ = transformers_pin(tree)
    plan = plan_environment(pythons, pin, torch_index)
    asked = "" if plan.is_ready else f" and installs {plan.asks_for()}"
    _ask(judged.target.spec, asked, yes)
    return make(plan, report)


def _ask(spec: str, more: str, yes: bool) -> None:
    import click

    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(
            f"verify runs the code of {spec}{more}",
            hint="say --yes where nobody can be asked",
        )
    click.confirm(f"This runs the code of {spec}{more}. Go on?", abort=True, err=True)
