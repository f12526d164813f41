"""Every call x every fault, and every step x {kill, rerun}.

The scenario makes one run do everything at once: bring the fork forward, close a draft,
update one, open one. In every case: at most one open pull request for a branch, no
commit lost, the right exit code, one clear line, and the next run completes the work.
"""

from __future__ import annotations

import copy
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from vlmend.cli.rig.api import PREFIX, invalid, refusal
from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

pytestmark = pytest.mark.rig

FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"
OTHER = "vlmend/delegate-intermediate-tensors/altair"


# --- the scenario --------------------------------------------------------------------


@pytest.fixture(scope="module")
def worlds(make_world):
    """Two worlds, so that two cases run at a time."""
    found = [make_world(), make_world()]
    for world in found:
        world.scenario = scenario(world)
    return found


def scenario(world):
    """Return a forge in which one run has everything to do."""
    world.fresh()
    assert world.draft().code == 0, world.everything()
    vega = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
    polaris = {f"{MODELS}/polaris2_vl.py": wrapper("Polaris2VL", sound=True)}
    fresh = {
        f"{MODELS}/altair_vl.py": wrapper("AltairVL"),
        f"{MODELS}/altair2_vl.py": wrapper("Altair2VL"),
        f"{MODELS}/registry.py": registry(),
    }
    commit_files(world.upstream, vega, "Mend VegaVision (#70)")
    commit_files(world.upstream, polaris | fresh, "Mend Polaris2VL, add Altair (#71)")
    # Somebody else's pull request: its head is fetched and compared.
    words = {f"{MODELS}/sirius.py": "x = 1\n"}
    commit_files(world.upstream, words, "Elsewhere", "other")
    world.forge.open_pull(
        world.upstream, world.upstream, "other", "Elsewhere", "", "grace"
    )
    seed = copy.deepcopy(world.forge)
    # What the clone has fetched so far is where every case starts from.
    world.warm = world.place / "cache"
    return seed


def registry():
    names = ["PolarisVL", "Polaris2VL", "VegaVision", "AltairVL", "Altair2VL"]
    names += [f"Sound{i}" for i in range(4)]
    modules = {"PolarisVL": "polaris_vl", "Polaris2VL": "polaris2_vl"}
    modules |= {"VegaVision": "vega_vision", "AltairVL": "altair_vl"}
    modules |= {"Altair2VL": "altair2_vl"}
    rows = "".join(
        f'    "{n}ForConditionalGeneration": ("{modules.get(n, n.lower())}",'
        f' "{n}ForConditionalGeneration"),\n'
        for n in names
    )
    inner = '"InnerForCausalLM": ("inner", "InnerForCausalLM")'
    return (
        f"_TEXT_GENERATION_MODELS = {{\n    {inner},\n}}\n\n"
        f"_MULTIMODAL_MODELS = {{\n{rows}}}\n"
    )


def go(world, **more):
    return world.draft("--sync", "--max-wait", "100", **more)


def kind_of(request):
    """Name a call, whatever its numbers and names."""
    path = re.sub(r"/\d+\b", "/N", request.path.removeprefix(PREFIX))
    path = re.sub(r"/[0-9a-f]{40}\b", "/SHA", path)
    keys = re.sub(r"=[^&]*", "", request.query)
    if "git" in path.rpartition("/")[2] or "info/refs" in path:
        keys = request.query
    return f"{request.method} {path}?{keys}"


@pytest.fixture(scope="module")
def calls(worlds):
    """Every kind of call that the scenario makes, and how many exchanges there are."""
    world = worlds[0]
    world.fresh(world.scenario)
    ended = go(world)
    assert ended.code == 0, world.everything()
    require_done(world)
    kinds = list(dict.fromkeys(kind_of(q) for q, _ in world.exchanges))
    children = len((world.place / "children").read_text().splitlines())
    return kinds, len(world.exchanges), children


