"""``preview --html``: one file, safe to open, with all that was found."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

FINGERPRINT = re.compile(r"explain ([0-9a-f]{16})")
ONLY = ("--codemod", "delegate-intermediate-tensors")


class Outline(HTMLParser):
    """The elements of a page, their attributes, and the text of each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        for tag in self._open[-1:]:
            self.texts[tag][-1] += data

    def having(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(part for parts in self.texts.values() for part in parts)


def data_of(outline: Outline) -> dict:
    """Return what the page's script reads."""
    return json.loads(outline.texts["script"][-1])


@pytest.fixture
def page(vlmend, mini, tmp_path) -> str:
    place = tmp_path / "page.html"
    assert vlmend("preview", mini, *ONLY, "--html", place).code == 1
    return place.read_text("utf-8")


def test_the_page_is_made_beside_the_diff_and_its_place_is_told(vlmend, mini, tmp_path):
    plain = vlmend("preview", mini)
    place = tmp_path / "page.html"
    ended = vlmend("preview", mini, "--html", place)
    assert (ended.code, ended.out) == (plain.code, plain.out)
    assert ended.err == f"{plain.err}page: {place}\n"
    assert place.read_text("utf-8").startswith("<!doctype html>")


def test_the_page_goes_with_json_and_with_a_sound_tree(vlmend, mini, tmp_path):
    place = tmp_path / "page.html"
    ended = vlmend(
        "preview", mini, "--class", "Wired*", "--format", "json", "--html", place
    )
    assert ended.code == 0
    assert json.loads(ended.out)["findings"] == []
    assert "Nothing wrong was found" in place.read_text("utf-8")


def test_each_finding_has_its_diff_proof_failure_and_heirs(page):
    outline = Outline(page)
    cards = [a for a in outline.having("details") if "finding" in a["class"]]
    assert [a["id"] for a in cards] == FINGERPRINT.findall(page)
    assert len(cards) == 2
    assert page.count('class="row added"') == 8
    assert "self.language_model.make_empty_intermediate_tensors" in outline.text
    assert "HeirForConditionalGeneration" in page.split('class="heirs"')[1]
    assert "<dt>Failure</dt>" in page
    assert "How this is known" in outline.text


def test_every_class_has_a_row_and_every_verdict_leads_somewhere(page):
    outline = Outline(page)
    verdicts = data_of(outline)["verdicts"]
    cards = {a["id"] for a in outline.having("details") if a.get("id")}
    names = ("Bare", "Heir", "Inner", "Other", "Wired")
    rows = [a for a in outline.having("tr") if "data-is" in a]
    assert len(rows) == len(names)
    for name in names:
        assert f">{name}For" in page
    for row in rows:
        for anchor in (row["data-is"] or "").split():
            assert anchor in cards or anchor in verdicts
    assert "fixable via BareForConditionalGeneration" in page


def test_cited_lines_are_kept_once_with_a_few_around_each(page, mini):
    data = data_of(Outline(page))
    for file in data["files"]:
        real = (mini / file["path"]).read_text().splitlines()
        kept = {}
        for first, *lines in file["blocks"]:
            for number, (text, kinds) in enumerate(lines, first):
                assert number not in kept
                kept[number] = text
                assert sum(map(int, re.findall(r"\d+", kinds))) == len(text)
        assert all(real[number - 1] == text for number, text in kept.items())
        assert len(kept) < max(len(real), 8) or len(real) < 30


def test_only_the_pages_own_style_and_script_may_run(page):
    outline = Outline(page)
    (policy,) = [
        a["content"]
        for a in outline.having("meta")
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    style, script = outline.texts["style"][0], outline.texts["script"][0]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    def digest(text):
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == digest(style)
    assert rules["script-src"] == digest(script)
    assert "unsafe" not in policy
    assert not any("style" in attributes for _, attributes in outline.elements)


def test_nothing_is_fetched(page):
    for _, attributes in Outline(page).elements:
        for name in ("href", "src", "action", "data", "poster", "srcset"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/svg+xml,"))


def test_nothing_in_a_tree_becomes_markup(hostile_page):
    outline = Outline(hostile_page)
    assert len(outline.having("script")) == 2
    assert outline.having("img") == []
    for _, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on")]
    # What was said is still there to be read, to the letter.
    assert "</script><script>window.pwned=1</script>" in outline.text
    assert "{{ 7 * 7 }}{% raw %}" in outline.text
    assert "`<!--` **bold** [link](javascript:" in outline.text
    assert "</script" not in json.dumps(outline.texts["script"][0])


def test_no_character_turns_the_reading_direction_or_hides(hostile_page):
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b\udc80]", hostile_page)
    assert r"\u202egnp.exe" in hostile_page
    hostile_page.encode("utf-8")


def test_the_page_is_the_same_each_time(vlmend, mini, tmp_path):
    places = [tmp_path / "one.html", tmp_path / "two.html"]
    for place in places:
        vlmend("preview", mini, "--html", place)
    assert places[0].read_bytes() == places[1].read_bytes()


def test_an_older_page_is_replaced_and_keeps_its_mode(vlmend, mini, tmp_path):
    place = tmp_path / "page.html"
    place.write_text("old")
    place.chmod(0o640)
    vlmend("preview", mini, "--html", place)
    assert "<!doctype html>" in place.read_text("utf-8")
    assert place.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".vlmend"] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param(".", "is a folder", id="a folder"),
        pytest.param("no/such/page.html", "there is no folder", id="no such folder"),
        pytest.param("file/page.html", "there is no folder", id="below a file"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_the_work(
    vlmend, mini, tmp_path, name, said
):
    (tmp_path / "file").write_text("")
    ended = vlmend("preview", mini, "--html", tmp_path / name)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) <= 2


def test_a_full_disk_leaves_the_older_page(vlmend, mini):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    ended = vlmend("preview", mini, "--html", full)
    assert ended.code == 2
    assert ended.err.splitlines()[-1] == (
        f"vlmend: {full}: cannot be written: No space left on device"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_line(vlmend, mini, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    ended = vlmend("preview", mini, "--html", folder / "page.html")
    assert ended.code == 2
    assert "Permission denied" in ended.err.splitlines()[-1]


def test_open_hands_the_page_to_a_browser(vlmend, mini, tmp_path):
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    browser.chmod(0o755)
    ended = vlmend(
        "preview",
        mini,
        "--open",
        BROWSER=str(browser),
        VLMEND_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert ended.code == 1
    (page,) = (tmp_path / "cache" / "pages").glob("*.html")
    assert ended.err.splitlines()[-1] == f"page: {page}"
    assert seen.read_text() == page.as_uri()


def test_a_machine_without_a_browser_still_has_the_page(vlmend, mini, tmp_path):
    place = tmp_path / "page.html"
    ended = vlmend(
        "preview", mini, "--html", place, "--open", BROWSER="/nowhere/b", DISPLAY=""
    )
    assert ended.code == 1
    assert place.exists()
    assert f"page: {place}" in ended.err


def test_real_pages_stay_small(vlmend, release, tmp_path):
    place = tmp_path / "page.html"
    assert (
        vlmend("preview", release("0.33.0"), "--html", place, "--exit-zero").code == 0
    )
    assert place.stat().st_size < 1_500_000


CSS = Path(__file__).resolve().parents[2] / "templates/page/page.css"
COLOUR = re.compile(r"light-dark\((#\w{6}), (#\w{6})\)")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_code_can_be_read_on_every_ground(theme):
    css = CSS.read_text("utf-8")
    pairs = {
        name: COLOUR.search(value).groups()
        for name, value in re.findall(
            r"^  --([\w-]+): (light-dark.*);", css, re.MULTILINE
        )
    }
    inks = [pairs["text"]] + [
        COLOUR.search(rule).groups()
        for rule in re.findall(r"^\.\w \{ color: (light-dark.*); ", css, re.MULTILINE)
    ]
    assert len(inks) == 8
    grounds = ("panel", "sunk", "added", "removed", "cited")
    for ground in (*grounds, "added-strong", "removed-strong"):
        for ink in inks:
            dark, light = sorted(
                luminance(pair[theme]) for pair in (ink, pairs[ground])
            )
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ground, ink[theme])
