"""On a real terminal: colour, progress, and none of either where they are unwanted."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ESCAPE = "\x1b["
ONLY = ("--codemod", "delegate-intermediate-tensors")


def on_terminal(*words: object, typed: str = "", **variables: str) -> str:
    """Run vlmend with a terminal for all its streams; return what was drawn on it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "vlmend.cli", *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color"} | variables,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    drawn = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # how Linux says that the other side closed
                raise
            break
        if not part:
            break
        drawn += part
    os.close(ours)
    process.wait(timeout=60)
    return drawn.decode()


@pytest.fixture(autouse=True)
def _colour_is_not_decided_yet(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize("verb", ["scan", "preview", "models"])
def test_colour(mini: Path, verb: str):
    assert ESCAPE in on_terminal(verb, mini, *ONLY)


@pytest.mark.parametrize("verb", ["scan", "preview", "models"])
@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_unwanted_colour(mini: Path, verb: str, variable: tuple[str, str]):
    drawn = on_terminal(verb, mini, *ONLY, **dict([variable]))
    assert "fixable" in drawn
    assert ESCAPE not in drawn.replace("\x1b[K", "")  # \x1b[K clears the progress line


def test_added_lines_are_green(mini: Path):
    drawn = on_terminal("preview", mini, *ONLY)
    assert "\x1b[32m+        self.make_empty_intermediate_tensors = (" in drawn


def test_answers_are_typed_on_the_terminal(mini: Path):
    drawn = on_terminal("fix", mini, *ONLY, "-i", typed="n\ny\n")
    assert drawn.count("Write this change?") == 2
    assert "\x1b[32m+        self.make_empty_intermediate_tensors = (" in drawn
    assert "1 file written." in drawn


def test_a_codemod_is_laid_out_for_reading(mini: Path):
    drawn = on_terminal("explain", "delegate-intermediate-tensors")
    assert not drawn.startswith("# ")
    assert "delegate-intermediate-tensors" in drawn


def test_control_characters_of_a_diff_do_not_act(mini: Path):
    place = mini / "vllm/model_executor/models/bare.py"
    text = place.read_text()
    place.write_text(text.replace("    def forward", "    # \x1b[2J\n    def forward"))
    drawn = on_terminal("preview", mini, *ONLY, "--class", "Bare*")
    assert "\x1b[2J" not in drawn
    assert r"# \x1b[2J" in drawn


def test_a_long_run_says_how_far_it_is_and_cleans_up(mini: Path, mini_files, tmp_path):
    bare = mini_files["vllm/model_executor/models/bare.py"]
    for number in range(1000):
        name = f"Bare{number}ForConditionalGeneration"
        text = bare.replace("BareForConditionalGeneration", name)
        (mini / f"vllm/model_executor/models/bare{number}.py").write_text(text)
    # An empty cache: what was read before would be over too soon to be worth a word.
    words = ("scan", mini, *ONLY, "--class", "Wired*")
    drawn = on_terminal(*words, VLMEND_CACHE_DIR=str(tmp_path / "cache"))
    before_result = drawn.partition(" judged by ")[0]
    assert f"judging {mini}"[:60] in before_result
    assert "%" in before_result
    assert "\r\x1b[K" in before_result[before_result.rindex("%") :]
