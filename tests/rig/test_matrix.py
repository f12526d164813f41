"""Every call x every fault, and every step x {kill, rerun}, for every verb that writes.

In every case: at most one open pull request for a branch, no commit lost, the right
exit code, one clear line, the token nowhere, and the next run completes the work. A
rerun that starts from what another case has left, to the byte, is not run twice.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from faults import OK, STOP, TROUBLE, Fault, faults_of, kind_of, only_reads
from scenarios import SCENARIOS, Scenario
from worlds import Ended, World

pytestmark = pytest.mark.rig

WORLDS = 3
"""Cases that run at a time: two keep the processors busy while one waits."""


@pytest.fixture(scope="module")
def worlds(make_world: Any) -> list[World]:
    return [make_world() for _ in range(WORLDS)]


@dataclass
class Case:
    """One way to be disturbed."""

    scenario: Scenario
    world: World
    number: int
    completed: Completed

    def break_call(self, kind: str, fault: Fault) -> None:
        """Run with one kind of call broken, then without."""
        world = self.world
        self.scenario.start(world)
        hits = []

        def broken(request: Any, act: Any) -> Any:
            if kind_of(request) != kind or (hits and not fault.forever):
                return act()
            hits.append(request)
            return fault.answer(act)

        world.fault = broken
        debug = bool(self.number % 2)
        ended = self.scenario.go(world, debug=debug)
        assert hits, f"the call was not made: {world.everything()}"
        assert ended.code in self.scenario.expected(kind, fault), world.everything()
        require_one_clear_line(world, ended, fault, debug=debug)
        self._completed_by_the_next()

    def break_each_once(self, faults: dict[str, Fault]) -> None:
        """Run with every kind of call failing once, each in a way of its own.

        A run gets over all of these, and ends as if nothing had been. Where it does
        not, each is tried alone, so that it is told which one it was.
        """
        world = self.world
        self.scenario.start(world)
        waiting = dict(faults)

        def broken(request: Any, act: Any) -> Any:
            fault = waiting.pop(kind_of(request), None)
            return act() if fault is None else fault.answer(act)

        world.fault = broken
        ended = self.scenario.go(world, wait="2000", debug=bool(self.number % 2))
        try:
            assert not waiting, f"not called: {sorted(waiting)}"
            assert ended.code == OK, world.everything()
            assert "Traceback" not in ended.text, world.everything()
            world.fault = None
            self.scenario.require_done(world)
        except AssertionError:
            for kind, fault in faults.items():
                self.break_call(kind, fault)
            raise
        self._completed_by_the_next()

    def kill_at_exchange(self, number: int, when: str) -> None:
        """Kill the run at one exchange, before or after it was handled; run again."""
        world = self.world
        self.scenario.start(world)
        seen = []

        def killing(request: Any, act: Any) -> Any:
            seen.append(request)
            if len(seen) != number:
                return act()
            response = act() if when == "after" else None
            world.kill()
            return response

        world.fault = killing
        ended = self.scenario.go(world)
        assert ended.code < 0, world.everything()
        self._completed_by_the_next()

    def kill_at_child(self, number: int) -> None:
        """Kill the run before one of its git commands; run again."""
        self.scenario.start(self.world)
        ended = self.scenario.go(self.world, kill_at=number)
        assert ended.code < 0, self.world.everything()
        self._completed_by_the_next()

    def _completed_by_the_next(self) -> None:
        world = self.world
        world.fault = None
        self.scenario.require_sane(world)
        if self.completed.is_known(state_of(world)):
            return
        again = self.scenario.go(world)
        assert again.code == 0, world.everything()
        self.scenario.require_done(world)
        assert "Traceback" not in again.text


@dataclass
class Completed:
    """The states from which a rerun was seen to complete the work."""

    _known: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_known(self, state: str) -> bool:
        with self._lock:
            known = state in self._known
            self._known.add(state)
            return known

    def __len__(self) -> int:
        return len(self._known)


def state_of(world: World) -> str:
    """Return a digest of all that a rerun can see: the forge, and the cached clones."""
    forge, found = world.forge, hashlib.sha256()
    for repository in forge.repositories.values():
        held = [repository.full_name, repository.not_ready, repository.pulls]
        found.update(repr(held).encode())
    tops = [world.place / "cache" / "clones"]
    tops += [r.folder for r in forge.repositories.values()]
    for top in tops:
        for folder, below, names in os.walk(top):
            below.sort()
            for name in sorted(names):
                place = Path(folder, name)
                found.update(str(place.relative_to(world.place)).encode())
                # An object's name says what is in it.
                if "objects" not in folder or name == "alternates":
                    told = place.read_bytes()
                    told = told.replace(os.fsencode(world.place), b"PLACE")
                    found.update(told.replace(world.rig.web.encode(), b"WEB"))
    return found.hexdigest()


def require_one_clear_line(
    world: World, ended: Ended, fault: Fault, *, debug: bool
) -> None:
    assert debug or "Traceback" not in ended.text, world.everything()
    assert "internal error" not in ended.text, world.everything()
    # At a terminal it may follow a question that was answered beforehand.
    told = re.findall(r"(?:^|[:\]] )vlmend: .+", ended.err, re.MULTILINE)
    if ended.code == TROUBLE:
        failed = [x for x in ended.out.splitlines() if x.startswith("failed ")]
        assert len(told) + bool(failed) >= 1, world.everything()
        assert len(told) <= 1, world.everything()
    if ended.code == STOP:
        assert len(told) == 1, world.everything()
        if "for ever" in fault.name and fault.name.startswith("429"):
            assert "--max-wait" in ended.err, world.everything()


def cases_of(world: World, scenario: Scenario) -> tuple[str, list[Any]]:
    """Return what a whole run does, in words, and every way to disturb it."""
    scenario.start(world)
    ended = scenario.go(world)
    assert ended.code == 0, world.everything()
    scenario.require_done(world)
    kinds = list(dict.fromkeys(kind_of(q) for q, _ in world.exchanges))
    exchanges = [q for q, _ in world.exchanges]
    children = len((world.place / "children").read_text().splitlines())
    pairs = [
        (kind, fault)
        for kind in kinds
        for fault in faults_of(kind)
        # A call that only reads leaves the same behind, whenever it is cut.
        if not (kind.startswith("GET ") and fault.name == "dropped after the write")
    ]
    passing = [pair for pair in pairs if scenario.expected(*pair) == (OK,)]
    passing = [(kind, fault) for kind, fault in passing if not fault.forever]
    broken: list[Any] = [
        (f"{kind} x {fault.name}", Case.break_call, (kind, fault))
        for kind, fault in pairs
        if (kind, fault) not in passing
    ]
    broken += [
        (f"all at once, {n}", Case.break_each_once, (together,))
        for n, together in enumerate(_put_together(passing))
    ]
    killed = [
        (f"exchange {n} killed {when}", Case.kill_at_exchange, (n, when))
        for n, request in enumerate(exchanges, start=1)
        for when in (("after",) if only_reads(request) else ("before", "after"))
    ]
    killed += [
        (f"child {n} killed", Case.kill_at_child, (n,)) for n in range(1, children + 1)
    ]
    told = (
        f"{scenario.name}: {len(kinds)} kinds of calls, {len(pairs)} faults;"
        f" {len(exchanges)} exchanges and {children} children, {len(killed)} kills;"
        f" {len(pairs) + len(killed)} cases in {len(broken) + len(killed)} runs"
    )
    return told, broken + killed


def _put_together(pairs: list[tuple[str, Fault]]) -> list[dict[str, Fault]]:
    """Spread pairs over as few runs as there are faults for one kind of call.

    In one run no kind stands twice, and neighbouring kinds fail in different ways.
    """
    by_kind: dict[str, list[Fault]] = {}
    for kind, fault in pairs:
        by_kind.setdefault(kind, []).append(fault)
    runs: list[dict[str, Fault]] = [
        {} for _ in range(max(map(len, by_kind.values()), default=0))
    ]
    for at, (kind, faults) in enumerate(by_kind.items()):
        for number, fault in enumerate(faults):
            runs[(at + number) % len(runs)][kind] = fault
    return runs


@pytest.mark.parametrize("make", SCENARIOS, ids=[s.name for s in SCENARIOS])
def test_every_call_and_every_step(
    make: Any, worlds: list[World], record_property: Callable[[str, object], None]
) -> None:
    begun = time.monotonic()
    prepared = []
    for world in worlds:
        scenario = make()
        scenario.prepare(world)
        prepared.append((world, scenario))
    told, cases = cases_of(*prepared[0])
    waiting = list(enumerate(cases))
    completed = Completed()
    problems: list[str] = []

    def work(world: World, scenario: Scenario) -> None:
        while waiting:
            number, (name, disturb, words) = waiting.pop(0)
            try:
                disturb(Case(scenario, world, number, completed), *words)
                leaks = list(world.leaks())
                assert leaks == [], leaks
                world.drop()
            except Exception as error:  # noqa: BLE001 - every case is told, not only the first
                problems.append(f"{name}: {error}")

    with ThreadPoolExecutor(len(prepared)) as pool:
        for done in [pool.submit(work, *pair) for pair in prepared]:
            done.result()
    spent = time.monotonic() - begun
    record_property("cases", f"{told}, {len(completed)} to complete, in {spent:.0f} s")
    assert not problems, f"{len(problems)} of {len(cases)}\n\n" + "\n\n".join(problems)
