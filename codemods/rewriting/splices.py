"""What an edit comes down to: pieces of text replaced at exact places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Importing LibCST takes a fifth of a second that only writing is worth.
    from vlmend.codemods.rewriting.file_view import FileView

MAX_COLUMNS = 88
"""vLLM's line length (``ruff format`` in its ``pyproject.toml``)."""


class EditError(Exception):
    """An edit does not fit the file it is for; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the UTF-8 bytes ``start`` to ``end`` of a file's text by ``text``."""

    start: int
    end: int
    text: str


class TextEdit(Protocol):
    """An edit that can say which splices it comes down to."""

    def splices(self, view: FileView) -> Sequence[Splice]:
        """Return this edit's splices for the untouched file.

        Raises:
            EditError: the file is not as the edit describes it.
        """
        ...
