"""Where a page goes, and how a person gets to see it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from vlmend.cli.console import note
from vlmend.cli.errors import UserError
from vlmend.cli.files import write_file

LONGEST_NAME: Final = 80


def page_place(asked: Path | None, target: str) -> Path:
    """Return the file that a page is written to; one in the cache if none was asked.

    Raises:
        UserError: it is plain already that nothing can be written there.
    """
    if asked is None:
        return _kept_place(target)
    if asked.is_dir():
        raise UserError(
            f"{asked}: is a folder", hint=f"name a file in it: {asked / 'vlmend.html'}"
        )
    if not asked.parent.is_dir():
        raise UserError(f"{asked}: there is no folder {asked.parent}")
    return asked


def _kept_place(target: str) -> Path:
    from vlmend.cli.cache import cache_directory, make_private

    folder = cache_directory() / "pages"
    make_private(folder)
    # One page per target: the next run replaces it.
    name = re.sub(r"[^\w.=-]+", "-", target).strip("-.")[-LONGEST_NAME:]
    return folder / f"{name or 'here'}.html"


def deliver(html: str, place: Path, *, opened: bool) -> None:
    """Write a page, say where it is, and open it in a browser if that is asked.

    Raises:
        UserError: it cannot be written.
    """
    write_file(place, html.encode())
    note(f"page: {place}")
    if not opened:
        return
    import webbrowser

    if not webbrowser.open(place.absolute().as_uri()):
        note("no browser could be started; open the page by hand")
