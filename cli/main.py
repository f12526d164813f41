"""The ``vlmend`` command: its verbs, and what happens when one of them ends.

A verb is a click command in a module of its own, imported when it is asked for, so that
``vlmend --help`` pays for none of them. A verb returns its exit code.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

import click

from vlmend.cli.errors import EXIT_TROUBLE, UserError
from vlmend.cli.withheld import withhold

EXIT_INTERRUPTED: Final = 130

VERBS: Final = {
    "scan": "List what is wrong, each finding with its proof.",
    "preview": "Show the fixes as a diff; write nothing.",
    "fix": "Write the fixes into a directory.",
    "models": "Show which model class keeps which contract.",
    "draft": "Open draft pull requests inside a fork.",
    "publish": "Bring one draft upstream; a person's act.",
    "status": "Show what became of own drafts and pull requests.",
    "close-fixed": "Close own drafts whose defect is gone.",
    "demo": "Show the whole flow of draft, offline and without a token.",
    "init-action": "Write the workflow that runs vlmend on GitHub.",
    "config": "Check the configuration of a tree.",
    "explain": "Tell the whole story of a codemod, a class or a finding.",
    "verify": "Prove the fixes at run time, on a CPU and without weights.",
    "history": "Show when each finding came, when it went, and how long it lived.",
}
"""Verb to one-line help: enough for ``vlmend --help`` without importing the verb."""


class VerbGroup(click.Group):
    """A group that imports a verb's module when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS:
            return None
        module = cmd_name.replace("-", "_")
        command = import_module(f"vlmend.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        with _our_endings():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _our_endings():
            return super().invoke(ctx)


@contextmanager
def _our_endings() -> Generator[None]:
    """Decide about a closed pipe and Ctrl-C before click does, which ends otherwise.

    A reader that has seen enough, as ``head`` has, is no failure.
    """
    try:
        yield
    except BrokenPipeError:
        _discard_stdout()
        raise click.exceptions.Exit(0) from None
    except KeyboardInterrupt:
        raise click.Abort from None


def _discard_stdout() -> None:
    # What is still buffered has no reader; without this, Python complains at exit.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from vlmend.cli.version import version

        click.echo(f"vlmend {version()}")
        ctx.exit()


@click.group(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.option(
    "--debug", is_flag=True, help="Show a traceback where vlmend would say one line."
)
@click.pass_context
def vlmend(ctx: click.Context, debug: bool) -> None:
    """Find and mend model classes that break vLLM's own contracts.

    vlmend reads a vLLM source tree without running it. It proves which model classes
    miss a line that pipeline parallelism or the config machinery needs, shows the
    proof, and writes the line the way a maintainer would.

    \b
    TARGET is one of
      DIRECTORY       a vLLM checkout, or a plugin package (default: .)
      DIRECTORY@REV   a git revision of a local repository
      vllm==X         a release, fetched once and cached
      OWNER/REPO@REF  a commit of a repository on GitHub

    \b
    Examples
      vlmend scan vllm==0.21.0            what is wrong, and the proof
      vlmend preview vllm==0.21.0         the fixes as a diff
      vlmend preview . | git apply        apply that diff by hand
      vlmend fix . -i                     write the fixes, asking for each
      vlmend models . --against vllm==0.21.0
                                          every class by contract, and what changed
      vlmend config check .               whether the configuration is sound
      vlmend explain Cohere2VisionForConditionalGeneration vllm==0.21.0
                                          the whole chain, as told to a reviewer
      vlmend verify vllm==0.21.0          run the tree with and without the fixes
      vlmend history --releases 'vllm>=0.20'   when each finding came and went
      vlmend demo                         the whole draft flow, offline
      vlmend draft --fork me/vllm --dry-run    what would become a draft there
      vlmend status --fork me/vllm        how one's drafts fare
      vlmend close-fixed --fork me/vllm   close those that upstream has mended
      vlmend publish me/vllm#12           bring one draft upstream, as a person
      vlmend init-action                  all of that every night, on GitHub

    \b
    Exit codes
      0 nothing wrong   1 findings   2 wrong call, or a file that could not be judged
      3 refused on purpose   130 interrupted
    """  # noqa: D301 - click wants the character
    del debug  # main() reads it from the arguments, even where parsing fails
    from vlmend.cli.console import colour_choice

    ctx.color = colour_choice()


def main(arguments: Sequence[str] | None = None, *, world: object = None) -> int:
    """Run ``vlmend`` and return its exit code; only --debug shows tracebacks.

    Args:
        arguments: the words of the command line.
        world: another :class:`~vlmend.cli.world.World` than the real one.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _make_streams_robust()
    withhold()
    try:
        code = vlmend.main(
            arguments, prog_name="vlmend", standalone_mode=False, obj=world
        )
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BaseException as error:  # noqa: BLE001 - _end() decides what each one means
        if "--debug" in arguments:
            from traceback import print_exc

            print_exc()
        return _end(error)
    return code if isinstance(code, int) else 0


def _end(error: BaseException) -> int:
    """Say in one line how the run came to its end; return the exit code for that."""
    from vlmend.cli.console import complain

    if isinstance(error, KeyboardInterrupt | click.Abort):
        if sys.stderr.isatty():
            click.echo(err=True)  # the terminal has drawn ^C on this line
        complain("interrupted")
        return EXIT_INTERRUPTED
    if isinstance(error, UserError):
        complain(error.message, hint=error.hint)
        return error.exit_code
    if not isinstance(error, Exception):
        raise error
    if isinstance(error, OSError):
        _discard_stdout()  # it may be what could not be written to
        place = f"{error.filename}: " if error.filename else ""
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "make room, or set VLMEND_CACHE_DIR and TMPDIR to another disk"
        complain(f"{place}{error.strerror or error}", hint=hint if full else None)
        return EXIT_TROUBLE
    # The last resort: a defect of vlmend still ends in one line.
    complain(
        f"internal error: {type(error).__name__}: {' '.join(str(error).split())}",
        hint="`vlmend --debug ...` shows the traceback; please report it",
    )
    return EXIT_TROUBLE


def _make_streams_robust() -> None:
    # A stream that cannot carry a character gets an escape, not a UnicodeEncodeError.
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