def require_sane(world):
    """What holds after any run, however it ended."""
    heads = Counter(world.open_heads())
    assert all(count == 1 for count in heads.values()), heads
    assert len(world.upstream.pulls) == 1
    for branch in (FAMILY, SINGLES, OTHER):
        head = world.fork.head(branch)
        if head is not None:
            run_git(world.fork.folder, "cat-file", "-e", f"{head}^{{tree}}")
    main = run_git(world.fork.folder, "rev-parse", "main")
    known = run_git(world.upstream.folder, "rev-list", "main")
    assert main in known.split()


def require_done(world):
    """What one complete run leaves behind."""
    require_sane(world)
    pulls = {p.head: p for p in world.fork.pulls.values()}
    assert sorted(world.open_heads()) == [OTHER, FAMILY]
    assert len(pulls) == len(world.fork.pulls) == 3
    for pull in pulls.values():
        assert set(pull.labels) == {"vlmend", "delegate-intermediate-tensors"}
    assert "Polaris2VL" not in pulls[FAMILY].title
    subject = run_git(world.fork.folder, "log", "-1", "--format=%s", FAMILY)
    assert subject == pulls[FAMILY].title
    closing = [c for c in pulls[SINGLES].comments if c.body.startswith("Closed by")]
    assert len(closing) == 1


# --- the faults ----------------------------------------------------------------------

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."
LIMIT = "You have exceeded a secondary rate limit. Please wait."


