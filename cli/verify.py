"""``vlmend verify``: run a tree with and without the proposed change, and compare."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmend.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlmend.cli.judge import Judged
    from vlmend.cli.proof.prove import Proof
    from vlmend.cli.proof.regression import RegressionTest


@click.command("verify")
@options.judging
@options.narrowing
@options.levelled
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="An interpreter that has torch and Transformers; nothing is installed.",
)
@click.option(
    "--torch-index",
    metavar="URL",
    help="Where CPU builds of torch come from, if pip's own configuration has none.",
)
@click.option(
    "--model-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A model's config.json to build from, instead of defaults; for one --class.",
)
@click.option(
    "--before",
    metavar="TREE",
    help="Compare with this tree instead: TARGET is taken as the state after a change.",
)
@click.option(
    "--with-test/--no-test",
    "with_test",
    default=True,
    show_default=True,
    help="Write a regression test for what is proven, and run it in both trees.",
)
@click.option("--yes", is_flag=True, help="Run the tree's code without asking first.")
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=60.0,
    show_default=True,
    help="How long one class may take.",
)
@click.option(
    "--memory",
    type=click.IntRange(64),
    default=4096,
    show_default=True,
    metavar="MB",
    help="How much memory one class may take.",
)
@options.formatted("text", "json", "markdown")
def command(
    target: str,
    vllm: str | None,
    codemods: tuple[str, ...],
    classes: tuple[str, ...],
    excluded: tuple[str, ...],
    level: str,
    python: Path | None,
    torch_index: str | None,
    model_config: Path | None,
    before: str | None,
    with_test: bool,
    yes: bool,
    seconds: float,
    memory: int,
    style: str,
) -> int:
    """Prove the fixes for TARGET at run time, on a CPU and without weights.

    The classes are built on the meta device from TARGET as it is and from TARGET with
    the proposed change laid over it, as a rank of a pretended pipeline. A verdict is
    PROVEN when the defect shows itself before and not after, REFUTED when the change
    does not help or does harm, and INCONCLUSIVE otherwise, with the reason.

    This runs the tree's code, in a process without tokens, network or your files'
    folders, so it asks first. What it needs (torch for CPUs, Transformers as the tree
    pins it) is installed into vlmend's cache, never a CUDA build. Exits with 1 when
    something is refuted.

    \b
    Examples
      vlmend verify vllm==0.21.0 --class 'Cohere2Vision*'
      vlmend verify . --yes --format markdown        the block for a pull request
      vlmend verify . --torch-index URL              CPU builds from another index
      vlmend verify ./after --before ./before        two trees, no change of ours
    """  # noqa: D301 - click wants the character
    from vlmend.cli.console import progress
    from vlmend.cli.errors import UserError
    from vlmend.cli.judge import Request, judging
    from vlmend.cli.proof.child import Pair
    from vlmend.cli.proof.prove import Limits, bytecode_of, prove, refuted
    from vlmend.cli.proof.regression import regression_tests
    from vlmend.cli.proof.setting_up import environment_for, subjects_of
    from vlmend.cli.proof.trees import trees_of
    from vlmend.cli.select import Level, Selection

    selection = Selection(Level(level), classes=classes, excluded=excluded)
    judged_spec = before or target
    with ExitStack() as stack:
        request = Request(judged_spec, vllm, codemods)
        judged = stack.enter_context(judging(request, selection))
        wanted = [
            f
            for f in judged.result.findings
            if selection.shows(f) and (selection.writes(f) or before)
        ]
        subjects = subjects_of(judged, wanted)
        if model_config is not None and len({s.architecture for s in subjects}) > 1:
            raise UserError(
                "--model-config is one model's: more than one class is to be proven",
                hint="narrow it down with --class",
            )
        proofs: list[Proof] = []
        tests: list[RegressionTest] = []
        if subjects:
            report = stack.enter_context(progress())
            environment = environment_for(judged, python, torch_index, yes, report)
            old, new = trees_of(judged, [s.finding for s in subjects], target, before)
            stack.callback(new.close)
            stack.callback(old.close)
            trees = stack.enter_context(
                Pair(environment, old.roots, new.roots, bytecode_of)
            )
            limits = Limits(seconds, memory)

            def step(stage: str) -> None:
                report(stage, 0, None)

            proofs = prove(
                subjects, trees, limits=limits, config=model_config, on_step=step
            )
            if with_test:
                tree = judged.target.tree
                tests = regression_tests(
                    proofs, subjects, tree, trees, limits=limits, on_step=step
                )
        _print(judged, proofs, tests, style)
        return 1 if refuted(proofs) else 2 if judged.errors else 0


def _print(
    judged: Judged,
    proofs: Sequence[Proof],
    tests: Sequence[RegressionTest],
    style: str,
) -> None:
    from vlmend.cli.console import width
    from vlmend.cli.proof import telling
    from vlmend.cli.report.json import dumped
    from vlmend.cli.report.text import describe

    target = judged.target
    if style == "json":
        place = {"spec": target.spec, "kind": target.kind, "version": target.version}
        click.echo(dumped(telling.document(proofs, tests, place)))
        return
    lines = telling.markdown(proofs, tests) if style == "markdown" else None
    if lines is None:
        click.echo(f"{describe(target)}: {len(proofs)} to prove")
        lines = telling.text(proofs, tests, width())
    for line in lines:
        click.echo(line)
