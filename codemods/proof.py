"""What a patch must show before anyone sees it.

Each check tries to refute the patch by itself, from the bytes alone, and returns in one
clause what is wrong, or nothing. The engine adds the last one: the target is judged
again with the patch laid over it.
"""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from collections import Counter
from collections.abc import Sequence

from vlmend.codemods.analysis.facts import parse


def refute(before: bytes, after: bytes, planned: Sequence[tuple[int, int]]) -> str:
    """Try to show from the text that a patch is wrong; return how, or nothing.

    Args:
        before: the untouched file.
        after: the patched file.
        planned: the lines (first, last) of ``before`` that the edits are for.
    """
    return (
        _unchanged(before, after)
        or _does_not_parse(after)
        or _other_conventions(before, after)
        or _lost_comments(before, after)
        or _unplanned(before, after, planned)
    )


def _unchanged(before: bytes, after: bytes) -> str:
    return "the edits change nothing" if before == after else ""


def _does_not_parse(after: bytes) -> str:
    try:
        parse(after)
    except (SyntaxError, ValueError) as error:
        return f"the result does not parse: {error}"
    return ""


def _other_conventions(before: bytes, after: bytes) -> str:
    """Compare encoding, byte order mark and kinds of line end."""
    if before.startswith(codecs.BOM_UTF8) != after.startswith(codecs.BOM_UTF8):
        return "the result has another byte order mark"
    if _encoding(before) != _encoding(after):
        return "the result has another encoding"
    if not _line_ends(after) <= _line_ends(before) | _default_end(before):
        return "the result has other line ends"
    return ""


def _encoding(source: bytes) -> str:
    return tokenize.detect_encoding(io.BytesIO(source).readline)[0]


def _line_ends(source: bytes) -> set[bytes]:
    return set(_LINE_END.findall(source))


def _default_end(source: bytes) -> set[bytes]:
    """A file without any line end gets the usual one."""
    return set() if _LINE_END.search(source) else {b"\n"}


_LINE_END = re.compile(rb"\r\n|\r|\n")


def _lost_comments(before: bytes, after: bytes) -> str:
    lost = _comments(before) - _comments(after)
    return f"the result loses the comment {min(lost)!r}" if lost else ""


def _comments(source: bytes) -> Counter[str]:
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    return Counter(t.string for t in tokens if t.type == tokenize.COMMENT)


def _unplanned(before: bytes, after: bytes, planned: Sequence[tuple[int, int]]) -> str:
    """Find every stretch of lines between the planned ones again, in order.

    The first and the last stretch must be the start and the end of the result.
    """
    old, new = _LINE_END.split(before), _LINE_END.split(after)
    kept: list[list[bytes]] = []
    start = 0
    for first, last in sorted(planned):
        kept.append(old[start : first - 1])
        start = last
    kept.append(old[start:])
    position = len(kept[0])
    if new[:position] != kept[0] or new[len(new) - len(kept[-1]) :] != kept[-1]:
        return "lines change that no edit was planned for"
    for stretch in kept[1:-1]:
        found = _find(new, stretch, position)
        if found is None:
            return "lines change between the planned ones"
        position = found + len(stretch)
    if position > len(new) - len(kept[-1]):
        return "lines are lost that no edit was planned for"
    return ""


def _find(lines: list[bytes], stretch: list[bytes], start: int) -> int | None:
    """Return where a stretch of lines next occurs."""
    for position in range(start, len(lines) - len(stretch) + 1):
        if lines[position : position + len(stretch)] == stretch:
            return position
    return None
