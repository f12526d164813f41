"""The page of ``preview --html``, used as a person uses it."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

COHERE = "99a53146168aab8a"
PHONE = {"width": 375, "height": 812}
OPEN_ALL = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"


def shown_classes(page) -> list[str]:
    page.wait_for_selector("#classes[aria-busy=false]")
    return page.locator(
        "#classes tbody tr:not(.detail):visible th button"
    ).all_inner_texts()


def test_typing_filters_and_says_how_many_are_left(visit, page_file):
    with visit(page_file) as page:
        everything = len(shown_classes(page))
        page.get_by_role("searchbox").fill("cohere vision")
        names = shown_classes(page)
        assert names
        assert all("cohere" in n.lower() and "vision" in n.lower() for n in names)
        assert (
            page.get_by_role("status").inner_text()
            == f"{len(names)} of {everything} classes"
        )


def test_a_status_leaves_only_its_classes(visit, page_file):
    with visit(page_file) as page:
        page.get_by_role("radio", name="blocked").check()
        assert "KimiLinearForCausalLM" in shown_classes(page)
        for row in page.locator("#classes tbody tr:visible").all():
            assert row.locator("td[data-status=blocked]").count()
        chip = page.locator(".chips label", has_text="blocked")
        assert chip.locator("b").inner_text() == str(len(shown_classes(page)))


def test_a_filter_without_a_match_says_so_and_can_be_undone(visit, page_file):
    with visit(page_file) as page:
        everything = shown_classes(page)
        page.get_by_role("searchbox").fill("no such class")
        assert shown_classes(page) == []
        page.get_by_role("button", name="Show all").click()
        assert shown_classes(page) == everything
        assert page.get_by_role("searchbox").evaluate(
            "e => e === document.activeElement"
        )


@pytest.mark.parametrize("way", ["filter", "sort"])
def test_a_long_table_appears_a_piece_at_a_time(visit, page_file, way):
    """Hundreds of rows laid out in one go are a pause that one feels while typing."""
    act = {
        "filter": "text.value = ''; text.dispatchEvent(new Event('input', up));",
        "sort": "document.querySelector('#classes thead button').click();",
    }
    with visit(page_file) as page:
        everything = len(shown_classes(page))
        assert everything > 200
        if way == "filter":
            page.get_by_role("searchbox").fill("no such class")
        seen = """() => {
          const shown = () => [...document.querySelectorAll('#classes tbody tr')]
            .filter((row) => !row.hidden).length;
          const text = document.getElementById('text'), up = { bubbles: true };
          ACT
          const first = shown();
          dispatchEvent(new Event('beforeprint'));
          return [first, shown()];
        }"""
        first, printed = page.evaluate(seen.replace("ACT", act[way]))
        assert 30 < first < 100
        assert printed == everything
        assert len(shown_classes(page)) == everything


def test_rows_that_are_still_to_come_come_by_themselves(visit, page_file):
    with visit(page_file) as page:
        everything = shown_classes(page)
        page.get_by_role("searchbox").fill("no such class")
        page.get_by_role("searchbox").fill("")
        assert shown_classes(page) == everything


def test_a_heading_sorts_and_sorts_back(visit, page_file):
    with visit(page_file) as page:
        before = shown_classes(page)
        head = page.locator("thead th").first
        assert head.get_attribute("aria-sort") == "ascending"
        head.get_by_role("button").click()
        # Names that differ only in case keep their order.
        lower = [name.lower() for name in shown_classes(page)]
        assert lower == [name.lower() for name in before[::-1]]
        assert head.get_attribute("aria-sort") == "descending"
        by_status = page.locator("thead th").nth(3)
        by_status.get_by_role("button").click()
        assert head.get_attribute("aria-sort") is None
        statuses = page.locator("tbody tr td:nth-child(4)").evaluate_all(
            "cells => cells.map((cell) => cell.dataset.status)"
        )
        assert statuses[0] == "fixable"
        assert statuses[-1] == "none"
        assert len(list(dict.fromkeys(statuses))) == len(
            [s for i, s in enumerate(statuses) if i == 0 or statuses[i - 1] != s]
        )


def test_each_contract_has_a_column(visit, page_file):
    from vlmend.codemods import all_codemods

    with visit(page_file) as page:
        titles = page.locator("thead th.cell abbr").evaluate_all(
            "all => all.map((one) => one.title)"
        )
        assert titles == [codemod.id for codemod in all_codemods()]
        assert page.locator(".score").count() == len(titles)


def test_a_link_of_a_proof_opens_the_cited_lines_in_place(visit, page_file, release):
    with visit(page_file, f"#{COHERE}") as page:
        link = page.locator(f"[id='{COHERE}'] details.link").first
        link.locator("summary").click()
        here = link.locator(".excerpt .here")
        file, _, line = link.locator(".place").inner_text().partition(":")
        assert here.get_attribute("data-line") == line
        real = (release("0.21.0") / file).read_text().splitlines()
        assert here.inner_text().strip() == real[int(line) - 1].strip()
        assert link.locator(".excerpt li").count() == 8
        assert link.locator(".excerpt .k").count()


def test_a_file_that_is_not_at_hand_is_said_to_be(visit, page_file):
    with visit(page_file, f"#{COHERE}") as page:
        link = page.locator(
            f"[id='{COHERE}'] details.link", has_text="(in Transformers)"
        )
        link.first.locator("summary").click()
        assert "not at hand" in link.first.inner_text()


def test_a_row_opens_the_proof_of_a_sound_class(visit, page_file):
    with visit(page_file) as page:
        button = page.get_by_role("button", name="ApertusForCausalLM", exact=True)
        button.click()
        assert button.get_attribute("aria-expanded") == "true"
        verdict = page.locator(".verdict").first
        assert "satisfied" in verdict.inner_text()
        verdict.locator("details.link summary").first.click()
        assert (
            "make_empty_intermediate_tensors" in verdict.locator(".here").inner_text()
        )
        button.click()
        assert page.locator(".verdict").count() == 0


def test_a_deep_link_opens_its_finding_and_moves_the_focus(visit, page_file):
    with visit(page_file, f"#{COHERE}") as page:
        card = page.locator(f"[id='{COHERE}']")
        card.locator("> summary:focus").wait_for()
        assert card.get_attribute("open") is not None
        assert 0 <= card.bounding_box()["y"] < 200


def test_a_deep_link_to_a_sound_class_opens_its_row(visit, page_file):
    with visit(page_file) as page:
        page.get_by_role("searchbox").fill("nothing like it")
        row = page.locator("tbody tr", has_text="ApertusForCausalLM").first
        anchor = row.get_attribute("data-is").split()[0]
        page.evaluate("anchor => { location.hash = anchor; }", anchor)
        verdict = page.locator(f"[id='{anchor}']")
        verdict.and_(page.locator(":focus")).wait_for()


def test_a_cell_leads_to_the_finding_of_the_broken_base(visit, page_file):
    with visit(page_file) as page:
        page.get_by_role("link", name=re.compile("via Voxtral")).first.click()
        card = page.locator(
            ".finding[open]", has_text="VoxtralForConditionalGeneration"
        )
        # The browser tells the page of the new anchor after the click is done.
        card.and_(page.locator(":target")).wait_for()
        assert card.count() == 1
        assert "VoxtralRealtimeGeneration" in card.inner_text()


def test_the_theme_changes_and_is_remembered(visit, page_file):
    with visit(page_file, color_scheme="light") as page:
        paper = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(paper)
        button = page.get_by_role("button", name="Dark")
        button.click()
        dark = page.evaluate(paper)
        assert dark != light
        assert button.get_attribute("aria-pressed") == "true"
        page.reload()
        assert page.evaluate(paper) == dark
        page.get_by_role("button", name="Dark").click()
        assert page.evaluate(paper) == light


def test_the_system_decides_until_a_person_does(visit, page_file):
    with visit(page_file, color_scheme="dark") as page:
        button = page.get_by_role("button", name="Dark")
        assert button.get_attribute("aria-pressed") == "true"
        page.emulate_media(color_scheme="light")
        page.locator("#theme[aria-pressed=false]").wait_for()


def test_the_keyboard_reaches_everything(visit, page_file):
    with visit(page_file) as page:
        seen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.append(
                page.evaluate(
                    """() => {
                        const at = document.activeElement;
                        const ring = getComputedStyle(at.matches(".chips input")
                            ? at.nextElementSibling : at);
                        return [at.className || at.id || at.tagName,
                            ring.outlineStyle !== "none"];
                    }"""
                )
            )
            if seen[-1][0] == "text":
                break
        names = [name for name, _ in seen]
        assert names[0] == "skip"
        assert "theme" in names
        assert names.count("SUMMARY") >= 4
        assert names[-1] == "text"
        assert all(ring for _, ring in seen)
        # From the field on to the statuses, and with the arrows among them.
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "contract":
            page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.value") == "fixable"
        assert len(shown_classes(page)) < 20
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        head = page.locator("thead th").first
        assert head.get_attribute("aria-sort") == "descending"


def test_the_skip_link_leads_past_the_head(visit, page_file):
    with visit(page_file) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_paper_shows_every_finding_in_dark_ink(visit, page_file):
    with visit(page_file, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert (
            page.locator(".finding").count() == page.locator(".finding[open]").count()
        )
        assert not page.locator("#tools").is_visible()
        assert not page.locator("nav").is_visible()
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert max(map(int, re.findall(r"\d+", ink))) < 80
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator(".finding[open]").count() == 1
        assert page.pdf()[:5] == b"%PDF-"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_needs_no_scrolling_sideways(visit, page_file, theme):
    with visit(page_file, viewport=PHONE, color_scheme=theme) as page:
        page.get_by_role("button", name="Open all").click()
        page.get_by_role("button", name="ApertusForCausalLM", exact=True).click()
        page.evaluate(OPEN_ALL)
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        # Before and after stand one below the other.
        assert page.locator(".row.same .old:visible").count() == 0
        assert page.locator(".row.added .new:visible").count()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_serious(visit, page_file, axe, theme, viewport):
    options = {"viewport": viewport} if viewport else {}
    with visit(page_file, color_scheme=theme, **options) as page:
        page.get_by_role("button", name="Open all").click()
        page.get_by_role("button", name="ApertusForCausalLM", exact=True).click()
        page.locator(".finding details.link summary").first.click()
        page.locator(".verdict details.link summary").first.click()
        # Three hundred rows alike tell no more than thirty, and take minutes.
        page.evaluate(
            "document.querySelectorAll('tbody tr:nth-child(n + 30)')"
            ".forEach((row) => row.remove())"
        )
        page.evaluate(axe)
        found = page.evaluate("axe.run().then((result) => result.violations)")
        assert [
            (v["id"], v["nodes"][0]["html"])
            for v in found
            if v["impact"] in ("serious", "critical")
        ] == []


def test_a_hostile_tree_runs_nothing(visit, hostile_page, tmp_path):
    place = tmp_path / "page.html"
    place.write_text(hostile_page, "utf-8")
    with visit(place) as page:
        page.get_by_role("button", name="Open all").click()
        for button in page.locator("tbody button").all():
            button.click()
        page.evaluate(OPEN_ALL)
        page.wait_for_timeout(200)
        assert page.evaluate("window.pwned") is None
        assert page.locator("img").count() == 0
        assert "</script><script>" in page.locator(".excerpt").first.inner_text()


def test_nothing_is_lost_without_storage_or_script(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator(".finding").count() >= 4
    assert page.locator(".finding .diff").first.is_visible()
    assert page.locator(".finding .cited").first.is_visible()
    assert page.locator("tbody tr").count() > 200
    assert not page.locator("#tools").is_visible()
    context.close()
