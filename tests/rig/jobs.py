"""Plays GitHub's runner: executes the steps of ``action.yml`` as a job would.

Each ``run`` step runs for real, with its shell, its variables, and the runner's files.
Of the language of expressions there is what the action uses: inputs, the outputs of
earlier steps, and the job's token.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_EXPRESSION = re.compile(r"\$\{\{\s*([^}]+?)\s*\}\}")
_COMMAND = re.compile(r"::(?P<name>[\w-]+)(?: (?P<properties>[^:]*))?::(?P<data>.*)")
WATCH = '''\
"""Writes down every child process of the action, and all that its libraries log."""

import json
import os
import sys

PLACE = os.environ.get("VLMEND_TEST_WATCH")


def hook(event, args):
    if event != "subprocess.Popen":
        return
    _, words, _, env = args
    variables = dict(os.environ) if env is None else dict(env)
    line = {"argv": [os.fsdecode(w) for w in words], "env": variables}
    with open(f"{PLACE}/children", "a") as stream:
        stream.write(json.dumps(line, default=os.fsdecode) + "\\n")


if PLACE and "vlmend.cli.action" in " ".join(sys.orig_argv):
    import logging

    sys.addaudithook(hook)
    logging.basicConfig(filename=f"{PLACE}/log", level=logging.DEBUG)
'''


def evaluated(text: str, context: Mapping[str, Any]) -> str:
    """Put values in place of expressions; an unknown name is empty, as with GitHub."""

    def value(found: re.Match[str]) -> str:
        part: Any = context
        for name in found[1].split("."):
            part = part.get(name, "") if isinstance(part, Mapping) else ""
        assert isinstance(part, str), found[1]
        return part

    return _EXPRESSION.sub(value, text)


@dataclass
class Ran:
    """A job that has ended.

    Attributes:
        raw: what the steps printed, as it came.
        log: what the job shows: commands taken out, secrets masked.
        annotations: level, message.
        steps: exit code of each step that ran, by id.
    """

    raw: str = ""
    log: list[str] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)
    masked: list[str] = field(default_factory=list)
    steps: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    @property
    def ok(self) -> bool:
        return not any(self.steps.values())

    @property
    def errors(self) -> list[str]:
        return [message for level, message in self.annotations if level == "error"]

    @property
    def drafts(self) -> list[dict[str, Any]]:
        found = json.loads(self.outputs["drafts"])
        assert isinstance(found, list)
        return found

    def listen(self, text: str) -> None:
        """Read what a step printed as the runner does."""
        self.raw += text
        stopped = ""
        for line in text.splitlines():
            found = _COMMAND.fullmatch(line.strip())
            if stopped:
                if line.strip() == f"::{stopped}::":
                    stopped = ""
                else:
                    self._show(line)
            elif found is None:
                self._show(line)
            elif found["name"] == "stop-commands":
                stopped = found["data"]
            elif found["name"] == "add-mask":
                self.masked.append(_unescaped(found["data"]))
            else:
                self._show(line)
                self.annotations.append((found["name"], _unescaped(found["data"])))

    def _show(self, line: str) -> None:
        for secret in self.masked:
            line = line.replace(secret, "***")
        self.log.append(line)

    def everything(self) -> str:
        return "\n".join([*self.log, str(self.outputs), self.summary])


def _unescaped(data: str) -> str:
    return data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


def parsed_outputs(text: str) -> dict[str, str]:
    """Read the file behind ``GITHUB_OUTPUT``."""
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, sign, rest = re.match(r"([^=<]+)(=|<<)(.*)", line).groups()  # type: ignore[union-attr]
        if sign == "=":
            found[name] = rest
            continue
        held: list[str] = []
        for inner in lines:
            if inner == rest:
                break
            held.append(inner)
        found[name] = "\n".join(held)
    return found


@dataclass
class Machine:
    """Where jobs run: the action's checkout, and what is installed of it.

    Attributes:
        action: the folder that ``uses:`` was checked out to.
        temp: the folder for scratch files; kept, so that one installation serves all.
    """

    action: Path
    temp: Path

    def run(
        self,
        place: Path,
        inputs: Mapping[str, str],
        token: str = "",
        payload: Mapping[str, Any] | None = None,
        workspace: Path | None = None,
        **variables: str,
    ) -> Ran:
        """Run the action once.

        Args:
            place: scratch folder; nobody's home, and what is watched goes there.
            inputs: what stands below ``with:``.
            token: what ``github.token`` is.
            payload: what GitHub tells of the event.
            workspace: the job's folder.
            variables: more variables.
        """
        document = yaml.safe_load((self.action / "action.yml").read_text())
        given = {
            name: evaluated(str(one.get("default", "")), {"github": {"token": token}})
            for name, one in document["inputs"].items()
        }
        assert set(inputs) <= set(given)
        given |= inputs
        workspace = workspace or place / "workspace"
        workspace.mkdir(exist_ok=True)
        event = place / "event.json"
        event.write_text(json.dumps(payload or {}))
        kept = ("PATH", "LANG", "PIP_", "SSL_")
        env = {k: v for k, v in os.environ.items() if k.startswith(kept)}
        env |= {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TEMP": str(self.temp),
            "HOME": str(place),
            "NO_PROXY": "127.0.0.1",
            "VLMEND_TEST_WATCH": str(place),
            **variables,
        }
        ran = Ran()
        steps: dict[str, Any] = {}
        for number, step in enumerate(document["runs"]["steps"]):
            assert set(step) <= {"name", "id", "shell", "env", "run"}
            files = {
                name: place / f"{name.lower()}-{number}"
                for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
            }
            for file in files.values():
                file.write_text("")
            context = {"inputs": given, "steps": steps, "github": {"token": token}}
            own = {k: evaluated(v, context) for k, v in step.get("env", {}).items()}
            # An expression in a script would be a hole; there is none to evaluate.
            assert not _EXPRESSION.search(step["run"])
            script = place / f"step-{number}.sh"
            script.write_text(step["run"])
            assert step["shell"] == "bash"
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                cwd=workspace,
                env=env | own | {name: str(file) for name, file in files.items()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            ran.listen(done.stdout)
            ran.steps[step["id"]] = done.returncode
            told = parsed_outputs(files["GITHUB_OUTPUT"].read_text())
            steps[step["id"]] = {"outputs": told}
            ran.summary += files["GITHUB_STEP_SUMMARY"].read_text()
            if done.returncode:
                break
        ran.outputs = {
            name: evaluated(one["value"], {"steps": steps})
            for name, one in document["outputs"].items()
        }
        return ran


def set_up(folder: Path) -> Machine:
    """Check the action out and install it, as the first job on a machine does."""
    action = folder / "_actions" / "them" / "vlmend" / "v1"
    shutil.copytree(
        ROOT,
        action,
        symlinks=True,
        ignore=shutil.ignore_patterns(
            ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "tests"
        ),
    )
    (folder / "temp").mkdir()
    machine = Machine(action, folder / "temp")
    (folder / "first").mkdir()
    # What is asked for is no use, so nothing happens but the installation.
    first = machine.run(folder / "first", {"mode": "none"})
    assert first.steps["install"] == 0, first.everything()
    (packages,) = machine.temp.glob("vlmend-venv-*/lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text(WATCH)
    return machine
