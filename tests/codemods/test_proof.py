"""The text-only checks that a patch has to pass before anyone sees it."""

from __future__ import annotations

import pytest

from vlmend.codemods.proof import refute

BEFORE = b"import os\n\n# why\nvalue = 1  # keep\n\nlast = 2\n"
ADDED = BEFORE.replace(b"\nlast", b"\nadded = 3\nlast")
INSERTION = [(6, 5)]


def test_an_insertion_where_it_was_planned_passes() -> None:
    assert refute(BEFORE, ADDED, INSERTION) == ""


def test_two_edits_of_one_file_pass_together() -> None:
    after = ADDED.replace(b"value = 1", b"value = 10")
    assert refute(BEFORE, after, [(4, 4), (6, 5)]) == ""


@pytest.mark.parametrize(
    ("after", "planned", "said"),
    [
        pytest.param(BEFORE, INSERTION, "change nothing", id="nothing changes"),
        pytest.param(ADDED + b")", INSERTION, "not parse", id="it does not parse"),
        pytest.param(
            ADDED.replace(b"\n", b"\r\n"), INSERTION, "line ends", id="other line ends"
        ),
        pytest.param(
            b"\xef\xbb\xbf" + ADDED, INSERTION, "byte order", id="a new byte order mark"
        ),
        pytest.param(
            b"# coding: latin-1\n" + ADDED, INSERTION, "encoding", id="other encoding"
        ),
        pytest.param(
            ADDED.replace(b"  # keep", b""), INSERTION, "# keep", id="a lost comment"
        ),
        pytest.param(
            ADDED.replace(b"import os", b"import sys"),
            INSERTION,
            "no edit was planned",
            id="a line before the planned one changes",
        ),
        pytest.param(
            ADDED.replace(b"last = 2", b"last = 4"),
            INSERTION,
            "no edit was planned",
            id="a line after the planned one changes",
        ),
        pytest.param(
            BEFORE.replace(b"import os\n", b"import os\nadded = 3\n"),
            INSERTION,
            "no edit was planned",
            id="the text lands elsewhere",
        ),
        pytest.param(
            ADDED.replace(b"import os", b"import io").replace(b"\n\n# why", b"\n# why"),
            [(1, 1), (6, 5)],
            "between the planned",
            id="a line between two edits is lost",
        ),
        pytest.param(
            BEFORE.replace(b"\nlast = 2", b"last = 2"),
            INSERTION,
            "planned",
            id="a line is lost",
        ),
    ],
)
def test_a_wrong_result_is_refuted(
    after: bytes, planned: list[tuple[int, int]], said: str
) -> None:
    assert said in refute(BEFORE, after, planned)
