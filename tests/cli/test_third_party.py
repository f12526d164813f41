"""Codemods of other packages, installed as their users install them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import vlmend.codemods

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/third-party-codemods.md").read_text("utf-8")
FILE = re.compile(r"\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)```", re.DOTALL)
ONLY = ("--codemod", "telemetry-name")
MODELS = "vllm/model_executor/models"

BROKEN = """\
class Raises:
    id = "raises"
    summary = "fails while it judges"

    def judge(self, index):
        raise KeyError("two\\nlines")


class Lies:
    id = "lies"
    summary = "yields something else"

    def judge(self, index):
        yield "a finding"


class Nameless:
    id = "another-name"
    summary = "is not called as its entry point"

    def judge(self, index):
        return iter(())


class Taken:
    id = "forward-kwargs"
    summary = "has the id of another"

    def judge(self, index):
        return iter(())


HALF = object()
"""
ENTRIES = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "broken-codemods"
version = "1.0"

[project.entry-points."vlmend.codemods"]
raises = "broken_codemods:Raises"
lies = "broken_codemods:Lies"
nameless = "broken_codemods:Nameless"
forward-kwargs = "broken_codemods:Taken"
half = "broken_codemods:HALF"
missing = "broken_codemods.no_such_module:Codemod"

[tool.setuptools]
py-modules = ["broken_codemods"]
"""


class Environment:
    """A fresh virtual environment in which vlmend and its libraries are at hand."""

    def __init__(self, place: Path) -> None:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", place], check=True
        )
        self.python = place / "bin/python"
        (packages,) = place.glob("lib/python3*/site-packages")
        here = Path(vlmend.codemods.__file__).parents[2]
        ours = Path(ROOT / ".typing") if (here / "codemods").is_dir() else here
        lines = [
            str(ours),
            sysconfig.get_path("purelib"),
            sysconfig.get_path("platlib"),
        ]
        (packages / "vlmend-under-test.pth").write_text("\n".join(lines) + "\n")

    def install(self, project: Path) -> None:
        """Install a project with pip, as a user does; what it needs is there."""
        options = ("--quiet", "--no-deps", "--disable-pip-version-check")
        pip = (sys.executable, "-m", "pip", "--python", self.python)
        subprocess.run(
            [*pip, "install", *options, project],
            check=True,
            env=self._variables,
        )

    @property
    def _variables(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def vlmend(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, "-m", "vlmend.cli", *words],
            capture_output=True,
            text=True,
            env=self._variables,
        )


def project(place: Path, files: dict[str, str]) -> Path:
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    return place


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Environment:
    work = tmp_path_factory.mktemp("third-party")
    made = Environment(work / "venv")
    made.install(project(work / "acme-codemods", dict(FILE.findall(PAGE))))
    return made


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Environment:
    work = tmp_path_factory.mktemp("broken")
    made = Environment(work / "venv")
    made.install(
        project(work / "p", {"pyproject.toml": ENTRIES, "broken_codemods.py": BROKEN})
    )
    return made


def test_the_page_shows_a_whole_package():
    assert list(dict(FILE.findall(PAGE))) == ["pyproject.toml", "acme_codemods.py"]


def test_its_findings_are_reported_like_any_other(environment, mini):
    ended = environment.vlmend("scan", mini, *ONLY, "--format", "json", "--all")
    assert ended.returncode == 1, ended.stderr
    found = {
        f["class"].partition("For")[0]: f for f in json.loads(ended.stdout)["findings"]
    }
    assert {name: f["status"] for name, f in found.items()} == {
        "Bare": "fixable",
        "Heir": "blocked",
        "Other": "fixable",
        "Wired": "fixable",
    }
    assert found["Bare"]["file"] == f"{MODELS}/bare.py"


def test_it_runs_beside_the_built_in_ones(environment, mini):
    ended = environment.vlmend("scan", mini, "--format", "json")
    document = json.loads(ended.stdout)
    assert document["errors"] == []
    assert set(document["summary"]["by_codemod"]) > {"telemetry-name", "forward-kwargs"}


def test_its_fix_is_proven_and_written(environment, mini):
    ended = environment.vlmend("preview", mini, *ONLY, "--class", "Bare*")
    assert "+        self.telemetry_name = type(self).__name__\n" in ended.stdout
    assert environment.vlmend("fix", mini, *ONLY).returncode == 0
    text = (mini / f"{MODELS}/bare.py").read_text()
    assert "self.telemetry_name = type(self).__name__" in text
    again = environment.vlmend("scan", mini, *ONLY)
    assert again.returncode == 0, again.stdout + again.stderr


def test_it_is_explained_and_can_be_suppressed(environment, mini):
    told = environment.vlmend("explain", "telemetry-name").stdout
    assert told.startswith("# telemetry-name\n\nA registered multimodal class sets")
    place = mini / f"{MODELS}/bare.py"
    comment = "SupportsPP):  # vlmend: ignore[telemetry-name] in the next release"
    place.write_text(place.read_text().replace("SupportsPP):", comment))
    ended = environment.vlmend("scan", mini, *ONLY, "--class", "Bare*")
    assert ended.returncode == 0, ended.stdout


def test_a_change_of_its_code_is_seen_at_once(environment, mini):
    """Nothing that it said is taken from the cache."""
    words = ("scan", mini, *ONLY, "--class", "Bare*", "--format", "json")
    before = json.loads(environment.vlmend(*words).stdout)["findings"]
    (module,) = environment.python.parents[1].glob(
        "lib/python3*/site-packages/acme_codemods.py"
    )
    text = module.read_text()
    try:
        module.write_text(text.replace("does not set", "never sets"))
        after = json.loads(environment.vlmend(*words).stdout)["findings"]
    finally:
        module.write_text(text)
    assert "does not set" in before[0]["message"]
    assert "never sets" in after[0]["message"]


def test_the_example_is_typed(environment, tmp_path):
    pytest.importorskip("mypy")
    place = tmp_path / "acme_codemods.py"
    place.write_text(dict(FILE.findall(PAGE))["acme_codemods.py"])
    words = ["--strict", "--cache-dir", str(tmp_path / "cache"), str(place)]
    # In a process of its own: mypy raises the recursion limit of the one it runs in.
    command = [sys.executable, "-m", "mypy", "--python-executable"]
    done = subprocess.run(
        [*command, str(environment.python), *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_a_broken_one_costs_one_line_and_nothing_else(broken, mini):
    ended = broken.vlmend("scan", mini, "--format", "json")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    lines = sorted(ended.stderr.splitlines())
    assert len(lines) == 6, ended.stderr
    for name, said in (
        ("raises failed", "KeyError: "),
        ("lies failed", "TypeError: judge() yielded a str, no Finding"),
        ("nameless of broken-codemods", "its class says that it is 'another-name'"),
        ("forward-kwargs of broken-codemods", "there is a codemod of this id already"),
        ("half of broken-codemods", "broken_codemods:HALF has no id"),
        ("missing of broken-codemods", "cannot be loaded: ModuleNotFoundError"),
    ):
        assert any(f"codemod {name}" in line and said in line for line in lines), name
    found = {f["class"] for f in json.loads(ended.stdout)["findings"]}
    assert {"BareForConditionalGeneration", "OtherForConditionalGeneration"} <= found


def test_who_asks_for_others_does_not_hear_of_it(broken, mini):
    ended = broken.vlmend("scan", mini, "--codemod", "delegate-intermediate-tensors")
    assert (ended.returncode, ended.stderr) == (1, "")
