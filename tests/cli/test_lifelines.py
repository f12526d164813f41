"""The picture of findings by release: on the page where the history is known."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from vlmend.cli.past.since import known_life
from vlmend.cli.report.lifelines import COLUMN, lifelines
from vlmend.codemods import Finding, Status

ONLY = ("--codemod", "delegate-intermediate-tensors")
COHERE = "Cohere2VisionForConditionalGeneration"


def test_a_release_shows_since_when_and_where_it_stands(vlmend, release, tmp_path):
    release("0.21.0")
    place = tmp_path / "page.html"
    vlmend("preview", "vllm==0.21.0", *ONLY, "--html", place)
    html = place.read_text("utf-8")
    told = re.search(r'<title id="timeline-told">([^<]*)', html)
    assert told
    assert f"{COHERE}, fixable: from 0.10.1, gone in 0.22.0." in told[1]
    assert html.count('class="here"') == 1
    section = html[html.index('id="timeline"') : html.index('id="coverage"')]
    # The page's policy takes no inline style, and nothing may be loaded.
    assert "style=" not in section
    assert "http" not in section


def test_a_tree_without_a_known_history_has_no_picture(vlmend, mini, tmp_path):
    place = tmp_path / "page.html"
    vlmend("preview", mini, *ONLY, "--html", place)
    assert 'id="timeline"' not in place.read_text("utf-8")


@pytest.fixture
def finding(monkeypatch):
    """A finding whose life begins and ends between two known releases."""
    made = Finding("c", "vllm.m", "M", "vllm/m.py", 3, 1, Status.FIXABLE, "message")
    lives = {
        made.fingerprint: {"since": "0.9.0.1", "earlier": False, "gone": "0.9.2"},
    }
    monkeypatch.setattr("vlmend.cli.past.since._first_seen", lambda: lives)
    return made


def test_a_release_between_two_columns_is_drawn_from_the_next_one(finding):
    picture = lifelines([(finding, "a")], "no version")
    assert picture is not None
    (bar,) = picture.bars
    columns = {column.name: column.x for column in picture.columns}
    assert (bar.x, bar.width) == (columns["0.9.1"], COLUMN)
    assert not any(column.here for column in picture.columns)


def test_what_is_not_known_is_not_drawn(finding):
    assert lifelines([(replace(finding, class_name="N"), "a")], "0.9.1") is None
    assert known_life(finding) is not None
