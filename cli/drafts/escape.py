"""Text from a tree, made harmless for Markdown, HTML, mentions and commit trailers.

Everything that a template prints is escaped unless it is :class:`Markdown`, and only
the functions here make that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from vlmend.cli.console import printable


class Markdown(str):
    """Markdown that was made by us, or made harmless by us."""

    __slots__ = ()


_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#!|~$&]|(?<=\A)[-+=.]|(?<=\A\d)[.)])")
_LINKING: Final = re.compile(r"(?<!\w)(@|GH-|gh-)(?=\w)|(#)(?=\d)|(://|www\.)")
_BREAK: Final = "\u200b"
"""Invisible; keeps a name from mentioning somebody and a number from linking."""
_IDENTIFIER: Final = re.compile(
    r"(?:self\.)?[A-Za-z_][\w.]*(?:_\w+|[a-z0-9][A-Z]\w*)[\w.]*(?:\(\))?"
    r"|self\.\w[\w.]*|(?:[\w.-]+/)+[\w.-]+\.\w+(?::\d+)?|__\w+__"
)
_FIELD: Final = 2000
"""No single text from a tree is longer than this in a pull request."""


def flat(text: str) -> str:
    """Return text on one line, without control characters, in bounded length."""
    # Control characters are spelt out; only what separates words becomes a space.
    return printable(" ".join(text[:_FIELD].split()))


def unlinked(text: str) -> str:
    """Return text that mentions nobody and links to nothing."""
    return _LINKING.sub(lambda m: f"{m[1] or m[2] or m[3]}{_BREAK}", text)


def plain(text: object) -> Markdown:
    """Return text that Markdown shows as it is, on one line."""
    if isinstance(text, Markdown):
        return text
    harmless = unlinked(flat(str(text)))
    return Markdown(_SPECIAL.sub(_escaped, harmless))


def _escaped(found: re.Match[str]) -> str:
    character = found[1]
    if character in "<>&":
        return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[character]
    return f"\\{character}"


def html(text: object) -> Markdown:
    """Return text for the inside of an HTML element."""
    harmless = unlinked(flat(str(text)))
    for character, name in (("&", "amp"), ("<", "lt"), (">", "gt")):
        harmless = harmless.replace(character, f"&{name};")
    return Markdown(harmless)


def code(text: object) -> Markdown:
    """Return text as a code span, whatever backticks are in it."""
    harmless = flat(str(text))
    if not harmless:
        return Markdown("")
    runs = [len(run) for run in re.findall("`+", harmless)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if runs or harmless[0] == " " else ""
    return Markdown(f"{fence}{pad}{harmless}{pad}{fence}")


def cell(text: object) -> Markdown:
    """Return text for a table: a cell ends at a pipe, even inside a code span."""
    return Markdown(re.sub(r"(?<!\\)\|", r"\\|", plain(text)))


def prose(text: object) -> Markdown:
    """Return a sentence of ours that holds names from a tree: names become code."""
    if isinstance(text, Markdown):
        return text
    sentence = flat(str(text))
    parts: list[str] = []
    at = 0
    for found in _IDENTIFIER.finditer(sentence):
        name = found[0].rstrip(".")
        parts += [_between(sentence[at : found.start()]), code(name)]
        at = found.start() + len(name)
    return Markdown("".join([*parts, _between(sentence[at:])]))


def worded(text: object) -> Markdown:
    """Return a sentence of ours in which backticks already mark what is code."""
    parts = flat(str(text)).split("`")
    return Markdown(
        "".join(
            code(part) if at % 2 else _between(part, prose)
            for at, part in enumerate(parts)
        )
    )


def _between(text: str, shown: Callable[[str], str] | None = None) -> str:
    """Show a piece of a sentence (escaped) and keep the spaces at its ends."""
    inner = text.strip()
    if not inner:
        return " " if text else ""
    lead = " " if text[0] == " " else ""
    tail = " " if text[-1] == " " else ""
    return f"{lead}{(shown or plain)(inner)}{tail}"


def fenced(text: str, language: str = "") -> Markdown:
    """Return a block of code that nothing inside can end."""
    body = "\n".join(printable(line) for line in text.rstrip("\n").split("\n"))
    runs = [len(run) for run in re.findall("`{3,}", body)]
    fence = "`" * max(3, max(runs, default=0) + 1)
    return Markdown(f"{fence}{language}\n{body}\n{fence}")


def link(text: object, url: str) -> Markdown:
    """Return a link; the address is quoted, the text is shown as code."""
    scheme, _, rest = url.partition("://")
    if scheme not in ("https", "http"):
        return code(text)
    safe = quote(rest, safe="/:#?=&@%.-_~")
    return Markdown(f"[{code(text)}]({scheme}://{safe})")


def commit_text(text: object) -> str:
    """Return text for a commit message: one line, no mention, no issue closed."""
    return unlinked(flat(str(text)))


def shell(text: object) -> str:
    """Return text as one word of a shell command."""
    from shlex import quote as shell_quote

    return shell_quote(flat(str(text)))
