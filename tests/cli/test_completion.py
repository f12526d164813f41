"""Shell completion, as docs/guard.md sets it up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guard.md").read_text("utf-8")


@pytest.fixture
def bash(tmp_path):
    """Return a function that presses the tabulator key in a real bash."""
    program = tmp_path / "vlmend"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vlmend.cli "$@"\n')
    program.chmod(0o755)
    (setup,) = re.findall(r"\$ (eval .*bash_source vlmend\)\")", PAGE)

    def complete(line: str) -> list[str]:
        words = line.split(" ")
        listed = " ".join(f"'{word}'" for word in words)
        script = (
            f"{setup}\n"
            f"COMP_WORDS=({listed})\nCOMP_CWORD={len(words) - 1}\n"
            "compopt() { :; }\n"
            "_vlmend_completion vlmend\n"
            'printf "%s\\n" "${COMPREPLY[@]}"\n'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("vlmend sca", ["scan"], id="a verb"),
        pytest.param(
            "vlmend scan --codemod for", ["forward-kwargs"], id="the id of a codemod"
        ),
        pytest.param("vlmend scan --format sa", ["sarif"], id="a value"),
        pytest.param("vlmend scan --write", ["--write-baseline"], id="an option"),
        pytest.param("vlmend config ch", ["check"], id="a verb below a verb"),
    ],
)
def test_the_tabulator_key_completes(bash, line, expected):
    assert bash(line) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_of_the_page_is_supported(shell):
    assert f"_VLMEND_COMPLETE={shell}_source vlmend" in PAGE
    done = subprocess.run(
        [sys.executable, "-m", "vlmend.cli"],
        capture_output=True,
        text=True,
        env=os.environ | {"_VLMEND_COMPLETE": f"{shell}_source"},
    )
    assert done.returncode == 0
    assert "_VLMEND_COMPLETE" in done.stdout
