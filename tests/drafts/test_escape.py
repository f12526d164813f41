"""Names from a tree cannot do anything in a text of ours."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from vlmend.cli.drafts.escape import (
    cell,
    code,
    commit_text,
    fenced,
    link,
    plain,
    prose,
    worded,
)
from vlmend.cli.drafts.shapes import Kind, Part, shape_from

HOSTILE = [
    "**bold** and _emphasis_ and `code`",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) ![x](http://evil.invalid/x.png)",
    "{{ 7 * 7 }} {% include 'x' %} {# no #}",
    "<!-- vlmend: state --> --> -->",
    "$(rm -rf /) `id` ; && || > /etc/passwd",
    "--exec=evil -rf",
    "a | b | c",
    "```\nout of the fence\n```",
    "# heading",
    "- item",
    "1. item",
    "https://evil.invalid/x www.evil.invalid",
    "@vllm-project #123 GH-7 fixes #9",
    "line\nSigned-off-by: Mallory <m@evil.invalid>",
    "\x1b[31mred\x07\u202ereversed",
    "&lt;b&gt; &amp;",
    "~~gone~~ \\* ==mark==",
]

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def shown(markdown: str) -> list[str]:
    """Return the kinds of tokens that Markdown makes of a text."""
    tokens = MARKDOWN.parse(markdown)
    kinds = [t.type for t in tokens]
    for token in tokens:
        kinds += [child.type for child in token.children or ()]
    return kinds


@pytest.mark.parametrize("text", HOSTILE)
def test_plain_text_stays_text(text):
    assert set(shown(plain(text))) <= {
        "paragraph_open",
        "inline",
        "paragraph_close",
        "text",
        "text_special",
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_code_is_one_span(text):
    kinds = shown(f"before {code(text)} after")
    assert kinds.count("code_inline") == 1
    assert "html_inline" not in kinds
    assert "link_open" not in kinds


@pytest.mark.parametrize("text", HOSTILE)
def test_prose_only_makes_code(text):
    kinds = set(shown(prose(f"Class {text} breaks")))
    assert kinds <= {
        "paragraph_open",
        "inline",
        "paragraph_close",
        "text",
        "text_special",
        "code_inline",
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_a_fence_cannot_be_left(text):
    kinds = shown(f"{fenced(text)}\n")
    assert kinds == ["fence"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_stays_one_cell(text):
    table = f"| a | b |\n|---|---|\n| {cell(code(text))} | {cell(plain(text))} |\n"
    kinds = shown(table)
    assert kinds.count("td_open") == 2
    assert "html_inline" not in kinds


@pytest.mark.parametrize("text", HOSTILE)
def test_a_commit_message_gets_one_line_and_no_link(text):
    told = commit_text(text)
    assert "\n" not in told
    assert "#9" not in told
    assert "@vllm" not in told
    assert told.isascii() or "\u200b" in told


@pytest.mark.parametrize("text", HOSTILE)
def test_a_link_leads_where_we_say(text):
    kinds = shown(link(text, f"https://forge.invalid/x/{text}"))
    assert kinds.count("link_open") == 1


def test_no_link_to_a_script():
    assert "link_open" not in shown(link("x", "javascript:alert(1)"))


KNOWN = {
    Kind.PURPOSE: "PLEASE FILL IN\n\n## Purpose\n\n## Test Plan\n\n## Test Result\n",
    Kind.OVERVIEW: "## Overview\n## Claims\n<!-- ## Not this -->\n"
    "## Validation\n## Details\n",
    Kind.FREE: "FILL IN THE PR DESCRIPTION HERE\n\nFIX #xxxx\n",
}


@pytest.mark.parametrize("kind", KNOWN)
def test_known_shapes(kind):
    assert shape_from(KNOWN[kind]).kind is kind


def test_an_unknown_shape_keeps_its_headings():
    shape = shape_from("## What\n\n## How tested\n\n## Outcome\n\n## Release note\n")
    assert shape.kind is Kind.OTHER
    assert [(s.title, s.part) for s in shape.sections] == [
        ("What", Part.WHY),
        ("How tested", Part.TESTS),
        ("Outcome", Part.NOTHING),
        ("Release note", Part.NOTHING),
    ]


def test_what_the_bot_removes_is_not_kept():
    shape = shape_from("## A\n- [ ] one\n**BEFORE SUBMITTING**\n- [ ] two\n## B\n")
    assert shape.checklist == ("one",)
    assert [s.title for s in shape.sections] == ["A"]


@pytest.mark.parametrize("release_name", ["0.21.0", "0.33.0"])
def test_the_templates_of_real_releases(release, release_name):
    text = (release(release_name) / ".github/PULL_REQUEST_TEMPLATE.md").read_text()
    shape = shape_from(text)
    known = {"0.21.0": Kind.PURPOSE, "0.33.0": Kind.OVERVIEW}
    assert shape.kind is known[release_name]
    assert shape.checklist


def test_what_backticks_mark_is_code_and_the_rest_is_harmless():
    said = worded("`None` from @ada at x_y, `a|b` <b>")
    assert said == "`None` from @\u200bada at `x_y`, `a|b` &lt;b&gt;"
