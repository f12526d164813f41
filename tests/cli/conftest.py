"""A vLLM in miniature, and the command run as a person runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from vlmend.cli.rig.sample import INNER, INTERFACES, MODELS, UTILS, registry, wrapper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forking import Zygote

HEIR = """\
from .bare import BareForConditionalGeneration


class HeirForConditionalGeneration(BareForConditionalGeneration):
    def embed(self):
        return None
"""


@pytest.fixture
def mini_files() -> dict[str, str]:
    """Two broken wrappers, an heir of one of them, and one that is sound."""
    names = {name.lower(): name for name in ("Bare", "Heir", "Other", "Wired")}
    models = {
        "__init__.py": "",
        "interfaces.py": INTERFACES,
        "registry.py": registry(names),
        "utils.py": UTILS,
        "inner.py": INNER,
        "bare.py": wrapper("Bare"),
        "heir.py": HEIR,
        "other.py": wrapper("Other"),
        "wired.py": wrapper("Wired", sound=True),
    }
    return {
        "PKG-INFO": "Metadata-Version: 2.4\nName: vllm\nVersion: 9.1.0\n",
        "vllm/__init__.py": "",
        **{f"{MODELS}/{name}": text for name, text in models.items()},
    }


@pytest.fixture
def mini(tmp_path: Path, mini_files: dict[str, str]) -> Path:
    """The miniature on disk, outside any git repository."""
    root = tmp_path / "mini"
    for name, text in mini_files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture(scope="session")
def _zygote() -> Iterator[Zygote]:
    """A process that has vlmend imported and forks for each run."""
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture
def vlmend(
    _zygote: Zygote,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Return a function that runs ``vlmend`` in a process of its own."""
    place = tmp_path_factory.mktemp("streams")

    def run(
        *words: str | Path,
        cwd: Path | None = None,
        stdin: str = "",
        **variables: str,
    ) -> Ended:
        streams = [place / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_bytes(b"")
        streams[0].write_bytes(stdin.encode())
        code = _zygote.ask(
            {
                "words": [str(word) for word in words],
                "cwd": str(cwd or Path.cwd()),
                "env": os.environ | variables,
                "streams": [str(stream) for stream in streams],
            }
        )
        return Ended(code, *(s.read_bytes().decode() for s in streams[1:]))

    return run
