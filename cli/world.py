"""What a run takes from the world besides files and the network: time, and patience."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

import click


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The clock on the wall."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class World:
    """Time and patience of a run; tests hand in others.

    Attributes:
        clock: what every wait goes through.
        answer_seconds: how long one HTTP answer may take.
    """

    clock: Clock = field(default_factory=SystemClock)
    answer_seconds: int = 30


def current_world() -> World:
    """Return the world that the running command was given, or the real one."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(World)
    return found or World()
