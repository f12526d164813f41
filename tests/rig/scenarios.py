"""What each verb that talks to a forge has to do in the matrix, and what must hold."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

from faults import OK, STOP, TROUBLE, Fault
from worlds import FORK, UPSTREAM, Ended, World

from vlmend.cli.rig.model import Check, Forge, run_git
from vlmend.cli.rig.sample import MODELS, commit_files, registry, wrapper

FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"
OTHER = "vlmend/delegate-intermediate-tensors/altair"
VEGA = "VegaVisionForConditionalGeneration"
PLACES = ("--fork", FORK, "--upstream", UPSTREAM)
LABELS = {"vlmend", "delegate-intermediate-tensors"}
SEARCHES = ("GET /search/issues", "GET /repos/them/vllm/pulls?")
UPSTREAMS_GIT = "/them/vllm.git/"


class Scenario:
    """One verb with everything to do.

    Attributes:
        seed: what the forge holds at the start of every case.
        warm: the cache that every case starts from.
    """

    name: str
    seed: Forge
    warm: Path | None = None

    def prepare(self, world: World) -> None:
        """Make the seed."""
        world.fresh()
        self.set_up(world)
        self.keep(world)

    def set_up(self, world: World) -> None:
        raise NotImplementedError

    def keep(self, world: World) -> None:
        """Let every case start from what the world is now."""
        self.seed = copy.deepcopy(world.forge)
        # What the clone has fetched so far is where every case starts from.
        self.warm = world.place / "cache"

    def start(self, world: World) -> None:
        world.fresh(self.seed, warm=self.warm or False)

    def go(self, world: World, wait: str = "100", **more: Any) -> Ended:
        raise NotImplementedError

    def require_sane(self, world: World) -> None:
        """Check what holds after any run, however it ended."""
        if world.forge.find(FORK) is None:
            return
        heads = Counter(world.open_heads())
        assert all(count == 1 for count in heads.values()), heads
        for branch in (FAMILY, SINGLES, OTHER):
            head = world.fork.head(branch)
            if head is not None:
                run_git(world.fork.folder, "cat-file", "-e", f"{head}^{{tree}}")
        main = run_git(world.fork.folder, "rev-parse", "main")
        known = run_git(world.upstream.folder, "rev-list", "main")
        assert main in known.split() or self.own_main(world) == main

    def own_main(self, world: World) -> str:
        """Return where the fork's main is if it has commits of its own."""
        return ""

    def require_done(self, world: World) -> None:
        """Check what one complete run leaves behind."""
        raise NotImplementedError

    def expected(self, kind: str, fault: Fault) -> tuple[int, ...]:
        """Return the exit codes that are right for a call that fails so."""
        if fault.codes == (TROUBLE,):
            if kind.startswith(SEARCHES):
                return self.without_search
            if kind.endswith("/labels?") and fault.name[:3] in ("403", "404", "422"):
                return (OK,)  # a repository without labels keeps its pull request
            if ".git/" in kind and UPSTREAMS_GIT in kind:
                return (OK, TROUBLE)
        return fault.codes

    without_search: tuple[int, ...] = (OK,)
    """Where a search fails, the result is unknown, and it is said."""


class Draft(Scenario):
    """Bring the fork forward, close a draft, update one, open one: all in one run."""

    name = "draft --sync"

    def set_up(self, world: World) -> None:
        assert world.draft().code == 0, world.everything()
        names = {"polaris_vl": "PolarisVL", "polaris2_vl": "Polaris2VL"}
        names |= {"vega_vision": "VegaVision", "altair_vl": "AltairVL"}
        names |= {"altair2_vl": "Altair2VL"}
        names |= {f"sound{i}": f"Sound{i}" for i in range(4)}
        vega = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
        rest = {
            f"{MODELS}/polaris2_vl.py": wrapper("Polaris2VL", sound=True),
            f"{MODELS}/altair_vl.py": wrapper("AltairVL"),
            f"{MODELS}/altair2_vl.py": wrapper("Altair2VL"),
            f"{MODELS}/registry.py": registry(names),
        }
        commit_files(world.upstream, vega, "Mend VegaVision (#70)")
        commit_files(world.upstream, rest, "Mend Polaris2VL, add Altair (#71)")
        open_another(world)

    def go(self, world: World, wait: str = "100", **more: Any) -> Ended:
        return world.run("draft", *PLACES, "--max-wait", wait, "--sync", **more)

    def require_sane(self, world: World) -> None:
        super().require_sane(world)
        assert len(world.upstream.pulls) == 1

    def require_done(self, world: World) -> None:
        self.require_sane(world)
        pulls = {p.head: p for p in world.fork.pulls.values()}
        assert sorted(world.open_heads()) == [OTHER, FAMILY]
        assert len(pulls) == len(world.fork.pulls) == 3
        for pull in pulls.values():
            assert set(pull.labels) == LABELS
        assert "Polaris2VL" not in pulls[FAMILY].title
        subject = run_git(world.fork.folder, "log", "-1", "--format=%s", FAMILY)
        assert subject == pulls[FAMILY].title
        require_closed_once(pulls[SINGLES])


