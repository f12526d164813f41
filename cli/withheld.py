"""The token's variables, taken out of the environment before anything is started.

No program that vlmend starts inherits them: not git, not a hook, not the code that
``verify`` runs. Whoever talks to the forge asks for the text here.
"""

from __future__ import annotations

import os
from typing import Final

VARIABLES: Final = ("GH_TOKEN", "GITHUB_TOKEN")
_texts: dict[str, str] = {}


def withhold() -> None:
    """Take the variables out of the environment and remember what they held."""
    for name in VARIABLES:
        text = os.environ.pop(name, "").strip()
        if text:
            _texts[name] = text


def withheld() -> list[tuple[str, str]]:
    """Return the variables that held something, the one that counts first."""
    withhold()
    return [(name, _texts[name]) for name in VARIABLES if name in _texts]
