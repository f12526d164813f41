"""``python -m vlmend.cli.action``: one step of a job."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from vlmend.cli.action.inputs import Inputs, Mode, read_inputs, take_token
from vlmend.cli.action.runner import Job, Runner
from vlmend.cli.errors import EXIT_TROUBLE, UserError

if TYPE_CHECKING:
    from vlmend.cli.action.results import Results

EXIT_INTERRUPTED: Final = 130


def main() -> int:
    """Run the step; return its exit code, 0 if it passes.

    What goes wrong for a reason that a person can do something about becomes one
    annotation that names the remedy.
    """
    runner = Runner()
    try:
        # The token leaves the environment first: nothing that starts later inherits it.
        token = take_token(os.environ)
        runner.mask(token)
        inputs = read_inputs(os.environ, token)
        job = Job.from_environment(os.environ)
        inputs.mode.require_event(job.event)
        with runner.commands_stopped():
            results = _carry_out(inputs, job)
        return results.deliver(runner)
    except UserError as error:
        runner.error(error.message, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        runner.error("interrupted", "run the job again; it goes on where it stopped")
        return EXIT_INTERRUPTED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        runner.error(f"{place}{error.strerror or error}")
        return EXIT_TROUBLE
    except Exception as error:  # noqa: BLE001 - a defect of ours ends in one line, too
        if os.environ.get("RUNNER_DEBUG"):
            from traceback import print_exc

            print_exc()
        runner.error(
            f"internal error: {type(error).__name__}: {error}",
            "run the job again with debug logging for a traceback; please report it",
        )
        return EXIT_TROUBLE


def _carry_out(inputs: Inputs, job: Job) -> Results:
    if inputs.mode is Mode.DRAFT:
        from vlmend.cli.action.drafting import draft

        return draft(inputs, job)
    from vlmend.cli.action.scanning import scan

    return scan(inputs, job)


if __name__ == "__main__":
    sys.exit(main())
