"""Who allowed a pull request to be opened, and where.

There are two kinds of consent. One is for the inside of a fork, and cannot be made for
anything that is not a fork. The other is for one named repository, and only a person at
a terminal can give it: :meth:`PersonalConsent.ask` is the only way to get one.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, final

import click

from vlmend.cli.console import printable
from vlmend.cli.errors import Refused
from vlmend.cli.forge.places import same_repository

if TYPE_CHECKING:
    from github.Repository import Repository

_MADE_HERE: Final = object()
CI_VARIABLES: Final = ("CI", "GITHUB_ACTIONS", "BUILD_NUMBER", "TF_BUILD")


@final
class ForkConsent:
    """Allows pull requests inside one repository that was shown to be a fork."""

    __slots__ = ("_repository_id",)

    def __init__(self, fork: Repository, upstream: Repository) -> None:
        require_fork(fork, upstream)
        self._repository_id = fork.id

    def permits(self, receiver: Repository) -> bool:
        """Say whether a pull request may be opened in this repository."""
        return bool(receiver.id == self._repository_id)


@final
class PersonalConsent:
    """Allows one pull request in one repository; given by a person, at a terminal."""

    __slots__ = ("_repository_id",)

    def __init__(self, repository_id: int, key: object) -> None:
        if key is not _MADE_HERE:
            raise TypeError("a person's consent is asked for, not made")
        self._repository_id = repository_id

    def permits(self, receiver: Repository) -> bool:
        """Say whether a pull request may be opened in this repository."""
        return bool(receiver.id == self._repository_id)

    @classmethod
    def ask(cls, receiver: Repository) -> PersonalConsent:
        """Let the person at the terminal type the name of the receiving repository.

        Raises:
            Refused: there is no person, or the person does not agree.
        """
        require_person()
        name = str(receiver.full_name)
        click.echo(
            f"\nA draft pull request will be opened in {printable(name)}, in your name."
            f"\nType {printable(name)} to agree, anything else to stop: ",
            nl=False,
            err=True,
        )
        typed = sys.stdin.readline().strip()
        if not same_repository(typed, name):
            raise Refused(f"nothing was opened in {name}: you did not agree")
        return cls(receiver.id, _MADE_HERE)


def require_person() -> None:
    """Refuse unless a person sits at a terminal.

    Raises:
        Refused: nobody is there to ask.
    """
    if any(os.environ.get(name) for name in CI_VARIABLES):
        raise Refused(
            "publish is a person's act: not in CI",
            hint="run it on your own machine, at a terminal",
        )
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            "publish is a person's act: there is no terminal to ask at",
            hint="run it at a terminal, without pipes",
        )


def require_fork(fork: Repository, upstream: Repository) -> None:
    """Refuse a repository that is not a fork of ``upstream``, whatever the token may.

    Both are what the server says they are after all redirects.

    Raises:
        Refused: it is the upstream itself, no fork, or a fork of something else.
    """
    if fork.id == upstream.id or same_repository(fork.full_name, upstream.full_name):
        raise Refused(
            f"{fork.full_name}: is the upstream itself; drafts go to a fork",
            hint="vlmend publish brings one upstream, by a person",
        )
    if not fork.fork:
        raise Refused(f"{fork.full_name}: is not a fork of {upstream.full_name}")
    source = fork.source
    root = upstream.source.id if upstream.fork and upstream.source else upstream.id
    if source is None or source.id not in (upstream.id, root):
        named = "something else" if source is None else source.full_name
        raise Refused(
            f"{fork.full_name}: is a fork of {named}, not of {upstream.full_name}"
        )


Consent = ForkConsent | PersonalConsent
