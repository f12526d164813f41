"""What is shown, what is written, and what makes a command exit with 1."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from vlmend.cli.select import Level, Selection
from vlmend.codemods.codemod import Finding, Status


@dataclass(frozen=True)
class Change:
    file: str = "m.py"
    line: int = 1


def finding(status: Status) -> Finding:
    edits = (Change(),) if status in (Status.FIXABLE, Status.REVIEW) else ()
    return Finding("c", "m", "Model", "m.py", 1, 1, status, "says why", edits=edits)


STATUSES = list(Status)
PLAIN = Selection()
REVIEW = Selection(level=Level.REVIEW)
ALL = Selection(every_status=True)
STRICT = Selection(strict=True)


@pytest.mark.parametrize(
    ("selection", "shown", "failing", "written"),
    [
        pytest.param(
            PLAIN,
            {"fixable", "blocked", "unproven"},
            {"fixable", "blocked"},
            {"fixable"},
            id="plain",
        ),
        pytest.param(
            REVIEW,
            {"fixable", "blocked", "unproven", "review"},
            {"fixable", "blocked", "review"},
            {"fixable", "review"},
            id="review",
        ),
        pytest.param(
            ALL,
            set(map(str, STATUSES)),
            {"fixable", "blocked"},
            {"fixable"},
            id="all shows everything and fails on no more",
        ),
        pytest.param(
            STRICT,
            {"fixable", "blocked", "unproven"},
            {"fixable", "blocked", "unproven"},
            {"fixable"},
            id="strict",
        ),
    ],
)
def test_statuses(selection, shown, failing, written):
    judged = [finding(status) for status in STATUSES]
    assert {f.status.value for f in judged if selection.shows(f)} == shown
    assert {f.status.value for f in judged if selection.fails(f)} == failing
    assert {f.status.value for f in judged if selection.writes(f)} == written


def test_what_is_filtered_out_neither_fails_nor_is_written():
    selection = Selection(excluded=("Model",))
    found = finding(Status.FIXABLE)
    assert not selection.shows(found)
    assert not selection.fails(found)
    assert not selection.writes(found)


def test_globs_see_upper_and_lower_case():
    assert not Selection(classes=("model",)).concerns(finding(Status.FIXABLE))
    assert Selection(classes=("m:M*",)).concerns(finding(Status.FIXABLE))
