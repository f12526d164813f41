"""The hooks, run by the real pre-commit in a repository that holds a real vLLM."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.replay

ROOT = Path(__file__).resolve().parents[2]
MODEL = "vllm/model_executor/models/llava.py"
WRAPPER = "vllm/model_executor/models/cohere2_vision.py"
HAND_UP = (
    "        self.make_empty_intermediate_tensors = (\n"
    "            self.language_model.make_empty_intermediate_tensors\n"
    "        )\n"
)
IGNORED = shutil.ignore_patterns(
    ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "venv*"
)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory) -> Path:
    """A repository of vlmend as it stands, from which pre-commit installs."""
    place = tmp_path_factory.mktemp("hooks") / "vlmend"
    shutil.copytree(ROOT, place, symlinks=True, ignore=IGNORED)
    run(place, "git", "init", "-q", "-b", "main")
    run(place, "git", "add", "-A")
    run(place, "git", "commit", "-qm", "As it stands")
    return place


def run(place: Path, *words: str, code: int = 0, **variables: str) -> str:
    done = subprocess.run(
        words,
        cwd=place,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> dict[str, str]:
    """A home of pre-commit's own.

    vlmend is installed into pre-commit's environment from the repository; the libraries
    that it needs are those of the environment that the tests run in.
    """
    home = tmp_path_factory.mktemp("pre-commit")
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return {
        "PRE_COMMIT_HOME": str(home),
        "PIP_NO_DEPS": "1",
        "PYTHONPATH": os.pathsep.join(sorted(libraries)),
        "VLMEND_CACHE_DIR": str(home / "cache"),
    }


@pytest.fixture(scope="module")
def vllm(tmp_path_factory, release, hooks) -> Path:
    """A repository with a real release, guarded by both hooks."""
    place = tmp_path_factory.mktemp("repository") / "vllm"
    shutil.copytree(release("0.21.0"), place, symlinks=True)
    revision = run(hooks, "git", "rev-parse", "HEAD").strip()
    (place / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n"
        "  - id: vlmend-scan\n  - id: vlmend-fix\n    stages: [manual]\n"
    )
    run(place, "git", "init", "-q", "-b", "main")
    run(place, "git", "add", "-A", "-f")
    run(place, "git", "commit", "-qm", "A release")
    return place


@pytest.fixture
def clean(vllm, world) -> Path:
    """The repository, installed into and without changes."""
    pre_commit(vllm, world, "install", "--install-hooks")
    run(vllm, "git", "reset", "-q", "--hard")
    return vllm


def pre_commit(place: Path, world: dict[str, str], *words: str, code: int = 0) -> str:
    return run(place, sys.executable, "-m", "pre_commit", *words, code=code, **world)


def unwire(place: Path) -> None:
    model = place / MODEL
    text = model.read_text()
    assert HAND_UP in text
    model.write_text(text.replace(HAND_UP, "", 1))


def test_a_harmless_commit_passes(clean, world):
    (clean / MODEL).write_text((clean / MODEL).read_text() + "# harmless\n")
    run(clean, "git", "commit", "-qam", "Harmless", **world)
    run(clean, "git", "reset", "-q", "--hard", "HEAD~1")


def test_a_commit_that_breaks_a_contract_is_refused(clean, world):
    """The release has defects of its own; only what is new counts."""
    unwire(clean)
    before = run(clean, "git", "rev-parse", "HEAD")
    told = run(clean, "git", "commit", "-qam", "Break it", code=1, **world)
    assert "fixable  LlavaForConditionalGeneration" in told
    assert "Cohere2Vision" not in told
    assert run(clean, "git", "rev-parse", "HEAD") == before


def test_what_is_not_staged_is_not_judged(clean, world):
    """pre-commit puts it aside while its hooks run."""
    (clean / WRAPPER).write_text((clean / WRAPPER).read_text() + "# staged\n")
    run(clean, "git", "add", WRAPPER)
    unwire(clean)
    run(clean, "git", "commit", "-qm", "Harmless", **world)
    assert HAND_UP not in (clean / MODEL).read_text()
    run(clean, "git", "reset", "-q", "--hard", "HEAD~1")


def test_what_git_does_not_know_is_not_judged(clean, world):
    """pre-commit leaves it lying there; it is no part of the commit all the same."""
    text = (clean / MODEL).read_text().replace(HAND_UP, "", 1)
    fresh = clean / Path(MODEL).with_name("unknown_to_git.py")
    fresh.write_text(text.replace("LlavaFor", "UnknownFor"))
    (clean / WRAPPER).write_text((clean / WRAPPER).read_text() + "# staged\n")
    run(clean, "git", "commit", "-qam", "Harmless", **world)
    run(clean, "git", "add", "-A")
    told = run(clean, "git", "commit", "-qm", "Break it", code=1, **world)
    assert "fixable  UnknownForConditionalGeneration" in told
    run(clean, "git", "reset", "-q", "--hard", "HEAD~1")


def test_the_fix_is_written_and_asks_to_be_staged(clean, world):
    unwire(clean)
    run(clean, "git", "add", MODEL)
    words = ("run", "vlmend-fix", "--hook-stage", "manual")
    told = pre_commit(clean, world, *words, code=1)
    assert "files were modified by this hook" in told
    assert HAND_UP in (clean / MODEL).read_text()
    run(clean, "git", "add", MODEL)
    pre_commit(clean, world, *words)


def test_a_range_of_commits_is_judged_against_its_start(clean, world):
    unwire(clean)
    run(clean, "git", "commit", "-qam", "Break it", "--no-verify")
    words = ("run", "vlmend-scan", "--from-ref", "HEAD~1", "--to-ref", "HEAD")
    told = pre_commit(clean, world, *words, code=1)
    assert "fixable  LlavaForConditionalGeneration" in told
    run(clean, "git", "reset", "-q", "--hard", "HEAD~1")


def test_the_hooks_need_no_network_once_they_are_installed(clean, world):
    nowhere = "http://127.0.0.1:9/"
    offline = world | {"PIP_INDEX_URL": nowhere, "HTTPS_PROXY": nowhere}
    unwire(clean)
    told = run(clean, "git", "commit", "-qam", "Break it", code=1, **offline)
    assert "fixable  LlavaForConditionalGeneration" in told
