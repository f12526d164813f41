"""Take the picture of the page that the README shows.

``pip install '.[browser]'``, then ``python docs/screenshot.py``. It needs a Chromium,
and ``pngquant`` to make the picture small.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = "vllm==0.21.0"
SIZE = {"width": 1280, "height": 1420}
IMAGE = Path(__file__).resolve().parent / "images/page-0.21.0.png"


def main() -> None:
    """Make the page of a release and take a picture of its beginning."""
    chromium = os.environ.get("VLMEND_CHROMIUM") or shutil.which("chromium")
    IMAGE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder, "page.html")
        words = ["preview", TARGET, "--stat", "--exit-zero", "--html", str(place)]
        subprocess.run([sys.executable, "-m", "vlmend.cli", *words], check=True)
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--headless", "--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(place.as_uri())
        page.screenshot(path=IMAGE)
        browser.close()
    if shutil.which("pngquant"):
        subprocess.run(
            ["pngquant", "--force", "--strip", "--output", IMAGE, "200", IMAGE],
            check=True,
        )
    sys.stdout.write(f"{IMAGE}: {IMAGE.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main()
