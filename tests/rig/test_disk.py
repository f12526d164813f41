"""A cache that cannot be written: one line, nothing half done, the next run works."""

from __future__ import annotations

import pytest
from worlds import FORK, UPSTREAM

pytestmark = pytest.mark.rig

FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"
LIMITS = (600, 2_000, 8_000, 30_000, 100_000)
VERBS = {
    "draft": ("draft", "--fork", FORK, "--upstream", UPSTREAM),
    "status": ("status", "--fork", FORK, "--upstream", UPSTREAM),
    "scan": ("scan", f"{FORK}@main"),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("cache", ["cache", "cold"], ids=["warm", "cold"])
def test_a_full_disk_is_one_line_and_costs_nothing(world, verb, limit, cache):
    ended = world.run(*VERBS[verb], cache=cache, file_limit=limit)
    assert ended.code in (0, 1, 2), world.everything()
    assert "Traceback" not in ended.text, world.everything()
    assert "internal error" not in ended.text, world.everything()
    if ended.code == 2:
        told = [x for x in ended.err.splitlines() if x.startswith("vlmend: ")]
        assert told or "failed " in ended.out, world.everything()
    again = world.run(*VERBS[verb], cache=cache)
    assert again.code == (1 if verb == "scan" else 0), world.everything()
    if verb == "draft":
        assert world.open_heads() == [FAMILY, SINGLES]
        assert len(world.fork.pulls) == 2


@pytest.mark.parametrize("verb", VERBS)
def test_a_cache_that_cannot_be_is_one_line(world, verb):
    (world.place / "file").write_text("in the way\n")
    ended = world.run(*VERBS[verb], cache="file/cache")
    assert ended.code == 2, world.everything()
    lines = ended.err.splitlines()
    assert lines[0].startswith("vlmend: "), lines
    assert "VLMEND_CACHE_DIR" in ended.err
    assert world.fork.pulls == {}