class CreateFork(Scenario):
    """There is no fork yet: make it, wait for it, and draft in it."""

    name = "draft --create-fork"

    def set_up(self, world: World) -> None:
        del world.forge.repositories[world.fork.id]

    def start(self, world: World) -> None:
        world.fresh(self.seed, warm=False)

    def go(self, world: World, wait: str = "100", **more: Any) -> Ended:
        return world.run("draft", *PLACES, "--max-wait", wait, "--create-fork", **more)

    def require_sane(self, world: World) -> None:
        super().require_sane(world)
        assert len(world.forge.repositories) <= 2
        assert world.upstream.pulls == {}

    def require_done(self, world: World) -> None:
        self.require_sane(world)
        assert sorted(world.open_heads()) == [FAMILY, SINGLES]
        assert len(world.fork.pulls) == 2
        for pull in world.fork.pulls.values():
            assert set(pull.labels) == LABELS
            assert world.fork.head(pull.head) == pull.head_sha


class CloseFixed(Scenario):
    """One of two drafts is mended on the base."""

    name = "close-fixed"

    def set_up(self, world: World) -> None:
        assert world.draft().code == 0, world.everything()
        vega = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
        self._main = commit_files(world.fork, vega, "Mend VegaVision (#7)")

    def own_main(self, world: World) -> str:
        return self._main

    def go(self, world: World, wait: str = "100", **more: Any) -> Ended:
        return world.run("close-fixed", *PLACES, "--max-wait", wait, **more)

    def require_sane(self, world: World) -> None:
        super().require_sane(world)
        assert FAMILY in world.open_heads()
        assert world.fork.head(SINGLES) is not None

    def require_done(self, world: World) -> None:
        self.require_sane(world)
        assert world.open_heads() == [FAMILY]
        require_closed_once(next(p for p in world.fork.pulls.values() if p.closed))


class Status(Scenario):
    """Two drafts, one of them upstream, with checks, reviews, and a leftover."""

    name = "status"

    def set_up(self, world: World) -> None:
        assert world.draft().code == 0, world.everything()
        main, head = world.fork.head("main"), world.fork.head(FAMILY)
        assert main is not None
        assert head is not None
        world.fork.checks[main] = [Check("lint", "failure")]
        world.fork.checks[head] = [Check("lint", "failure"), Check("unit", "success")]
        family = next(p for p in world.fork.pulls.values() if p.head == FAMILY)
        family.reviews.append(("grace", "APPROVED"))
        world.forge.open_pull(
            world.upstream, world.fork, FAMILY, family.title, family.body, "you"
        )
        singles = next(p for p in world.fork.pulls.values() if p.head == SINGLES)
        singles.state, singles.closed = "closed", world.forge.stamp()
        singles.closed_by = "grace"
        self._refs = all_refs(world)

    def go(self, world: World, wait: str = "100", **more: Any) -> Ended:
        return world.run("status", *PLACES, "--max-wait", wait, **more)

    def require_sane(self, world: World) -> None:
        super().require_sane(world)
        assert all_refs(world) == self._refs
        asked = [q for q, _ in world.exchanges if not q.path.endswith("upload-pack")]
        assert {q.method for q in asked} <= {"GET"}

    def require_done(self, world: World) -> None:
        self.require_sane(world)
        told = world.told[-1]
        assert "approved by grace" in told, told
        assert "refused by grace" in told, told
        assert "not ours" in told, told

    def expected(self, kind: str, fault: Fault) -> tuple[int, ...]:
        # What can be left out is shown as unknown; what everything rests on cannot.
        if fault.codes == (TROUBLE,):
            if any(part in kind for part in ("/commits/", "/branches/", "/reviews")):
                return (OK,)
            if "/pulls/N?" in kind or "/issues/N" in kind:
                return (OK,)
            if kind.startswith(SEARCHES):
                return (TROUBLE,)
        return super().expected(kind, fault)


class Publish(Scenario):
    """A person brings one draft upstream."""

    name = "publish"
    # The person of this suite does not vouch for a search that did not work.
    without_search = (STOP, TROUBLE)
    answers = ("y", "pytest tests/models -k vega", "3 passed", "", "y", UPSTREAM)

    def set_up(self, world: World) -> None:
        assert world.draft("--class", VEGA).code == 0, world.everything()
        open_another(world)

    def go(self, world: World, wait: str = "100", **more: Any) -> Ended:
        words = ("publish", f"{FORK}#1", "--upstream", UPSTREAM, "--max-wait", wait)
        return world.at_terminal([*self.answers], *words, **more)

    def require_sane(self, world: World) -> None:
        super().require_sane(world)
        assert world.open_heads() == [SINGLES]
        ours = [p for p in world.upstream.pulls.values() if p.head == SINGLES]
        assert len(ours) <= 1
        assert all(p.draft for p in ours)
        assert len(world.upstream.pulls) == 1 + len(ours)

    def require_done(self, world: World) -> None:
        self.require_sane(world)
        assert len(world.upstream.pulls) == 2
        form = "%an <%ae>|%cn <%ce>|%(trailers:key=Signed-off-by,valueonly)"
        told = run_git(world.fork.folder, "log", "-1", f"--format={form}", SINGLES)
        assert set(told.split("|")) == {"Ada Example <ada@example.invalid>"}


def open_another(world: World) -> None:
    """Let somebody else's pull request be there: its head is fetched and compared."""
    words = {f"{MODELS}/sirius.py": "x = 1\n"}
    commit_files(world.upstream, words, "Elsewhere", "other")
    world.forge.open_pull(
        world.upstream, world.upstream, "other", "Elsewhere", "", "grace"
    )


def require_closed_once(pull: Any) -> None:
    assert pull.state == "closed"
    closing = [c for c in pull.comments if c.body.startswith("Closed by")]
    assert len(closing) == 1


def all_refs(world: World) -> list[str]:
    return [
        run_git(r.folder, "for-each-ref", "refs/heads")
        for r in world.forge.repositories.values()
    ]


SCENARIOS = (Draft, CreateFork, CloseFixed, Status, Publish)
