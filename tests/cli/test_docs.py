"""The documentation says what the code does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vlmend.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})
README = (ROOT / "README.md").read_text("utf-8")


def test_generated_pages_are_in_step():
    done = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr + "run: python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path):
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\((?!https?://|mailto:|#)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target


def test_the_readme_sets_up_with_the_two_commands():
    assert "python3 -m venv .venv && . .venv/bin/activate" in README
    assert "pip install . && vlmend preview vllm==0.21.0" in README
    assert "pip install '.[test]' && pytest" in README


def test_the_readme_names_every_verb():
    for verb in VERBS:
        assert f"`{verb}`" in README, verb


EXAMPLE = re.compile(r"```json\n(.*?)```", re.DOTALL)


def test_the_json_shown_in_the_docs_follows_the_schema():
    from jsonschema import Draft202012Validator

    from vlmend.cli.report.json import schema

    (example,) = EXAMPLE.findall((ROOT / "docs/json.md").read_text("utf-8"))
    Draft202012Validator(schema("scan")).validate(json.loads(example))


TRANSCRIPT = re.compile(
    r"<!-- transcript -->\n```console\n\$ vlmend (.*)\n((?:.*\n)*?)```"
)


@pytest.mark.parametrize(
    ("words", "shown"),
    [pytest.param(*found, id=found[0]) for found in TRANSCRIPT.findall(README)],
)
def test_the_readme_shows_what_really_appears(vlmend, release, words, shown):
    for version in re.findall(r"vllm==(\S+)", words):
        release(version)
    ended = vlmend(*words.split())
    lines = (ended.out + ended.err).splitlines()
    told = "".join(f"{line.rstrip()}\n" for line in lines)
    # A transcript may leave lines out, where it says so.
    parts = re.split(r"^\[\.\.\.\]\n", shown, flags=re.MULTILINE)
    pattern = "(?:.*\n)*".join(map(re.escape, parts))
    assert re.fullmatch(pattern, told), "run: python docs/generate.py --transcripts"


def test_the_codemod_of_the_contributing_guide_works_as_printed(mini, tmp_path):
    from vlmend.codemods import DirectoryTree, scan

    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    code = re.search(r"```python\n(\"\"\"placeholder-text.*?)```", guide, re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(compile(code[1], "CONTRIBUTING.md", "exec"), names)
    interfaces = mini / "vllm/model_executor/models/interfaces.py"
    wired = mini / "vllm/model_executor/models/wired.py"
    method = (
        "    @classmethod\n    def get_placeholder_str(cls, modality, i):\n        "
    )
    marker = "\n\nclass SupportsPP("
    text = interfaces.read_text()
    interfaces.write_text(text.replace(marker, f"\n{method}...\n{marker}"))
    wired.write_text(f'{wired.read_text()}\n{method}return "<image>"\n')
    result = scan(DirectoryTree(mini), codemods=[names["PlaceholderText"]()])
    assert result.errors == ()
    assert {f.class_name.partition("For")[0]: f.status for f in result.findings} == {
        "Bare": "blocked",
        "Heir": "blocked",
        "Other": "blocked",
        "Wired": "satisfied",
    }
