"""One pure decision: what brings fork and change together."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from vlmend.cli.commits import BranchState
from vlmend.cli.drafts.state import Act, decide
from vlmend.cli.forge.pulls import Draft, own_line

PRINTS = ("a" * 16,)
CHANGE = SimpleNamespace(
    branch="vlmend/x/y", digest="c" * 12, fingerprints=PRINTS, labels=("vlmend",)
)
OURS = BranchState("h" * 40, True, CHANGE.digest, PRINTS, "p" * 40)
OLD = BranchState("h" * 40, True, "d" * 12, PRINTS, "p" * 40)
THEIRS = BranchState("h" * 40, False, person="Grace")


def pull(**more):
    values = {
        "number": 1,
        "url": "",
        "title": "",
        "body": "",
        "state": "open",
        "merged": False,
        "draft": True,
        "base": "main",
        "head": CHANGE.branch,
        "head_label": "",
        "head_sha": "",
        "head_repository": "",
        "user": "",
        "labels": ("vlmend",),
        "change": CHANGE.digest,
        "fingerprints": PRINTS,
        "closed_at": None,
    }
    return Draft(**(values | more))  # type: ignore[arg-type]


CASES = {
    "nothing-there": (None, [], Act.CREATE, True),
    "pushed-but-not-opened": (OURS, [], Act.CREATE, False),
    "an-old-branch-and-no-pull": (OLD, [], Act.CREATE, True),
    "all-as-it-should-be": (OURS, [pull()], Act.NOTHING, False),
    "opened-but-not-labelled": (OURS, [pull(labels=())], Act.UPDATE, False),
    "pushed-but-old-text": (OURS, [pull(change="d" * 12)], Act.UPDATE, False),
    "an-old-branch": (OLD, [pull(change="d" * 12)], Act.UPDATE, True),
    "the-branch-is-gone": (None, [pull()], Act.UPDATE, True),
    "a-person-rewrote-the-text": (OURS, [pull(change="")], Act.NOTHING, False),
    "a-person-committed": (THEIRS, [pull()], Act.LEAVE, False),
    "a-person-has-the-branch": (THEIRS, [], Act.LEAVE, False),
    "another-base": (OURS, [pull(base="dev")], Act.LEAVE, False),
    "closed-before": (OURS, [pull(state="closed")], Act.REOPEN, False),
    "merged-before": (OURS, [pull(state="closed", merged=True)], Act.CREATE, False),
}


@pytest.mark.parametrize("name", CASES)
def test_decisions(name):
    branch, pulls, act, push = CASES[name]
    plan = decide(CHANGE, branch, pulls, "main", reopenable={1})
    assert (plan.act, plan.push) == (act, push)


def test_the_own_line_reads_back():
    import re

    from vlmend.cli.forge import pulls

    line = own_line("0" * 12, ["b" * 16, "a" * 16])
    found = pulls._OWN_LINE.search(f"text\n\n{line}.")
    assert found is not None
    assert found["change"] == "0" * 12
    assert re.findall("[ab]{16}", found["fingerprints"]) == ["a" * 16, "b" * 16]
