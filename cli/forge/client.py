"""The connection to a forge: one token, one server, one way to call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.cli.forge.calls import Calls
from vlmend.cli.forge.places import Server
from vlmend.cli.forge.token import Token
from vlmend.cli.world import World

if TYPE_CHECKING:
    from github import Github


@dataclass(frozen=True)
class Forge:
    """Everything that a call needs.

    Attributes:
        server: where.
        token: as whom.
        calls: how patiently.
        github: PyGithub's client.
    """

    server: Server
    token: Token
    calls: Calls
    github: Github
    world: World


def connect(server: Server, token: Token, world: World, max_wait: float) -> Forge:
    """Return a connection; nothing is sent yet."""
    from github import Auth, Github

    github = Github(
        base_url=server.api,
        auth=Auth.Token(token.reveal()),
        timeout=world.answer_seconds,
        user_agent="vlmend",
        per_page=100,
        # Waits and retries are the business of Calls, which shows them.
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
    )
    return Forge(server, token, Calls(world, max_wait, token.masked), github, world)
