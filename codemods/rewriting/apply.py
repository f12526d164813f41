"""Makes the edits of one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vlmend.codemods.rewriting.file_view import FileView
from vlmend.codemods.rewriting.splices import TextEdit


@dataclass(frozen=True, slots=True)
class Applied:
    """A file with its edits made.

    Attributes:
        after: the new bytes, in the file's own encoding.
        planned: the lines of the untouched file that the edits touch, as (first, last);
            an insertion before line ``n`` is ``(n, n - 1)``.
    """

    after: bytes
    planned: tuple[tuple[int, int], ...]


def apply_edits(source: bytes, edits: Sequence[TextEdit]) -> Applied:
    """Make the edits of one file.

    Raises:
        EditError: an edit does not fit, or two of them touch the same text.
    """
    view = FileView(source)
    splices = [splice for edit in edits for splice in edit.splices(view)]
    planned = tuple(view.lines_between(s.start, s.end) for s in splices)
    return Applied(view.splice(splices), planned)
