"""Which repositories are meant, after all redirects, and what the token may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vlmend.cli.console import note
from vlmend.cli.errors import Refused, UserError
from vlmend.cli.forge.calls import ForgeError
from vlmend.cli.forge.client import Forge
from vlmend.cli.forge.consent import ForkConsent
from vlmend.cli.forge.places import same_repository
from vlmend.cli.forge.token import Token

if TYPE_CHECKING:
    from github.Repository import Repository

_FORK_PAUSES: Final = (2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 60.0)
"""Waits until a new fork can be read: seconds to minutes."""


@dataclass(frozen=True)
class Pair:
    """A fork and its upstream, both as the server knows them.

    Attributes:
        consent: what allows pull requests inside the fork; it cannot be had for
            anything else.
    """

    fork: Repository
    upstream: Repository
    consent: ForkConsent

    @property
    def fork_name(self) -> str:
        return str(self.fork.full_name)

    @property
    def upstream_name(self) -> str:
        return str(self.upstream.full_name)

    @property
    def owner(self) -> str:
        return str(self.fork.owner.login)


def get_repository(forge: Forge, name: str) -> Repository:
    """Return what the server says about a repository; redirects are followed.

    Raises:
        ForgeError: there is no such repository.
    """
    found = forge.calls.read(f"look up {name}", lambda: forge.github.get_repo(name))
    if not same_repository(found.full_name, name):
        note(f"{name} is now called {found.full_name}")
    return found


def resolve_pair(forge: Forge, fork: str, upstream: str, *, create: bool) -> Pair:
    """Look both up and refuse what is not a fork of the upstream.

    Args:
        forge: the connection.
        fork: ``owner/name``.
        upstream: ``owner/name``.
        create: make the fork if there is none.

    Raises:
        Refused: the gate holds: not a fork of the upstream.
        UserError: a repository does not exist, or rights are missing.
    """
    if same_repository(fork, upstream):
        raise Refused(f"{fork}: is the upstream itself; drafts go to a fork")
    above = get_repository(forge, upstream)
    try:
        found = get_repository(forge, fork)
    except ForgeError as error:
        if error.status != 404:
            raise
        if not create:
            raise UserError(
                f"{fork}: no such repository, or the token cannot see it",
                hint="--create-fork makes it",
            ) from None
        found = _create(forge, above, fork)
    return Pair(found, above, ForkConsent(found, above))


def _create(forge: Forge, upstream: Repository, fork: str) -> Repository:
    owner, _, name = fork.partition("/")
    if name.casefold() != str(upstream.name).casefold():
        raise UserError(
            f"--create-fork: a fork keeps its name: {owner}/{upstream.name}"
        )
    login = forge.calls.read(
        "ask who the token is", lambda: forge.github.get_user().login
    )

    def act() -> Repository:
        if same_repository(login, owner):
            return upstream.create_fork()
        return upstream.create_fork(organization=owner)

    def landed() -> Repository | None:
        try:
            return get_repository(forge, fork)
        except ForgeError:
            return None

    made = forge.calls.write(f"fork {upstream.full_name}", act, landed)
    note(f"created the fork {made.full_name}")
    return get_repository(forge, str(made.full_name))


def wait_until_readable(forge: Forge, fork: str, readable: Callable[[], bool]) -> None:
    """Wait, with a bound, until git can read a fork.

    Args:
        forge: the connection.
        fork: its name, for messages.
        readable: says whether git got an answer.

    Raises:
        UserError: it takes too long.
    """
    if not forge.calls.poll(readable, _FORK_PAUSES):
        raise UserError(
            f"{fork}: is still being made; GitHub takes up to some minutes",
            hint="run the same command again; it goes on where it stopped",
        )


def require_rights(pair: Pair, token: Token) -> None:
    """Name what the token lacks before any work is done.

    What GitHub says of a repository's permissions means nothing for an app's token,
    such as that of Actions: all of them are false there. Such a token is tried out by
    :func:`~vlmend.cli.commits.require_push`.

    Raises:
        UserError: the token cannot push to the fork, or the fork is read-only.
    """
    name = pair.fork_name
    if pair.fork.archived:
        raise UserError(f"{name}: is archived, nothing can be pushed")
    # Set from a header of the last answer; fine-grained tokens have none.
    held: list[str] | None = pair.fork.requester.oauth_scopes
    scopes = [scope for scope in held or () if scope]
    if scopes and not {"repo", "public_repo"} & set(scopes):
        raise UserError(
            f"the token has the scopes {', '.join(scopes)}; 'public_repo' (or 'repo')"
            f" is missing for {name}"
        )
    permissions = pair.fork.permissions
    if not permissions.push and not token.is_installation:
        raise UserError(
            f"{name}: the token may not push there",
            hint="it needs 'Contents' and 'Pull requests', both read and write",
        )
