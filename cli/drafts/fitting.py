"""A text that GitHub takes: what is too long is left out in whole parts, and said so.

GitHub refuses a text of more than 65,536 characters. Cutting anywhere would leave half
a table, an open fence, or a link to nowhere, and would lose the line by which the next
run knows its own work. So whole sections go first, the longest before the others, and
where no section is left, whole blocks: a paragraph, a list, a table, a fenced block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from vlmend.cli.errors import UserError

_LEFT_OUT: Final = "_Left out here: with it, the text is longer than GitHub takes._"
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TITLE: Final = re.compile(r"#{1,6} \S|\*\*[^*]+\*\*$")
_TOP: Final = re.compile(r"#{1,2} \S")


@dataclass(slots=True)
class _Part:
    """Some lines that stay together, or go together.

    Attributes:
        title: the heading above them; it stays.
        text: the lines.
        kept: they cannot go.
    """

    title: str
    text: str
    kept: bool
    gone: bool = False

    def shown(self) -> str:
        lines = [self.title] if self.title else []
        lines.append(_LEFT_OUT if self.gone else self.text)
        return "\n\n".join(line for line in lines if line)

    @property
    def gain(self) -> int:
        return 0 if self.gone or self.kept else len(self.text) - len(_LEFT_OUT)


def fitted(text: str, limit: int, keep: str) -> str:
    """Return a Markdown text of at most ``limit`` characters.

    Args:
        text: what is to be said.
        limit: how long it may be, in characters.
        keep: a line that must stay, wherever it is.

    Raises:
        UserError: it cannot be made to fit.
    """
    if len(text) <= limit:
        return text
    blocks = list(_blocks(text))
    for parts in (_sections(blocks, keep), [_Part("", b, keep in b) for b in blocks]):
        shown = _without_the_longest(parts, limit)
        if len(shown) <= limit:
            return shown
    raise UserError(
        f"the text has {len(text)} characters, and GitHub takes {limit}",
        hint="--group-by class puts less into one draft",
    )


def _without_the_longest(parts: list[_Part], limit: int) -> str:
    while True:
        pieces = [part.shown() for part in parts]
        # One note is enough where neighbours are left out.
        told = [p for n, p in enumerate(pieces) if not n or p != pieces[n - 1]]
        shown = "\n\n".join(piece for piece in told if piece) + "\n"
        longest = max(parts, key=lambda part: part.gain)
        if len(shown) <= limit or longest.gain <= 0:
            return shown
        longest.gone = True


def _sections(blocks: list[str], keep: str) -> list[_Part]:
    """Put the blocks below one heading together; what comes first is never left out."""
    parts: list[_Part] = [_Part("", "", kept=True)]
    first = True
    for block in blocks:
        if _TITLE.match(block) and "\n" not in block:
            # The reason for the change stands below the first heading of all.
            parts.append(_Part(block, "", kept=first and bool(_TOP.match(block))))
            first = False
        elif keep in block or block.startswith(("---", "<details>")):
            parts.append(_Part("", block, kept=keep in block))
        else:
            part = parts[-1]
            if not part.title and part.text and not part.kept:
                parts.append(part := _Part("", "", kept=False))
            part.text = f"{part.text}\n\n{block}" if part.text else block
    return [part for part in parts if part.title or part.text]


def _blocks(text: str) -> Iterator[str]:
    """Yield what empty lines part, outside of fences and of folded parts."""
    lines: list[str] = []
    fence = ""
    folded = 0
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            closes = mark is not None and line.strip() == mark[1]
            if closes and mark is not None and mark[1].startswith(fence):
                fence = ""
        elif mark is not None:
            fence = mark[1]
        else:
            folded += line.startswith("<details>") - line.startswith("</details>")
        if line.strip() or fence or folded > 0:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
