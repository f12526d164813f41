"""When findings come and go: over small sequences, and over a real repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from vlmend.cli.past.lives import Moment, Snapshot, lives_of
from vlmend.cli.past.timeline import timeline
from vlmend.codemods import Finding, Status

BROKEN = Finding("c", "vllm.m", "M", "vllm/m.py", 3, 1, Status.FIXABLE, "message")
SOUND = replace(BROKEN, status=Status.SATISFIED, line=9)


def states(*findings: Finding | None) -> list[Snapshot]:
    return [
        Snapshot(
            Moment(str(at)),
            () if finding is None else (finding,),
            frozenset() if finding is None else frozenset({finding.class_name}),
        )
        for at, finding in enumerate(findings)
    ]


@pytest.mark.parametrize(
    ("findings", "seen", "gone", "end"),
    [
        ((SOUND, BROKEN, BROKEN, SOUND), (1, 2), 3, "keeps the contract: vllm/m.py:9"),
        ((BROKEN, BROKEN), (0, 1), None, ""),
        ((BROKEN, None), (0,), 1, "the class is gone"),
        (
            (BROKEN, replace(BROKEN, module="vllm.n", file="vllm/n.py"), SOUND),
            (0, 1),
            2,
            "keeps the contract: vllm/m.py:9",
        ),
        (
            (BROKEN, replace(BROKEN, status=Status.EXEMPT)),
            (0,),
            1,
            "exempt: vllm/m.py:3",
        ),
    ],
    ids=["fixed", "still there", "removed", "moved, then fixed", "exempt now"],
)
def test_a_life(findings, seen, gone, end):
    (life,) = lives_of(states(*findings))
    assert (life.seen, life.gone, life.end) == (seen, gone, end)


def test_a_defect_that_comes_back_lives_twice():
    lives = lives_of(states(BROKEN, SOUND, BROKEN))
    assert [life.seen for life in lives] == [(0,), (2,)]


def test_the_picture_is_well_formed_and_escapes_names():
    snapshots = states(replace(BROKEN, class_name="<M & N>"), None)
    root = ET.fromstring(timeline(snapshots, lives_of(snapshots)))
    assert "<M & N>" in [(e.text or "").strip() for e in root.iter()]


def test_commits_that_bring_and_mend_are_named(release, tmp_path, git):
    repo = tmp_path / "clone"
    shutil.copytree(
        release("0.21.0") / "vllm",
        repo / "vllm",
        ignore=lambda _, names: [
            n for n in names if "." in n and not n.endswith(".py")
        ],
    )
    file = repo / "vllm/model_executor/models/cohere2_vision.py"
    git(repo, "init", "-q", "-b", "main")

    def commit(subject: str) -> str:
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", subject)
        return git(repo, "rev-parse", "HEAD")

    broken = file.read_bytes()
    mended = (release("0.22.0") / file.relative_to(repo)).read_bytes()
    file.write_bytes(mended)
    start = commit("Start")
    file.write_bytes(broken)
    bringing = commit("[Model] Rework Cohere2Vision (#41)")
    (repo / "vllm/version.py").write_text("VERSION = 1\n")
    commit("Change something else (#42)")
    file.write_bytes(mended)
    mending = commit("[Bugfix] Mend Cohere2Vision (#43)")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "vlmend.cli", "history", str(repo)),
            *("--git", f"{start}..HEAD", "--class", "Cohere2VisionFor*"),
            *("--codemod", "delegate-intermediate-tensors", "--format", "json"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [state["commit"] for state in document["states"]] == [
        start,
        bringing,
        mending,
    ]
    (life,) = document["lives"]
    assert (life["came"]["commit"], life["came"]["pull"]) == (bringing, 41)
    assert (life["went"]["commit"], life["went"]["pull"]) == (mending, 43)


def test_over_what_must_be_said():
    done = subprocess.run(
        [sys.executable, "-m", "vlmend.cli", "history"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--releases SPEC, or --git" in done.stderr


def test_a_release_that_cannot_be_had_is_left_out_and_named(package_index, tree_files):
    for version in ("9.1.0", "9.2.0", "9.3.0"):
        digest = "0" * 64 if version == "9.2.0" else None
        package_index.add(version, tree_files, digest=digest)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "vlmend.cli", "history"),
            *("--releases", "vllm>=9", "--format", "json"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [state["name"] for state in document["states"]] == ["9.1.0", "9.3.0"]
    assert "left out: " in done.stderr
    assert "9.2.0" in done.stderr
