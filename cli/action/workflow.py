"""The workflow that a repository commits: written, recognised, and compared."""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from vlmend.cli.errors import UserError

PLACE: Final = ".github/workflows/vlmend.yml"

PINS: Final = {
    "checkout": (
        "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1",
        "v7.0.1",
    ),
    "upload_artifact": (
        "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f",
        "v7.0.0",
    ),
    "upload_sarif": (
        "github/codeql-action/upload-sarif@8aad20d150bbac5944a9f9d289da16a4b0d87c1e",
        "v4.36.2",
    ),
}
"""The other actions, by commit id; the version is for people, and for update bots."""

_CRON: Final = re.compile(r"[-0-9*/,]+(?: [-0-9*/,A-Za-z]+){4}")
_HEAD: Final = re.compile(
    r"# (?P<command>vlmend init-action .*)\n# digest (?P<digest>[0-9a-f]{16})[^\n]*\n"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a workflow is made from.

    Attributes:
        mode: ``report``, ``draft`` or ``guard``.
        repository: ``owner/name`` that it runs in, and nowhere else.
        action: vlmend's own action, as ``owner/name@commit``.
        schedule: when, in cron's words; empty for ``guard``.
        upstream: what the fork is a fork of; empty unless ``draft``.
    """

    mode: str
    repository: str
    action: str
    schedule: str = ""
    upstream: str = ""

    @property
    def command(self) -> str:
        """What writes this workflow again."""
        words = ["--mode", self.mode, "--repository", self.repository]
        words += ["--action", self.action]
        words += ["--schedule", self.schedule] if self.schedule else []
        words += ["--upstream", self.upstream] if self.upstream else []
        return shlex.join(["vlmend", "init-action", *words])


def render(wanted: Wanted) -> str:
    """Return the text of a workflow, its own command and digest on top."""
    from jinja2 import Environment, StrictUndefined

    # Not HTML, and every value was checked for its form; GitHub's own expressions look
    # like Jinja's, so other signs are used.
    environment = Environment(  # noqa: S701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    source = files("vlmend.templates").joinpath("workflows/vlmend.yml.j2")
    template = environment.from_string(source.read_text("utf-8"))
    pins = {name: f"{pin} # {version}" for name, (pin, version) in PINS.items()}
    body = template.render(
        mode=wanted.mode,
        repository=wanted.repository,
        action=wanted.action,
        schedule=wanted.schedule,
        upstream=wanted.upstream,
        **pins,
    )
    return (
        f"# {wanted.command}\n"
        f"# digest {_digest(body)}: tells vlmend whether this file was edited\n{body}"
    )


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Existing:
    """A workflow that is there.

    Attributes:
        text: all of it.
        edited: it is not as vlmend wrote it; so is a file that vlmend never wrote.
        words: the options that it was written with.
    """

    text: str
    edited: bool
    words: tuple[str, ...] = ()


def read_existing(text: str) -> Existing:
    """Tell a workflow that vlmend wrote from one that a person wrote, or changed."""
    found = _HEAD.match(text)
    if found is None:
        return Existing(text, edited=True)
    body = text[found.end() :]
    try:
        words = tuple(shlex.split(found["command"])[2:])
    except ValueError:
        return Existing(text, edited=True)
    return Existing(text, _digest(body) != found["digest"], words)


def checked_schedule(text: str) -> str:
    """Return a schedule if it has cron's form.

    Raises:
        UserError: it has not.
    """
    if _CRON.fullmatch(text) is None:
        raise UserError(
            f"--schedule {text}: not five fields of cron",
            hint="for every night: --schedule '17 3 * * *' (UTC)",
        )
    return text


def usual_schedule(repository: str) -> str:
    """Return a time of the night that differs from repository to repository.

    At full hours GitHub starts schedules late, or drops them.
    """
    number = int.from_bytes(hashlib.sha256(repository.casefold().encode()).digest()[:4])
    return f"{3 + number % 54} {1 + number // 54 % 5} * * *"
