"""A run that hangs, eats all memory or dies is an answer, and nothing outlives it."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from vlmend.cli.proof.harness.forking import forked

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks")


def run(work, seconds=20.0, megabytes=256):
    return forked(work, seconds=seconds, megabytes=megabytes, roots=())


def test_what_a_run_has_learnt_comes_back():
    def work(facts):
        facts["stage"] = "done"
        facts["more"] = [1, 2]

    facts = run(work)
    assert (facts["stage"], facts["more"], "error" in facts) == ("done", [1, 2], False)


def test_a_run_that_hangs_is_killed_and_its_stage_is_known():
    def work(facts):
        facts["stage"] = "build"
        time.sleep(60)

    facts = run(work, seconds=0.5)
    assert (facts["stage"], facts["error"]["type"]) == ("build", "Timeout")
    assert facts["seconds"] < 10


def test_a_run_that_eats_memory_ends_by_itself():
    def work(facts):
        facts["stage"] = "build"
        bytearray(1 << 31)

    facts = run(work)
    assert (facts["stage"], facts["error"]["type"]) == ("build", "MemoryError")


def test_a_run_that_dies_says_how():
    facts = run(lambda facts: os.kill(os.getpid(), signal.SIGKILL))
    assert facts["error"] == {
        "type": "Killed",
        "message": "ended by SIGKILL",
        "frames": [],
    }


def test_a_run_that_raises_has_an_error():
    def work(facts):
        raise ValueError("two\nlines")

    facts = run(work)
    assert (facts["error"]["type"], facts["error"]["message"]) == (
        "ValueError",
        "two lines",
    )
