"""Diffs in two columns, and the colours of the lines in them."""

from __future__ import annotations

import pytest

from vlmend.cli.report.side_by_side import hunks
from vlmend.cli.report.syntax import MAX_COLUMNS, Run, Source, split_at

BEFORE = b"".join(b"line_%d = %d\n" % (n, n) for n in range(1, 31))


def told(before: bytes, after: bytes) -> list[list[tuple[str, str, str]]]:
    """Return each row as its kind and the text on either side."""
    return [
        [
            (
                row.kind,
                f"{row.before.number} {row.before.text}" if row.before else "",
                f"{row.after.number} {row.after.text}" if row.after else "",
            )
            for row in hunk
        ]
        for hunk in hunks(before, after)
    ]


def test_an_insertion_stands_beside_nothing():
    after = BEFORE.replace(b"line_9 =", b"new = 0\nline_9 =")
    (rows,) = told(BEFORE, after)
    assert rows == [
        ("same", "6 line_6 = 6", "6 line_6 = 6"),
        ("same", "7 line_7 = 7", "7 line_7 = 7"),
        ("same", "8 line_8 = 8", "8 line_8 = 8"),
        ("added", "", "9 new = 0"),
        ("same", "9 line_9 = 9", "10 line_9 = 9"),
        ("same", "10 line_10 = 10", "11 line_10 = 10"),
        ("same", "11 line_11 = 11", "12 line_11 = 11"),
    ]


def test_distant_changes_are_hunks_of_their_own():
    after = BEFORE.replace(b"line_2 = 2\n", b"").replace(b"= 29", b"= 290")
    first, second = told(BEFORE, after)
    assert ("removed", "2 line_2 = 2", "") in first
    assert ("changed", "29 line_29 = 29", "28 line_29 = 290") in second


def test_what_differs_within_a_line_is_marked():
    (rows,) = hunks(b"def f(self, x):\n", b"def f(self, x, **kwargs):\n")
    (row,) = rows
    assert row.before is not None
    assert row.after is not None
    assert [r.text for r in row.after.line if r.changed] == [", ", "**", "kwargs"] or (
        "".join(r.text for r in row.after.line if r.changed) == ", **kwargs"
    )
    assert not any(r.changed for r in row.before.line)


def test_lines_with_little_in_common_are_not_marked():
    (rows,) = hunks(b"return self.model(x)\n", b"raise ValueError(y)\n")
    for side in (rows[0].before, rows[0].after):
        assert side is not None
        assert not any(run.changed for run in side.line)


@pytest.mark.parametrize(
    "reshape",
    [
        pytest.param(lambda b: b.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda b: b"\xef\xbb\xbf" + b, id="BOM"),
        pytest.param(lambda b: b[:-1], id="no newline at the end"),
        pytest.param(lambda b: b"\x0c\n" + b, id="form feed"),
        pytest.param(lambda b: b"# caf\xe9\n" + b, id="not UTF-8"),
    ],
)
def test_odd_files_have_the_same_rows(reshape):
    before = reshape(BEFORE)
    after = before.replace(
        b"line_9 =", b"new = 0" + before[-2:-1].strip() + b"\nline_9 ="
    )
    (rows,) = hunks(before, after)
    assert [row.kind for row in rows].count("added") == 1


def test_equal_files_have_no_hunks():
    assert hunks(BEFORE, BEFORE) == []


def kinds(content: bytes, line: int) -> list[tuple[str, str]]:
    (runs,) = Source(content).coloured(line, line)
    return [(run.text.strip(), run.kind) for run in runs if run.text.strip()]


def test_keywords_names_and_comments_have_colours():
    assert kinds(b"def main(x):  # why\n", 1) == [
        ("def", "k"),
        ("main", "f"),
        ("(x):", ""),
        ("# why", "c"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'"""\nclass words\n"""\n', id="a docstring"),
        pytest.param(b"x = '''\nclass words\n'''\n", id="single quotes"),
        pytest.param(b'# it\'s """\ny = """\nclass words\n', id="after a comment"),
        pytest.param(b'z = "#"; x = """\nclass words\n"""', id="after a string"),
        pytest.param(b'x = """\\"""\nclass words\n"""\n', id="escaped quotes"),
    ],
)
def test_a_range_that_begins_inside_a_string_is_a_string(content):
    line = content[: content.index(b"class")].count(b"\n") + 1
    assert kinds(content, line)[0][1] == "s"


def test_a_range_after_a_string_is_code():
    assert kinds(b'"""\ntext\n"""\nclass Model:\n', 4)[0] == ("class", "k")


def test_lines_are_counted_as_the_parser_counts_them():
    source = Source("a = 1\x0c\nb = '\u2028'\r\nc\rd".encode())
    assert len(source) == 4
    assert source.text(4) == "d"
    assert source.text(5) is None
    assert source.text(0) is None


def test_long_lines_are_cut_and_controls_spelled_out():
    source = Source(b"x" * 4000 + b"\n\ta\x1b\x00\n")
    assert source.text(1) == "x" * MAX_COLUMNS + "…"
    assert source.text(2) == "    a\\x1b\\x00"


def test_marking_splits_runs_at_both_ends():
    assert split_at((Run("abcd", "k"), Run("ef")), 2, 5) == (
        Run("ab", "k"),
        Run("cd", "k", changed=True),
        Run("e", changed=True),
        Run("f"),
    )
