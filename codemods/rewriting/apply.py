"""Makes the edits of one file."""

from __future__ import annotations

from collections.abc import Sequence

from vlmend.codemods.rewriting.file_view import FileView
from vlmend.codemods.rewriting.splices import TextEdit


def apply_edits(source: bytes, edits: Sequence[TextEdit]) -> bytes:
    """Return a file with the edits made.

    Raises:
        EditError: an edit does not fit, or two of them touch the same text.
    """
    view = FileView(source)
    return view.splice([s for edit in edits for s in edit.splices(view)])
