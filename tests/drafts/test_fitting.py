"""What is too long for GitHub is left out in whole parts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from vlmend.cli.drafts.fitting import fitted
from vlmend.cli.errors import UserError

OWN = "Change `0123456789ab`, fingerprint `0123456789abcdef`"
GONE = "Left out here"
WHY = "## Purpose\n\nIt breaks."
TABLE = "| Class | Where |\n|---|---|\n" + "| `A` | [x](https://e.invalid/x) |\n" * 40
FENCE = "```text\n" + "one line\n\n**not a heading**\n\n## nor this\n\n" * 30 + "```\n"
LIST = "- [`a.py`:1](https://e.invalid/a) says so\n" * 40
FOLDED = f"<details>\n<summary>Why</summary>\n\n{LIST}\n</details>\n"


def rendered(text):
    return MarkdownIt("commonmark").enable("table").parse(text)


def kinds(text):
    return [token.type for token in rendered(text) if token.level == 0]


def test_what_fits_is_not_touched():
    text = f"{WHY}\n\n{TABLE}\n{OWN}.\n"
    assert fitted(text, len(text), OWN) == text


@pytest.mark.parametrize(
    ("long", "opened"),
    [
        pytest.param(TABLE, "table_open", id="table"),
        pytest.param(FENCE, "fence", id="fence"),
        pytest.param(LIST, "bullet_list_open", id="list"),
        pytest.param(FOLDED, "html_block", id="folded"),
    ],
)
def test_a_section_goes_whole_and_its_heading_says_so(long, opened):
    text = f"{WHY}\n\n**Precedents**\n\n{long}\n## Test Plan\n\nNone.\n\n{OWN}.\n"
    short = fitted(text, 400, OWN)
    assert len(short) <= 400
    assert opened in kinds(text)
    assert opened not in kinds(short)
    assert f"**Precedents**\n\n_{GONE}" in short or f"_{GONE}" in short
    for kept in (WHY, "**Precedents**", "## Test Plan\n\nNone.", OWN):
        assert kept in short


def test_the_longest_section_goes_first():
    text = f"{WHY}\n\n**A**\n\n{LIST}\n**B**\n\n{LIST * 2}\n{OWN}.\n"
    short = fitted(text, len(LIST) + 300, OWN)
    assert f"**A**\n\n{LIST}" in short
    assert f"**B**\n\n_{GONE}" in short


def test_where_no_section_is_left_blocks_go():
    text = f"## Purpose\n\n{LIST}\n{TABLE}\nShort.\n\n{OWN}.\n"
    short = fitted(text, len(TABLE) + 250, OWN)
    assert TABLE.strip() in short or LIST.strip() in short
    assert "Short." in short
    assert OWN in short


def test_what_cannot_fit_is_refused():
    with pytest.raises(UserError, match="GitHub takes 100"):
        fitted(f"{OWN} {'x' * 200}\n", 100, OWN)


PIECES = st.sampled_from(
    [TABLE, FENCE, LIST, FOLDED, "**Title**\n", "## Heading\n", "Words.\n", "---\n"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=12), st.integers(600, 6000))
def test_every_part_is_whole_or_gone(pieces, limit):
    text = "\n".join([f"{WHY}\n", *pieces, f"{OWN}.\n"])
    short = fitted(text, limit, OWN)
    assert len(short) <= max(limit, len(WHY))
    assert OWN in short
    for piece, opening in ((TABLE, "| Class"), (FENCE, "```text"), (LIST, "- [")):
        whole = short.count(piece.strip())
        begun = short.count(opening)
        assert begun == whole * piece.count(opening)
    assert short.count("<details>") == short.count("</details>")