@dataclass(frozen=True)
class Fault:
    """What is answered instead, and how often."""

    name: str
    forever: bool
    codes: tuple[int, ...]

    def answer(self, world, act):
        match self.name:
            case "502 then ok" | "502 for ever":
                return refusal(502, "Bad Gateway")
            case "429 with Retry-After":
                return refusal(429, LIMIT, Retry_After="30")
            case "429 without Retry-After":
                return refusal(429, LIMIT)
            case "429 for ever":
                return refusal(429, LIMIT, Retry_After="60")
            case "403 secondary limit":
                return refusal(403, SECONDARY)
            case "403 primary limit":
                reset = str(int(time.time()) + 20)
                headers = {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": reset}
                return refusal(403, "API rate limit exceeded for user ID 1.", **headers)
            case "403 permission":
                return refusal(403, "Resource not accessible by personal access token")
            case "403 Actions may not":
                told = "GitHub Actions is not permitted to create or approve"
                return refusal(403, f"{told} pull requests.")
            case "404":
                return refusal(404, "Not Found")
            case "422 exists":
                return invalid("A pull request already exists for you:branch.")
            case "422 drafts":
                told = "Draft pull requests are not supported in this repository."
                return refusal(422, told)
            case "422 invalid":
                return invalid("it is not valid")
            case "422 not settled":
                return invalid("Could not resolve to a node")
            case "timeout":
                response = act()
                time.sleep(1.3)
                return response
            case "dropped after the write":
                act()
                return None
            case "dropped before":
                return None
        raise AssertionError(self.name)


OK, STOP, TROUBLE = 0, 3, 2
API_FAULTS = (
    Fault("502 then ok", False, (OK,)),
    Fault("502 for ever", True, (TROUBLE,)),
    Fault("429 with Retry-After", False, (OK,)),
    Fault("429 without Retry-After", False, (OK,)),
    Fault("429 for ever", True, (STOP,)),
    Fault("403 secondary limit", False, (OK,)),
    Fault("403 primary limit", False, (OK,)),
    Fault("403 permission", True, (TROUBLE,)),
    Fault("403 Actions may not", True, (TROUBLE,)),
    Fault("404", True, (TROUBLE,)),
    Fault("422 exists", True, (TROUBLE,)),
    Fault("422 drafts", True, (TROUBLE,)),
    Fault("422 invalid", True, (TROUBLE,)),
    Fault("422 not settled", False, (OK,)),
    Fault("timeout", False, (OK,)),
    Fault("dropped after the write", False, (OK,)),
    Fault("dropped before", False, (OK,)),
)
GIT_FAULTS = (
    Fault("502 for ever", True, (TROUBLE,)),
    Fault("403 permission", True, (TROUBLE,)),
    Fault("404", True, (TROUBLE,)),
    # Git itself asks once; what was pushed is found by the next run, or by this one.
    Fault("dropped after the write", False, (OK, TROUBLE)),
    Fault("dropped before", False, (OK, TROUBLE)),
)
UNKNOWN_IS_FINE = ("GET /search/issues", "GET /repos/them/vllm/pulls?")
"""Where a search fails, the result is unknown, and says so."""


def faults_of(kind):
    return GIT_FAULTS if ".git/" in kind else API_FAULTS


def expected(kind, fault):
    if fault.codes == (TROUBLE,):
        if kind.startswith(UNKNOWN_IS_FINE):
            return (OK,)
        if kind.endswith("/labels?") and fault.name[:3] in ("403", "404", "422"):
            return (OK,)  # a repository without labels keeps its pull request
        if ".git/" in kind and "them/vllm" in kind:
            return (OK, TROUBLE)
    return fault.codes


def break_call(world, kind, fault):
    """Run with one kind of call broken, then without."""
    world.fresh(world.scenario)
    hits = []

    def broken(request, act):
        if kind_of(request) != kind or (hits and not fault.forever):
            return act()
        hits.append(request)
        return fault.answer(world, act)

    world.fault = broken
    ended = go(world)
    assert hits, "the call was not made"
    assert ended.code in expected(kind, fault), world.everything()
    require_one_clear_line(world, ended)
    require_sane(world)
    world.fault = None
    again = go(world)
    assert again.code == 0, world.everything()
    require_done(world)


def require_one_clear_line(world, ended):
    assert "Traceback" not in ended.text
    assert "internal error" not in ended.text, world.everything()
    if ended.code == TROUBLE:
        told = [x for x in ended.err.splitlines() if x.startswith("vlmend: ")]
        failed = [x for x in ended.out.splitlines() if x.startswith("failed ")]
        assert len(told) + bool(failed) >= 1, world.everything()
        assert len(told) <= 1, world.everything()
    if ended.code == STOP:
        assert "--max-wait" in ended.err, world.everything()


def kill_at_exchange(world, number, when):
    """Kill the run at one exchange, before or after it was handled; run again."""
    world.fresh(world.scenario)
    seen = []

    def killing(request, act):
        seen.append(request)
        if len(seen) != number:
            return act()
        response = act() if when == "after" else None
        world.kill()
        return response

    world.fault = killing
    ended = go(world)
    assert ended.code < 0, world.everything()
    completed_by_the_next(world)


def kill_at_child(world, number):
    """Kill the run before one of its git commands; run again."""
    world.fresh(world.scenario)
    ended = go(world, kill_at=number)
    assert ended.code < 0, world.everything()
    completed_by_the_next(world)


def completed_by_the_next(world):
    world.fault = None
    require_sane(world)
    again = go(world)
    assert again.code == 0, world.everything()
    require_done(world)
    assert "Traceback" not in again.text


def test_every_call_and_every_step(worlds, calls, capsys):
    kinds, exchanges, children = calls
    cases = [
        (f"{kind} x {fault.name}", break_call, (kind, fault))
        for kind in kinds
        for fault in faults_of(kind)
    ]
    broken = len(cases)
    cases += [
        (f"exchange {n} killed {when}", kill_at_exchange, (n, when))
        for n in range(1, exchanges + 1)
        for when in ("before", "after")
    ]
    cases += [
        (f"child {n} killed", kill_at_child, (n,)) for n in range(1, children + 1)
    ]
    problems = []
    waiting = list(enumerate(cases))
    begun = time.monotonic()

    def work(world):
        while waiting:
            _, (name, run, words) = waiting.pop(0)
            try:
                run(world, *words)
                leaks = list(world.leaks())
                assert leaks == [], leaks
                world.drop()
            except Exception as error:  # noqa: BLE001 - every case is told, not only the first
                problems.append(f"{name}: {error}")

    with ThreadPoolExecutor(len(worlds)) as pool:
        for done in [pool.submit(work, world) for world in worlds]:
            done.result()
    with capsys.disabled():
        print(
            f"\n{len(kinds)} kinds of calls: {broken} faults;"
            f" {len(cases) - broken} kills; {len(cases)} cases, each with a rerun,"
            f" in {time.monotonic() - begun:.0f} s"
        )
    assert not problems, f"{len(problems)} of {len(cases)}\n\n" + "\n\n".join(problems)
