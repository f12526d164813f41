"""The job's side: what it was started by, and how it is told what came of the step.

The forms are those of GitHub's runner: commands on standard output, files for outputs
and for the summary.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from base64 import b64encode
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vlmend.cli.console import printable
from vlmend.cli.errors import UserError
from vlmend.cli.report.github import command

SUMMARY_BYTES: Final = 1024 * 1024
"""GitHub drops the whole summary of a step that is longer."""


@dataclass(frozen=True, slots=True)
class Job:
    """The run that the step is part of.

    Attributes:
        event: what started it.
        payload: what GitHub tells of that.
        repository: ``owner/name`` that it runs in.
        workspace: where checkouts are.
        scratch: a folder that lasts as long as the job.
    """

    event: str
    payload: Mapping[str, Any]
    repository: str
    workspace: Path
    scratch: Path

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Job:
        """Return the job that these variables describe.

        Raises:
            UserError: they are not those of a job.
        """
        named = ("GITHUB_EVENT_NAME", "GITHUB_REPOSITORY", "GITHUB_WORKSPACE")
        missing = [n for n in (*named, "RUNNER_TEMP") if not variables.get(n)]
        if missing:
            raise UserError(
                f"not a job of GitHub Actions: {', '.join(missing)} not set",
                hint="elsewhere, use the verbs: vlmend scan, vlmend draft",
            )
        event, repository, workspace = (variables[name] for name in named)
        return cls(
            event=event,
            payload=_payload(variables.get("GITHUB_EVENT_PATH", "")),
            repository=repository,
            workspace=Path(workspace),
            scratch=Path(variables["RUNNER_TEMP"]),
        )


def _payload(place: str) -> Mapping[str, Any]:
    if not place:
        return {}
    try:
        found = json.loads(Path(place).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{place}: the event cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


class Runner:
    """Tells the job what came of the step."""

    def mask(self, token: str) -> None:
        """Have the runner blot the token out of every log line from here on.

        This command is the one place where it is spelled out; the runner shows it
        masked. Sent along with git, it looks otherwise; that form is masked, too.
        """
        if not token:
            return
        basic = b64encode(f"x-access-token:{token}".encode()).decode()
        for form in (token, basic):
            _say(f"::add-mask::{form}")

    def error(self, message: str, hint: str | None = None) -> None:
        """Annotate the run with one failure and its remedy."""
        self.annotate("error", message, hint)

    def annotate(self, level: str, message: str, hint: str | None = None) -> None:
        """Annotate the run.

        Args:
            level: ``error``, ``warning`` or ``notice``.
            message: what is so.
            hint: what to do about it.
        """
        told = f"{message}. What to do: {hint}" if hint else message
        _say(command(level, told, title="vlmend"))

    def say(self, lines: Iterable[str]) -> None:
        """Print lines that are commands, or may be."""
        for line in lines:
            _say(line)

    @contextmanager
    def commands_stopped(self) -> Generator[None]:
        """Let nothing that is printed be taken for a command.

        What a run prints names classes and branches, and those are not ours.
        """
        end = secrets.token_hex(16)
        _say(f"::stop-commands::{end}")
        try:
            yield
        finally:
            sys.stderr.flush()
            _say(f"::{end}::")

    def outputs(self, values: Mapping[str, str]) -> None:
        """Set outputs of the step; a value cannot end its own block."""
        parts: list[str] = []
        for name, value in values.items():
            end = f"vlmend-{secrets.token_hex(16)}"
            parts.append(f"{name}<<{end}\n{value}\n{end}\n")
        _append("GITHUB_OUTPUT", "".join(parts))

    def summary(self, text: str) -> None:
        """Add to the summary of the job."""
        _append("GITHUB_STEP_SUMMARY", text)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _append(variable: str, text: str) -> None:
    place = os.environ.get(variable)
    if not place:
        sys.stdout.write(f"{variable} is not set; left out:\n{printable(text)}")
        return
    with Path(place).open("a", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
