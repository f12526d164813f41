"""The token: found once, shown never, and handed to nothing but git's network calls."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Final
from urllib.parse import quote

from vlmend.cli.errors import UserError
from vlmend.cli.withheld import withheld

_MASK: Final = "[token]"
_INSTALLATION: Final = "ghs_"


class Token:
    """A secret that does not show itself.

    Attributes:
        source: where it came from, for messages.
    """

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def __repr__(self) -> str:
        return f"Token({_MASK}, from {self.source})"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a token is not written down")

    def reveal(self) -> str:
        """Return the secret itself; whoever calls this must not keep or print it."""
        return self._text

    @property
    def is_installation(self) -> bool:
        """Whether it is an app's: Actions' own ``GITHUB_TOKEN`` is one, too."""
        return self._text.startswith(_INSTALLATION)

    def masked(self, text: str) -> str:
        """Return text with every form of the secret taken out."""
        basic = b64encode(f"x-access-token:{self._text}".encode()).decode()
        for form in (self._text, quote(self._text, safe=""), basic):
            text = text.replace(form, _MASK)
        return text


def find_token(file: Path | None, host: str) -> Token:
    """Take the token from ``--token-file``, the environment, or the ``gh`` program.

    It is removed from the environment: no program that is started later inherits it.

    Raises:
        UserError: there is none, or it is not one line of printable text.
    """
    held = withheld()
    if file is not None:
        return _checked(_from_file(file), str(file))
    for name, text in held:
        return _checked(text, name)
    text = _from_gh(host)
    if text:
        return _checked(text, "gh auth token")
    raise UserError(
        "no GitHub token",
        hint="set GH_TOKEN or GITHUB_TOKEN, give --token-file, or log in with"
        " `gh auth login`",
    )


def optional_token(host: str) -> Token | None:
    """Return the token if there is one: public repositories are read without."""
    try:
        return find_token(None, host)
    except UserError:
        return None


def _from_file(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UserError(f"{file}: cannot be read: {reason}") from None


def _from_gh(host: str) -> str:
    try:
        done = subprocess.run(
            ["gh", "auth", "token", "--hostname", host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _checked(text: str, source: str) -> Token:
    if not text or not text.isprintable() or not text.isascii() or " " in text:
        # The text itself is not repeated: it may be a secret with a stray character.
        raise UserError(f"{source}: does not hold a token: one line, no spaces")
    return Token(text, source)
