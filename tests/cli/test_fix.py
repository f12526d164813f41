"""``vlmend fix``: all that was asked is written, and nothing is ever half written."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

MODELS = "vllm/model_executor/models"
BARE = f"{MODELS}/bare.py"
OTHER = f"{MODELS}/other.py"
ONLY = ("--codemod", "delegate-intermediate-tensors")
COMMAND = (sys.executable, "-m", "vlmend.cli")


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below ``root``, scratch files included, git's own left out."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def changed(before: dict[str, bytes], root: Path) -> set[str]:
    """Return the files that are not as they were, new and lost ones included."""
    after = contents(root)
    return {name for name in before | after if before.get(name) != after.get(name)}


def test_fix_then_scan_is_clean_and_fix_twice_is_a_no_op(vlmend, mini):
    before = contents(mini)
    first = vlmend("fix", mini, *ONLY)
    assert first.code == 0
    assert first.out.splitlines()[-1] == "2 files written."
    assert changed(before, mini) == {BARE, OTHER}
    assert vlmend("scan", mini, *ONLY).code == 0
    between = contents(mini)
    second = vlmend("fix", mini, *ONLY)
    assert (second.code, second.out) == (0, "0 files written.\n")
    assert contents(mini) == between


def test_only_the_asked_for_classes_are_written(vlmend, mini):
    before = contents(mini)
    assert vlmend("fix", mini, *ONLY, "--class", "Bare*").code == 0
    assert changed(before, mini) == {BARE}


def test_mode_is_kept_and_a_link_stays_a_link(vlmend, mini):
    real = mini / "vllm/real_bare.py"
    (mini / BARE).rename(real)
    real.chmod(0o640)
    (mini / BARE).symlink_to("../../real_bare.py")
    assert vlmend("fix", mini, *ONLY, "--class", "Bare*").code == 0
    assert (mini / BARE).is_symlink()
    assert b"self.language_model.make_empty_intermediate_tensors" in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param("y\ny\n", {BARE, OTHER}, id="yes to both"),
        pytest.param("n\ny\n", {OTHER}, id="no to the first"),
        pytest.param("a\n", {BARE, OTHER}, id="all that follow"),
        pytest.param("y\nq\n", {BARE}, id="quit keeps what was accepted"),
        pytest.param("what?\nno\nyes\n", {OTHER}, id="asks again, takes whole words"),
    ],
)
def test_interactive(vlmend, mini, answers, expected):
    before = contents(mini)
    ended = vlmend("fix", mini, "-i", *ONLY, stdin=answers)
    assert ended.code == 0
    assert changed(before, mini) == expected
    assert "+        self.make_empty_intermediate_tensors = (" in ended.err
    assert "Write this change?" not in ended.out


def test_no_answer_writes_nothing(vlmend, mini):
    before = contents(mini)
    ended = vlmend("fix", mini, "-i", *ONLY, stdin="y\n")
    assert ended.code == 2
    assert ended.err.splitlines()[-1] == "vlmend: no answer; nothing was written"
    assert changed(before, mini) == set()


@pytest.mark.parametrize("target", ["release", "revision"])
def test_only_a_directory_can_be_written_to(
    vlmend, make_repo: Callable[..., Path], mini_files, target, tmp_path
):
    if target == "revision":
        spec = f"{make_repo(mini_files)}@HEAD"
    else:
        repo = make_repo(mini_files)
        archive = tmp_path / "vllm-9.1.0.tar.gz"
        subprocess.run(
            ["git", "archive", "--prefix=vllm-9.1.0/", f"--output={archive}", "HEAD"],
            cwd=repo,
            check=True,
        )
        spec = str(archive)
    ended = vlmend("fix", spec)
    assert (ended.code, ended.out) == (2, "")
    assert "only a directory can be written to" in ended.err


# --- uncommitted changes --------------------------------------------------------------


def test_a_dirty_file_is_refused_and_the_clean_one_written(
    vlmend, make_repo: Callable[..., Path], mini_files
):
    repo = make_repo(mini_files)
    with (repo / BARE).open("a") as file:
        file.write("\n# my work in progress\n")
    before = contents(repo)
    ended = vlmend("fix", repo, *ONLY)
    assert ended.code == 3
    assert f"vlmend: {BARE}: has uncommitted changes; left alone" in ended.err
    assert changed(before, repo) == {OTHER}


def test_allow_dirty_keeps_the_uncommitted_work(
    vlmend, make_repo: Callable[..., Path], mini_files
):
    repo = make_repo(mini_files)
    with (repo / BARE).open("a") as file:
        file.write("\n# my work in progress\n")
    assert vlmend("fix", repo, *ONLY, "--allow-dirty").code == 0
    text = (repo / BARE).read_text()
    assert text.endswith("# my work in progress\n")
    assert "self.language_model.make_empty_intermediate_tensors" in text


@pytest.mark.parametrize("how", ["staged", "untracked"])
def test_what_git_could_not_give_back_is_dirty(
    vlmend, make_repo: Callable[..., Path], mini_files, git, how
):
    text = mini_files.pop(BARE) if how == "untracked" else None
    repo = make_repo(mini_files)
    if text is not None:
        (repo / BARE).write_text(text)
    else:
        with (repo / BARE).open("a") as file:
            file.write("\n# staged\n")
        git(repo, "add", BARE)
    before = contents(repo)
    assert vlmend("fix", repo, *ONLY, "--class", "Bare*").code == 3
    assert changed(before, repo) == set()


def test_a_tree_below_the_top_of_a_repository(
    vlmend, make_repo: Callable[..., Path], mini_files
):
    repo = make_repo({f"third party/{name}": text for name, text in mini_files.items()})
    tree = repo / "third party"
    with (tree / BARE).open("a") as file:
        file.write("\n# dirty\n")
    before = contents(tree)
    assert vlmend("fix", tree, *ONLY).code == 3
    assert changed(before, tree) == {OTHER}


def test_dirt_elsewhere_does_not_matter(
    vlmend, make_repo: Callable[..., Path], mini_files
):
    repo = make_repo(mini_files)
    (repo / MODELS / "wired.py").write_text("# emptied\n")
    (repo / "notes.txt").write_text("untracked\n")
    assert vlmend("fix", repo, *ONLY).code == 0


def test_a_work_tree_without_git_to_ask_is_refused(
    vlmend, make_repo: Callable[..., Path], mini_files
):
    repo = make_repo(mini_files)
    before = contents(repo)
    ended = vlmend("fix", repo, *ONLY, PATH="")
    assert ended.code == 3
    assert "--allow-dirty" in ended.err
    assert changed(before, repo) == set()
    assert vlmend("fix", repo, *ONLY, "--allow-dirty", PATH="").code == 0


def test_a_hostile_repository_runs_nothing(
    vlmend, make_repo: Callable[..., Path], mini_files, git, tmp_path
):
    repo = make_repo(mini_files)
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(trap))
    vlmend("fix", repo, *ONLY)
    assert not (tmp_path / "sprung").exists()


# --- what can go wrong while writing --------------------------------------------------


def test_a_full_disk_leaves_every_file_whole(mini):
    # A limit on file size fails the same write, and needs no disk to fill.
    before = contents(mini)
    done = subprocess.run(
        [*COMMAND, "fix", mini, *ONLY],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256)),
    )
    assert done.returncode == 1
    assert changed(before, mini) == set()
    told = done.stderr.splitlines()
    assert len(told) == 2
    assert all("cannot be written" in line for line in told)
    assert done.stdout == "0 files written, 2 files left as they were.\n"


def without_root_powers() -> None:
    """Let file modes mean something to root, too: drop CAP_DAC_OVERRIDE before exec."""
    if os.geteuid() == 0:
        drop_from_bounding_set, dac_override = 24, 1
        done = ctypes.CDLL(None, use_errno=True).prctl(
            drop_from_bounding_set, dac_override, 0, 0, 0
        )
        if done != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def test_a_read_only_directory_is_left_alone(mini):
    before = contents(mini)
    (mini / MODELS).chmod(0o555)
    try:
        done = subprocess.run(
            [*COMMAND, "fix", mini, *ONLY],
            capture_output=True,
            text=True,
            preexec_fn=without_root_powers,
        )
    finally:
        (mini / MODELS).chmod(0o755)
    assert changed(before, mini) == set()
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("cannot be written: Permission denied") == 2


@pytest.fixture
def many(mini_files: dict[str, str], tmp_path: Path) -> Path:
    """A miniature with enough to write that a signal arrives in the middle."""
    root = tmp_path / "many"
    bare = mini_files[BARE]
    for number in range(12):
        name = f"Bare{number}ForConditionalGeneration"
        text = bare.replace("BareForConditionalGeneration", name)
        mini_files[f"{MODELS}/bare{number}.py"] = text
    for name, text in mini_files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def stop_in_the_middle(root: Path, number: signal.Signals) -> subprocess.Popen[str]:
    """Send a signal as soon as the first file is written, and wait for the end."""
    files = sorted((root / MODELS).glob("*.py"))
    before = {path: path.stat().st_ino for path in files}
    process = subprocess.Popen(
        [*COMMAND, "fix", root, *ONLY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if any(path.stat().st_ino != before[path] for path in files):
            process.send_signal(number)
            break
    return process


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name
)
def test_a_run_that_is_stopped_leaves_only_whole_files(vlmend, many, number):
    before = contents(many)
    process = stop_in_the_middle(many, number)
    _, told = process.communicate(timeout=60)
    written = changed(before, many)
    for name in written & before.keys():
        text = (many / name).read_text()
        compile(text, name, "exec")
        assert text.count("self.language_model.make_empty_intermediate_tensors") == 1
    scratch = written - before.keys()
    if number is signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        assert all(name.endswith(".vlmend") for name in scratch)
    else:
        assert scratch == set()
        assert process.returncode == 130
        assert told.splitlines()[-1] == "vlmend: interrupted"
        assert "files were written before this" in told
    assert vlmend("fix", many, *ONLY).code == 0
    assert vlmend("scan", many, *ONLY).code == 0


def test_a_reader_that_left_does_not_stop_the_writing(vlmend, many):
    process = subprocess.Popen(
        [*COMMAND, "fix", many, *ONLY], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    assert vlmend("scan", many, *ONLY).code == 0
