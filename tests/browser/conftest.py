"""A real Chromium that opens real pages, and reports all that goes wrong in them.

The browser is the machine's own: ``VLMEND_CHROMIUM`` names it where it is not called
``chromium``. ``VLMEND_AXE`` names a copy of ``axe.min.js``; without it, npm gets one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
DESKTOP = {"width": 1440, "height": 1000}


def _executable() -> str:
    named = os.environ.get("VLMEND_CHROMIUM")
    found = named or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None
    )
    if found is None:
        pytest.fail("no Chromium: install it, or name it in VLMEND_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium once for all tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=_executable(), args=list(FLAGS)
        )
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser) -> Callable[..., Any]:
    """Return a context manager that opens a file; at its end, all must have been well.

    A console error, an uncaught exception, a dialog, or a request for anything but the
    file itself fails the test.
    """

    @contextmanager
    def open_page(place: Path, anchor: str = "", **options: Any) -> Iterator[Page]:
        trouble: list[str] = []
        address = place.as_uri()
        context = browser.new_context(**{"viewport": DESKTOP, **options})
        page = context.new_page()
        page.on(
            "console",
            lambda m: (
                trouble.append(m.text) if m.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.partition("#")[0] == address
                or request.url.startswith("data:")
                else trouble.append(request.url)
            ),
        )
        page.goto(address + anchor)
        yield page
        assert trouble == []
        context.close()

    return open_page


@pytest.fixture(scope="session")
def page_file(
    release: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the page of a real release."""
    from vlmend.cli.main import main

    place = tmp_path_factory.mktemp("page") / "page.html"
    code = main(["preview", str(release("0.21.0")), "--stat", "--html", str(place)])
    assert code == 1
    return place


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the source of axe-core."""
    named = os.environ.get("VLMEND_AXE")
    if named is None:
        folder = tmp_path_factory.mktemp("axe")
        subprocess.run(
            ["npm", "install", "--no-save", "--prefix", str(folder), "axe-core"],
            check=True,
            capture_output=True,
        )
        named = str(folder / "node_modules/axe-core/axe.min.js")
    return Path(named).read_text("utf-8")
