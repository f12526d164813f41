"""Which server is meant, and how repositories and branches are named on it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from vlmend.cli.errors import UserError

PUBLIC_API: Final = "https://api.github.com"
API_VARIABLE: Final = "GITHUB_API_URL"
"""Set in every Actions job, and by whoever works with an Enterprise server."""

_NAME: Final = re.compile(
    r"(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/(?P<name>[A-Za-z0-9_.][\w.-]{0,99})",
    re.ASCII,
)
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_BAD_REF: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|$)|/\.")


@dataclass(frozen=True, slots=True)
class Server:
    """A GitHub, by the address of its API.

    Attributes:
        api: base URL of the REST API, without a final slash.
        web: base URL of the web pages and of git over HTTPS.
        host: its name, for messages and for the ``gh`` program.
    """

    api: str
    web: str
    host: str

    def git_url(self, repository: str) -> str:
        """Return the address that git uses; there is never a secret in it."""
        return f"{self.web}/{repository}.git"


def server_at(api_url: str | None) -> Server:
    """Return the server behind ``--api-url``, ``GITHUB_API_URL``, or github.com.

    Raises:
        UserError: not the address of an API, or one that would send the token in clear.
    """
    url = (api_url or os.environ.get(API_VARIABLE) or PUBLIC_API).rstrip("/")
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("https", "http") or not host or "@" in parts.netloc:
        raise UserError(
            f"{url}: not the address of a GitHub API",
            hint="for Enterprise: --api-url https://HOST/api/v3",
        )
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise UserError(f"{url}: a token is not sent unencrypted", hint="use https://")
    if host == "api.github.com":
        return Server(url, "https://github.com", "github.com")
    # Enterprise Server has the API below its own name, Enterprise Cloud beside it.
    netloc = parts.netloc.removeprefix("api.") if not parts.path else parts.netloc
    return Server(url, f"{parts.scheme}://{netloc}", netloc)


def repository_name(text: str, option: str) -> str:
    """Return ``owner/name`` if the text is one.

    Raises:
        UserError: it is not.
    """
    found = _NAME.fullmatch(text)
    if found is None or found["name"] in (".", ".."):
        raise UserError(
            f"{option} {text}: not a repository", hint="write OWNER/REPO, as on GitHub"
        )
    return text.removesuffix(".git")


def branch_name(text: str, option: str) -> str:
    """Return the name of a branch if the text can be one.

    Raises:
        UserError: git would not take it, or it could be read as an option.
    """
    if not text or _BAD_REF.search(text) or text[0] in "-./" or text[-1] in "./":
        raise UserError(f"{option} {text}: not the name of a branch")
    return text


def same_repository(one: str, other: str) -> bool:
    """Compare two ``owner/name``; GitHub does not care about case."""
    return one.casefold() == other.casefold()
