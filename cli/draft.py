"""``vlmend draft``: proven fixes become draft pull requests inside a fork."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlmend.cli import forge_options

if TYPE_CHECKING:
    from vlmend.cli.drafts.ground import Access, Ground
    from vlmend.cli.drafts.proving import Prover
    from vlmend.cli.drafts.wishes import Wishes
    from vlmend.cli.judge import Judged
    from vlmend.cli.releases import Progress
    from vlmend.codemods.codemod import Finding


@click.command("draft")
@click.argument("target", required=False, metavar="[TARGET]")
@forge_options.in_fork
@forge_options.connected
@forge_options.chosen_codemods
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="GLOB",
    help="Only classes whose name, or module:Class, matches (repeatable).",
)
@click.option(
    "--group-by",
    type=click.Choice(["scope", "class", "codemod"]),
    default="scope",
    show_default=True,
    help="What goes together into one draft.",
)
@click.option(
    "--max-new",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="Open no more drafts than this in one run.",
)
@click.option(
    "--max-open",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="Keep no more drafts than this open.",
)
@click.option("--create-fork", is_flag=True, help="Make the fork if there is none.")
@click.option(
    "--sync", is_flag=True, help="First move the fork's branch forward to upstream's."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Do everything up to the first write; print what would be pushed.",
)
@click.option(
    "--level",
    type=click.Choice(["fixable", "review"]),
    default="fixable",
    show_default=True,
    help="'review' adds fixes that a person must look at; it needs -i and a terminal.",
)
@click.option("-i", "--interactive", is_flag=True, help="Ask about each fix.")
@click.option(
    "--not-duplicate",
    metavar="REASON",
    help="Why what the duplicate search finds is none; the reason goes into the text.",
)
@click.option(
    "--reopen", is_flag=True, help="Bring back what a person closed without a merge."
)
@click.option(
    "--signoff", is_flag=True, help="Sign off as the configured person; no bots."
)
@click.option(
    "--run-hooks",
    is_flag=True,
    help="Run the commit and pre-push hooks of TARGET, a clone of yours; without the"
    " token.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Run each change first, as `vlmend verify` does; what is refuted is no draft.",
)
@click.option(
    "--with-test/--no-test",
    "with_test",
    default=True,
    show_default=True,
    help="With --verify: commit a test that fails before the fix and passes after it.",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="With --verify: an interpreter that has torch and Transformers.",
)
@click.option(
    "--torch-index",
    metavar="URL",
    help="With --verify: where CPU builds of torch come from.",
)
@click.option(
    "--yes", is_flag=True, help="With --verify: run the fork's code without asking."
)
@click.option(
    "--templates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Look for text templates here first.",
)
def command(**asked: Any) -> int:
    """Find and fix on a fork's branch, and open draft pull requests inside the fork.

    What is judged is the fork's own branch, as it is on the server. TARGET is a clone
    of yours whose objects are read instead of fetched; it is never written to. It may
    also be OWNER/REPO@BRANCH of the fork itself.

    Running it again changes nothing, or updates the same drafts in place. Drafts whose
    finding is gone are closed. Nothing is ever opened upstream: that is `publish`, and
    a person's act.

    The branch's own vlmend.toml, or [tool.vlmend], is honoured in what it leaves out:
    codemods, exclude and ignore. It cannot ask for more than proven fixes, and texts,
    tokens and places never come from it. What --max-new or --max-open holds back is no
    failure: a line says so, the exit code is 0, and a later run takes it up. A rate
    limit that outlasts --max-wait ends in 3, saying what is done and what is left.

    With --verify, the models are built without and with each change, in a process that
    gets no token. REFUTED holds a draft back (exit code 3); INCONCLUSIVE does not, and
    the text says why. What was proven or refuted is kept by the content of tree and
    change, so that the next run need not repeat it. Without --verify, a draft keeps the
    test that it has for as long as its fix stays the same.

    \b
    Examples
      vlmend draft --fork me/vllm --dry-run      all that would be pushed and said
      vlmend draft --fork me/vllm                up to two new drafts
      vlmend draft --fork me/vllm ~/src/vllm     the same, with less to fetch
      vlmend draft --fork me/vllm --sync         bring the fork's main forward first
      vlmend draft --fork me/vllm --verify --yes     with run-time proof and a test
    """  # noqa: D301 - click wants the character
    from vlmend.cli.console import progress
    from vlmend.cli.drafts.ground import judged_at, prepare
    from vlmend.cli.drafts.run import DraftRun
    from vlmend.cli.world import current_world

    _require_a_person_for_review(asked)
    _require_verify(asked)
    access = _access(asked)
    wishes = _wishes(asked, access)
    ground = prepare(access, current_world())
    _introduce(ground)
    label = f"{ground.pair.fork_name}@{ground.base}"
    with judged_at(
        ground.workspace,
        "fork",
        ground.commit,
        label,
        asked["codemods"],
        configured=True,
    ) as judged:
        findings = _wanted(judged, asked)
        with ExitStack() as stack:
            if asked["verify"] and findings:
                report = stack.enter_context(progress())
                prover = _prover(ground, judged, asked, report)
                wishes = replace(wishes, prover=prover)
            code = DraftRun(ground, judged, wishes).run(findings)
        return _ended(judged, code)


def _require_a_person_for_review(asked: dict[str, Any]) -> None:
    from vlmend.cli.errors import Refused

    person = sys.stdin.isatty() and sys.stderr.isatty()
    if asked["level"] == "review" and not (asked["interactive"] and person):
        raise Refused(
            "--level review: a person must look at each of these",
            hint="at a terminal: --level review -i",
        )
    if asked["interactive"] and not person:
        raise Refused("-i: there is no terminal to ask at")


def _require_verify(asked: dict[str, Any]) -> None:
    given = [n for n in ("python", "torch_index", "yes") if asked[n]]
    if given and not asked["verify"]:
        option = f"--{given[0].replace('_', '-')}"
        raise click.UsageError(f"{option} is for --verify, which is not given")


def _prover(
    ground: Ground, judged: Judged, asked: dict[str, Any], report: Progress
) -> Prover:
    """Return what proves changes of the fork's branch; it may have to be installed."""
    from vlmend.cli.drafts.proving import Prover
    from vlmend.cli.proof.regression import READ_FOR_TESTS
    from vlmend.cli.proof.setting_up import environment_for

    ground.workspace.bring_versions("fork", {ground.commit: READ_FOR_TESTS})
    environment = environment_for(
        judged, asked["python"], asked["torch_index"], asked["yes"], report
    )
    return Prover(
        environment,
        with_test=asked["with_test"],
        on_step=lambda stage: report(stage, 0, None),
    )


