"""What a workflow asks for: the inputs of ``action.yml``, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from vlmend.cli.errors import UserError
from vlmend.cli.forge_options import UPSTREAM

_AUTHOR: Final = re.compile(
    r"(?P<name>[^<>\s][^<>\n\r]*?) <(?P<email>[^<>\s@]+@[^<>\s]+)>"
)
_SECRETS: Final = ("INPUT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")


class Mode(StrEnum):
    """What the action does."""

    REPORT = "report"
    DRAFT = "draft"
    GUARD = "guard"

    def require_event(self, event: str) -> None:
        """Refuse a mode that means nothing, or would do harm, for what started the run.

        Raises:
            UserError: the event is none of those that the mode is for.
        """
        wanted = _EVENTS.get(self)
        if wanted is None or event in wanted:
            return
        raise UserError(
            f"mode {self} does not run on the event {event or '(none)'!r}",
            hint=f"in the workflow: `on:` {' or '.join(wanted[:2])}; {_WHY[self]}",
        )


_EVENTS: Final = {
    Mode.DRAFT: ("schedule", "workflow_dispatch", "repository_dispatch", "push"),
    Mode.GUARD: ("pull_request", "merge_group"),
}
"""Started by a pull request, `draft` would write at a stranger's bidding."""
_WHY: Final = {
    Mode.DRAFT: "mode guard is the one for pull requests",
    Mode.GUARD: "mode report needs nothing to compare with",
}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one step.

    Attributes:
        mode: what to do.
        target: what is judged; empty for the checkout, or the fork that the job is in.
        upstream: what the fork is a fork of.
        codemods: ids; empty means all.
        max_new: how many drafts may be opened in this run.
        max_open: how many may be open at all.
        author: name and address for commits; None for the Actions bot.
        token: the secret; empty where there is none.
    """

    mode: Mode
    target: str
    upstream: str
    codemods: tuple[str, ...]
    max_new: int
    max_open: int
    author: tuple[str, str] | None
    token: str = field(repr=False)


def take_token(variables: MutableMapping[str, str]) -> str:
    """Return the token; it, and every other one, is taken out of the variables."""
    secrets = {name: variables.pop(name, "").strip() for name in _SECRETS}
    return secrets["INPUT_TOKEN"]


def read_inputs(variables: Mapping[str, str], token: str) -> Inputs:
    """Return the inputs.

    Raises:
        UserError: one is no use; the message names it.
    """

    def text(name: str, default: str = "") -> str:
        return variables.get(f"INPUT_{name}", "").strip() or default

    mode = _mode(text("MODE", Mode.REPORT))
    if mode is Mode.DRAFT and not token:
        raise UserError(
            "the input 'token' is empty",
            hint="leave it out to use the job's own, or name a secret that exists:"
            " secrets are empty in runs that a fork's pull request starts",
        )
    return Inputs(
        mode=mode,
        target=text("TARGET"),
        upstream=text("UPSTREAM", UPSTREAM),
        codemods=tuple(re.split(r"[\s,]+", text("CODEMODS")))
        if text("CODEMODS")
        else (),
        max_new=_number("max-new", text("MAX_NEW", "2")),
        max_open=_number("max-open", text("MAX_OPEN", "5")),
        author=_author(text("AUTHOR")),
        token=token,
    )


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        from vlmend.cli.judge import nearest

        raise UserError(
            f"the input 'mode' is {text!r}, which is no mode",
            hint=nearest(text, [mode.value for mode in Mode], "modes")
            or f"known modes: {', '.join(Mode)}",
        ) from None


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise UserError(
            f"the input {name!r} is {text!r}", hint="write a number from 0 to 9999"
        )
    return int(text)


def _author(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    found = _AUTHOR.fullmatch(text)
    if found is None:
        raise UserError(
            f"the input 'author' is {text!r}", hint="write it as NAME <ADDRESS>"
        )
    return found["name"], found["email"]
