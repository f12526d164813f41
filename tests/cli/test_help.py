"""The command teaches itself, and starts without loading what it does not need."""

from __future__ import annotations

import re
import resource
import subprocess
import sys

import pytest

from vlmend.cli.main import VERBS

HEAVY = (
    "git",
    "github",
    "httpx2",
    "importlib.metadata",
    "jinja2",
    "libcst",
    "platformdirs",
    "rich",
    "sqlite3",
    "unearth",
    "vlmend.codemods",
)


def test_help_names_every_verb_with_an_example(vlmend):
    ended = vlmend("--help")
    assert ended.code == 0
    _, _, examples = ended.out.partition("  Examples\n")
    for verb in VERBS:
        assert f"vlmend {verb} " in examples.partition("Exit codes")[0]
    for code in (0, 1, 2, 3, 130):
        assert re.search(rf"\b{code} \w", examples)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_examples(vlmend, verb):
    ended = vlmend(verb, "--help")
    assert ended.code == 0
    _, found, examples = ended.out.partition("  Examples\n")
    assert found
    assert examples.count(f"    vlmend {verb}") >= 3
    assert max(map(len, ended.out.splitlines())) <= 100


@pytest.mark.parametrize("words", [["--help"], ["scan", "--help"], ["fix", "--help"]])
def test_help_loads_nothing_heavy(words):
    code = (
        "import sys\n"
        "from vlmend.cli.main import main\n"
        f"main({words!r})\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "[]\n"


def test_help_is_quick():
    def cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    spent = []
    for _ in range(5):
        before = cpu()
        subprocess.run(
            [sys.executable, "-m", "vlmend.cli", "--help"],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        spent.append(cpu() - before)
    # The best of five: other work on the machine can only add to it.
    assert min(spent) < 0.15


def test_version(vlmend):
    ended = vlmend("--version")
    assert (ended.code, ended.err) == (0, "")
    assert re.fullmatch(r"vlmend \d\S*\n", ended.out)


def test_an_unknown_verb_is_a_usage_error(vlmend):
    ended = vlmend("sacn")
    assert (ended.code, ended.out) == (2, "")
    assert "Usage: vlmend" in ended.err
    assert "sacn" in ended.err


def test_the_console_script_is_the_same_command():
    from importlib.metadata import PackageNotFoundError, entry_points, version

    try:
        version("vlmend")
    except PackageNotFoundError:
        pytest.skip("vlmend is not installed here")
    (script,) = entry_points(group="console_scripts", name="vlmend")
    assert script.value == "vlmend.cli.main:main"
