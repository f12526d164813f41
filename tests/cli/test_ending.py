"""However a run ends: one clear line, the right exit code, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "vlmend.cli")
MODELS = "vllm/model_executor/models"


@pytest.mark.parametrize("verb", ["scan", "preview", "fix", "models"])
def test_a_target_that_is_not_there(vlmend, verb, tmp_path):
    ended = vlmend(verb, tmp_path / "nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("vlmend: ")
    assert "Traceback" not in ended.err


def test_a_directory_that_is_no_vllm_says_what_was_looked_for(vlmend, tmp_path):
    ended = vlmend("scan", tmp_path)
    assert ended.code == 2
    assert MODELS in ended.err


def test_debug_adds_the_traceback_and_keeps_line_and_code(vlmend, tmp_path):
    ended = vlmend("--debug", "scan", tmp_path / "nowhere")
    assert ended.code == 2
    assert "Traceback" in ended.err
    assert any(line.startswith("vlmend: ") for line in ended.err.splitlines())


BROKEN_VERB = """
import sys, types, click
from vlmend.cli import main
verb = types.ModuleType("vlmend.cli.boom")
@click.command("boom")
def command():
    raise RuntimeError("two\\nlines")
verb.command = command
sys.modules["vlmend.cli.boom"] = verb
main.VERBS["boom"] = "Fail."
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("debug", [False, True])
def test_a_defect_of_vlmend_itself_ends_in_one_line(debug):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_VERB, *(["--debug"] if debug else []), "boom"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "vlmend: internal error: RuntimeError: two lines" in done.stderr
    assert ("Traceback" in done.stderr) is debug


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["scan", "--all"],
        ["scan", "--format", "json"],
        ["preview"],
        ["models"],
    ],
    ids=" ".join,
)
def test_a_reader_that_left_is_no_failure(mini, words):
    target = [] if words == ["--help"] else [str(mini)]
    process = subprocess.Popen(
        [*COMMAND, *words, *target], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    # What preview says about the run may have been said before the reader was missed.
    assert b"Error" not in told
    assert b"Traceback" not in told


def test_output_that_finds_no_room(mini):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "scan", mini], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    said, hint = done.stderr.splitlines()
    assert said == "vlmend: No space left on device"
    assert hint.strip().startswith("make room")


def test_head_gets_its_line(mini):
    script = '"$@" | head -n 1; exit "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", script, "-", *COMMAND, "scan", mini, "--all"],
        capture_output=True,
        text=True,
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
    # Either all was written before head closed the pipe (1), or the pipe broke (0).
    assert done.returncode in (0, 1)


def test_interrupt(mini, mini_files):
    for number in range(1500):
        name = f"Bare{number}ForConditionalGeneration"
        text = mini_files[f"{MODELS}/bare.py"]
        place = mini / MODELS / f"bare{number}.py"
        place.write_text(text.replace("BareForConditionalGeneration", name))
    process = subprocess.Popen(
        [*COMMAND, "scan", mini],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # By then Python has started; reading so many files takes it much longer.
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert told == "vlmend: interrupted\n"


def spoil(root: Path, name: str) -> None:
    """Put a model file that does not parse into the tree."""
    text = (root / MODELS / "bare.py").read_text()
    (root / MODELS / name).write_text(text + "class Broken(:\n")


def test_text_from_the_tree_cannot_drive_the_terminal(vlmend, mini: Path):
    place = mini / MODELS / "bare.py"
    comment = "  # vlmend: ignore[delegate-intermediate-tensors] \x1b[2J\u202e"
    text = place.read_text().replace("SupportsPP):", f"SupportsPP):{comment}")
    place.write_text(text)
    ended = vlmend("scan", mini, "--all")
    assert "suppressed  BareForConditionalGeneration" in ended.out
    assert r"\x1b[2J\u202e" in ended.out
    assert not {"\x1b", "\u202e"} & set(ended.out + ended.err)


def test_a_stream_that_cannot_carry_a_name(mini: Path):
    spoil(mini, "\u0416.py")
    done = subprocess.run(
        [*COMMAND, "scan", mini],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
    )
    assert done.returncode == 2
    assert rb"\u0416.py" in done.stderr


def test_a_fresh_process_and_the_forked_ones_say_the_same(vlmend, mini: Path):
    for verb in ("scan", "preview", "models"):
        done = subprocess.run([*COMMAND, verb, mini], capture_output=True, text=True)
        ended = vlmend(verb, mini)
        assert (done.returncode, done.stdout, done.stderr) == (
            ended.code,
            ended.out,
            ended.err,
        )


def test_an_unusable_cache_costs_time_and_nothing_else(vlmend, mini, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    ended = vlmend("scan", mini, VLMEND_CACHE_DIR=str(blocked / "cache"))
    assert ended.code == 1
    assert ended.err == ""
    assert blocked.is_file()
