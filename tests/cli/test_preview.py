"""``vlmend preview``: a diff that git takes, that explains itself, and no traces."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from vlmend.cli.report.json import schema

ONLY = ("--codemod", "delegate-intermediate-tensors")
BARE = "vllm/model_executor/models/bare.py"


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file below ``root`` with its content and its time of change."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file()
    }


def git_apply(root: Path, diff: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Apply a diff the way a reader of the help text would."""
    return subprocess.run(
        ["git", "apply", *options, "-"],
        cwd=root,
        input=diff.encode(),
        capture_output=True,
    )


def test_git_apply_takes_the_diff_and_heals_the_tree(vlmend, mini):
    ended = vlmend("preview", mini, *ONLY)
    assert ended.code == 1
    assert git_apply(mini, ended.out).returncode == 0
    assert vlmend("scan", mini, *ONLY).code == 0


def test_preview_shows_what_fix_writes(vlmend, mini, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(mini, other)
    git_apply(mini, vlmend("preview", mini).out)
    assert vlmend("fix", other).code == 0
    for path in mini.rglob("*.py"):
        assert (other / path.relative_to(mini)).read_bytes() == path.read_bytes()


def test_each_file_is_headed_by_its_finding_and_each_hunk_by_its_class(vlmend, mini):
    lines = vlmend("preview", mini, *ONLY).out.splitlines()
    start = lines.index(f"--- a/{BARE}")
    head = []
    for line in reversed(lines[:start]):
        if not line.startswith("# "):
            break
        head.insert(0, line)
    assert head[0].startswith("# fixable BareForConditionalGeneration (delegate-")
    assert head[1].startswith(f"# {BARE}:")
    assert len(head) > 2
    hunk = next(line for line in lines[start:] if line.startswith("@@"))
    assert hunk.endswith(
        "@@ BareForConditionalGeneration: delegate-intermediate-tensors"
    )


def test_nothing_is_written(vlmend, mini):
    before = snapshot(mini)
    vlmend("preview", mini)
    vlmend("preview", mini, "--stat")
    vlmend("preview", mini, "--format", "json")
    assert snapshot(mini) == before


@pytest.mark.parametrize(
    "reshape",
    [
        pytest.param(lambda b: b.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda b: b"\xef\xbb\xbf" + b, id="BOM"),
        pytest.param(lambda b: b.rstrip(b"\n"), id="no newline at the end"),
        pytest.param(
            lambda b: b.replace(b"config\n", b"config  \n"), id="trailing space"
        ),
        pytest.param(
            lambda b: b"# -*- coding: utf-8 -*-\n# caf\xc3\xa9\n" + b, id="UTF-8"
        ),
    ],
)
def test_odd_files_survive_the_way_through_git_apply(vlmend, mini, reshape):
    place = mini / BARE
    before = reshape(place.read_bytes())
    place.write_bytes(before)
    ended = vlmend("preview", mini, *ONLY, "--class", "Bare*")
    assert "1 fixable" in ended.err
    done = git_apply(mini, ended.out, "--whitespace=nowarn")
    assert done.returncode == 0, done.stderr
    after = place.read_bytes()
    assert after.startswith(before[:40])
    assert after.endswith(before[-40:])
    assert len(after) > len(before)
    assert vlmend("scan", mini, *ONLY, "--class", "Bare*").code == 0


def test_the_result_is_on_stdout_and_the_rest_on_stderr(vlmend, mini):
    ended = vlmend("preview", mini, *ONLY)
    assert "judged; 2 fixable" in ended.err
    assert "judged" not in ended.out


def test_a_sound_tree_has_an_empty_diff(vlmend, mini):
    ended = vlmend("preview", mini, *ONLY, "--class", "Wired*")
    assert (ended.code, ended.out) == (0, "")
    assert "nothing wrong was found" in ended.err


def test_stat_counts_like_git(vlmend, mini):
    counted = vlmend("preview", mini, *ONLY, "--stat").out.splitlines()
    diff = vlmend("preview", mini, *ONLY).out
    said = git_apply(mini, diff, "--stat").stdout.decode().splitlines()
    assert counted[0].split() == said[0].split()
    assert counted[-1].startswith(" 2 files to change, ")


def test_exit_zero(vlmend, mini):
    assert vlmend("preview", mini, "--exit-zero").code == 0


def test_json_is_the_scan_document_with_a_diff_for_each_finding(vlmend, mini):
    ended = vlmend("preview", mini, *ONLY, "--format", "json")
    document = json.loads(ended.out)
    Draft202012Validator(schema("scan")).validate(document)
    for finding in document["findings"]:
        assert git_apply(mini, finding["diff"], "--check").returncode == 0


def test_stat_and_json_do_not_go_together(vlmend, mini):
    ended = vlmend("preview", mini, "--stat", "--format", "json")
    assert ended.code == 2
    assert "Usage:" in ended.err


def test_the_main_job_on_a_real_release(vlmend, release):
    tree = release("0.21.0")
    ended = vlmend("preview", tree, *ONLY)
    assert ended.code == 1
    assert "models/cohere2_vision.py" in ended.out
    done = git_apply(tree, ended.out, "--check")
    assert done.returncode == 0, done.stderr
    document = json.loads(vlmend("scan", tree, "--all", "--format", "json").out)
    Draft202012Validator(schema("scan")).validate(document)
    assert document["target"]["version"] == "0.21.0"
    assert len(document["findings"]) > 200


def test_no_git_is_needed(vlmend, mini):
    ended = vlmend("preview", mini, *ONLY, PATH="")
    assert ended.code == 1
    assert ended.out.count("--- a/") == 2
