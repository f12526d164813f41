"""Which statements run, given the conditions that they stand under."""

from __future__ import annotations

from collections.abc import Sequence

from vlmend.codemods.analysis.values import Guard


def covers(guards: Sequence[tuple[Guard, ...]]) -> bool:
    """Say whether statements under these conditions run on every path.

    They do where one of them stands under none, or where a condition splits the rest
    into two halves that both do.
    """
    if any(not one for one in guards):
        return True
    for condition in dict.fromkeys(g for one in guards for g in one if g.positive):
        opposite = condition._replace(positive=False)
        if not any(opposite in one for one in guards):
            continue
        halves = [
            [
                tuple(g for g in one if g != held)
                for one in guards
                if _other(held) not in one
            ]
            for held in (condition, opposite)
        ]
        if all(covers(half) for half in halves):
            return True
    return False


def _other(guard: Guard) -> Guard:
    return guard._replace(positive=not guard.positive)