def _access(asked: dict[str, Any]) -> Access:
    from vlmend.cli.drafts.ground import Access

    base, borrowed = _from_target(asked["target"], asked["fork"], asked["base"])
    return Access(
        fork=asked["fork"],
        upstream=asked["upstream"],
        base=base,
        api_url=asked["api_url"],
        token_file=asked["token_file"],
        max_wait=asked["max_wait"],
        borrowed=borrowed,
        create_fork=asked["create_fork"],
        sync=asked["sync"],
    )


def _from_target(
    target: str | None, fork: str, base: str | None
) -> tuple[str | None, Path | None]:
    """Return the branch and the clone that a TARGET stands for."""
    from vlmend.cli.errors import UserError
    from vlmend.cli.forge.places import same_repository

    if target is None:
        here = Path.cwd()
        return base, here if (here / "vllm").is_dir() else None
    if Path(target).expanduser().is_dir():
        return base, Path(target).expanduser().resolve()
    name, at, branch = target.partition("@")
    if at and same_repository(name, fork):
        if base not in (None, branch):
            raise UserError(f"{target}: and --base {base}: give one of them")
        return branch, None
    raise UserError(
        f"{target}: drafts are made on the fork's own branch",
        hint="TARGET is a clone of yours, or FORK@BRANCH",
    )


def _wishes(asked: dict[str, Any], access: Access) -> Wishes:
    from vlmend.cli.commits import configured_identity, signing_settings
    from vlmend.cli.drafts.scopes import GroupBy
    from vlmend.cli.drafts.text import template_folders
    from vlmend.cli.drafts.wishes import Wishes
    from vlmend.cli.errors import UserError
    from vlmend.cli.hooks import hooks_of

    hooks = None
    if asked["run_hooks"]:
        if access.borrowed is None:
            raise UserError("--run-hooks: give the clone whose hooks these are: TARGET")
        hooks = hooks_of(access.borrowed)
    identity = None
    if not asked["dry_run"]:
        identity = configured_identity(access.borrowed, person=asked["signoff"])
    return Wishes(
        group_by=GroupBy(asked["group_by"]),
        max_new=asked["max_new"],
        max_open=asked["max_open"],
        dry_run=asked["dry_run"],
        not_duplicate=asked["not_duplicate"],
        reopen=asked["reopen"],
        signoff=asked["signoff"],
        identity=identity,
        signing=signing_settings(access.borrowed),
        hooks=hooks,
        templates=template_folders(asked["templates"]),
    )


def _introduce(ground: Ground) -> None:
    from vlmend.cli.console import printable
    from vlmend.cli.report.words import counted

    behind = ground.behind
    distance = (
        f"{counted(behind, 'commit')} behind {ground.pair.upstream_name}"
        if behind
        else f"up to date with {ground.pair.upstream_name}"
    )
    base = f"{ground.pair.fork_name}@{ground.base}"
    click.echo(printable(f"base {base} at {ground.commit[:12]}, {distance}"))


def _wanted(judged: Judged, asked: dict[str, Any]) -> list[Finding]:
    from vlmend.cli.judge import require_a_match
    from vlmend.cli.select import Level

    selection = replace(
        judged.selection, level=Level(asked["level"]), classes=asked["classes"]
    )
    require_a_match(judged.result, selection)
    found = [f for f in judged.result.findings if selection.writes(f)]
    if not asked["interactive"]:
        return found
    from vlmend.cli.fix import accepted

    return list(accepted(judged, found))


def _ended(judged: Judged, code: int) -> int:
    from vlmend.cli.outcome import exit_code

    trouble = exit_code(judged, findings=False)
    return trouble or code
