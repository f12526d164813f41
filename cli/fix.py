"""``vlmend fix``: write the fixes into a directory."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from vlmend.cli import options

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged
    from vlmend.codemods.codemod import Finding
    from vlmend.codemods.engine import FilePatch


@click.command("fix")
@options.judging
@options.narrowing
@options.levelled
@options.guarding
@click.option(
    "-i", "--interactive", is_flag=True, help="Show each fix and ask about it."
)
@click.option(
    "--allow-dirty",
    is_flag=True,
    help="Also write files that have uncommitted changes.",
)
def command(
    target: str,
    vllm: str | None,
    codemods: tuple[str, ...],
    classes: tuple[str, ...],
    excluded: tuple[str, ...],
    level: str,
    changed: bool,
    base: str | None,
    baseline: Path | None,
    interactive: bool,
    allow_dirty: bool,
) -> int:
    """Write the fixes into TARGET, which must be a directory.

    Each file is replaced in one step or not at all. A file with uncommitted changes is
    left alone, and the command exits with 3; the other files are written. Exits with 0
    when all that was asked for is written, with 1 when some of it is not.

    \b
    Examples
      vlmend fix                               write what is proven
      vlmend fix . -i --level review           decide about each, uncertain ones too
      vlmend fix . --class 'Cohere2*'          only some classes
      vlmend fix . --changed --allow-dirty     what the uncommitted changes bring in
    """  # noqa: D301 - click wants the character
    from vlmend.cli.guard import guard
    from vlmend.cli.judge import Request, judging
    from vlmend.cli.select import Level, Selection

    options.require_changed(changed, base)
    selection = Selection(Level(level), classes=classes, excluded=excluded)
    request = Request(target, vllm, codemods, write=True, changed=changed, base=base)
    with judging(request, selection) as judged:
        guarded = guard(judged, baseline)
        selection = guarded.selection
        wanted = [f for f in judged.result.findings if selection.writes(f)]
        if interactive:
            wanted = list(accepted(judged, wanted))
        return _write(judged, wanted, allow_dirty)


def accepted(judged: Judged, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Show each finding with its diff and yield those that the person wants."""
    from vlmend.cli.console import width
    from vlmend.cli.report import diff, text

    everything = False
    for number, finding in enumerate(findings, start=1):
        if everything:
            yield finding
            continue
        click.echo(f"\n[{number}/{len(findings)}]", err=True)
        for line in text.block(finding, width()):
            click.echo(line, err=True)
        click.echo("", err=True)
        for line in (judged.diff(finding) or "").splitlines():
            click.echo(diff.painted(line), err=True)
        answer = _ask()
        if answer == "quit":
            return
        everything = answer == "all"
        if answer in ("yes", "all"):
            yield finding


def _ask() -> str:
    from vlmend.cli.errors import UserError

    while True:
        click.echo(
            "Write this change? [y]es, [n]o, [a]ll that follow, [q]uit asking: ",
            nl=False,
            err=True,
        )
        typed = sys.stdin.readline()
        if not typed:
            click.echo(err=True)
            raise UserError("no answer; nothing was written")
        for answer in ("yes", "no", "all", "quit"):
            if typed.strip() and answer.startswith(typed.strip().lower()):
                return answer


def _write(judged: Judged, findings: Sequence[Finding], allow_dirty: bool) -> int:
    """Write the patches, then say what was written and what was not."""
    from vlmend.cli.console import complain, note
    from vlmend.cli.errors import EXIT_REFUSED, UserError
    from vlmend.cli.files import replace_file, uncommitted
    from vlmend.cli.outcome import EXIT_FINDINGS, exit_code

    root = judged.target.root
    assert root is not None, "a directory target has a root"
    patches = judged.patches(findings)
    dirty = frozenset() if allow_dirty else uncommitted(root, [p.file for p in patches])
    written: list[FilePatch] = []
    failed: list[UserError] = []
    with _terminate_like_interrupt():
        try:
            for patch in patches:
                if patch.file in dirty:
                    continue
                try:
                    replace_file(root / patch.file, patch.before, patch.after)
                except UserError as error:
                    failed.append(error)
                else:
                    written.append(patch)
        except KeyboardInterrupt:
            note(f"{len(written)} of {len(patches)} files were written before this:")
            raise
    # Said only now: a reader who has gone must not keep a file from being written.
    for failure in failed:
        complain(failure.message)
    for file in sorted(dirty):
        complain(f"{file}: has uncommitted changes; left alone")
    if dirty:
        note("        commit or stash them first, or use --allow-dirty")
    _print_summary(judged, written, left=len(patches) - len(written))
    trouble = exit_code(judged, findings=False)
    if dirty:
        return EXIT_REFUSED
    return EXIT_FINDINGS if failed or judged.failures else trouble


def _print_summary(judged: Judged, written: Sequence[FilePatch], left: int) -> None:
    from vlmend.cli.console import printable
    from vlmend.cli.report.words import counted, strong

    for patch in written:
        click.echo(f"{strong(printable(patch.file))}")
        for finding in patch.findings:
            click.echo(f"  {printable(finding.class_name)}: {finding.codemod}")
    rest = f", {counted(left, 'file')} left as it was" if left == 1 else ""
    if left > 1:
        rest = f", {left} files left as they were"
    click.echo(f"{counted(len(written), 'file')} written{rest}.")
    if not written and not left:
        blocked = sum(f.status == "blocked" for f in judged.result.findings)
        if blocked:
            click.echo(
                f"{blocked} blocked: vlmend cannot mend these, see `vlmend scan`."
            )


@contextmanager
def _terminate_like_interrupt() -> Generator[None]:
    """While files are written, let SIGTERM clean up the way Ctrl-C does."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
