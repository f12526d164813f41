"""The environment: which one a tree needs, and that it never is a CUDA build."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from vlmend.cli.errors import UserError
from vlmend.cli.proof import environment
from vlmend.cli.proof.pins import python_range, transformers_pin
from vlmend.cli.proof.shadow import make_shadow
from vlmend.codemods import DirectoryTree, MemoryTree


@pytest.mark.parametrize(
    ("version", "pin"),
    [("0.21.0", "5.5.3"), ("0.29.0", "5.15.0"), ("0.33.0", "5.20.2")],
)
def test_the_pin_is_the_trees_own(release, version, pin):
    assert transformers_pin(DirectoryTree(release(version)))[0] == pin


def test_a_tree_without_a_pin_says_what_to_do():
    with pytest.raises(UserError) as raised:
        transformers_pin(MemoryTree({}))
    assert "--python" in (raised.value.hint or "")


def test_the_range_of_pythons_is_the_trees_own(release):
    assert python_range(DirectoryTree(release("0.33.0"))) == SpecifierSet(
        ">=3.11,<3.15"
    )


def test_a_python_that_the_tree_does_not_take_is_one_line(tmp_path):
    with pytest.raises(UserError) as raised:
        environment.plan_environment(SpecifierSet("<3"), "5.5.3", None)
    assert "the tree takes Python <3" in raised.value.message


def wheel(
    folder: Path, name: str, version: str, requires: tuple[str, ...] = ()
) -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    meta += "".join(f"Requires-Dist: {one}\n" for one in requires)
    place = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr(f"{info}/METADATA", meta)
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def shelf(tmp_path, monkeypatch) -> Path:
    """Let pip find what a test puts on a shelf, and nothing else."""
    for name in [n for n in os.environ if n.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("VLMEND_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def planned() -> environment.Plan:
    return environment.plan_environment(SpecifierSet(), "5.5.3", None)


def test_a_cuda_build_is_recognised_and_not_installed(shelf, tmp_path):
    wheel(shelf, "torch", environment.TORCH, ("nvidia-cublas",))
    wheel(shelf, "nvidia-cublas", "13.0")
    with pytest.raises(UserError) as raised:
        environment.make(planned())
    assert "CUDA build (nvidia-cublas 13.0): not installed" in raised.value.message
    assert "--torch-index" in (raised.value.hint or "")
    assert list((tmp_path / "cache" / "verify").iterdir()) == []


def test_where_no_torch_resolves_it_stops_with_advice(shelf):
    with pytest.raises(UserError) as raised:
        environment.make(planned())
    assert raised.value.message.startswith(f"torch {environment.TORCH} cannot be had")
    assert "--torch-index" in (raised.value.hint or "")


def test_a_python_without_torch_is_not_reused():
    with pytest.raises(UserError) as raised:
        environment.reuse(Path(sys.executable), SpecifierSet())
    assert "cannot run vLLM" in raised.value.message


def test_a_shadow_shows_the_patch_and_leaves_the_tree_alone(tmp_path):
    root = tmp_path / "tree"
    for name in ("vllm/a/one.py", "vllm/a/two.py", "vllm/b/three.py", "torch.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
    shown = make_shadow(root, tmp_path / "shadow", {"vllm/a/one.py": b"# new\n"})
    assert (shown / "vllm/a/one.py").read_bytes() == b"# new\n"
    assert (shown / "vllm/a/two.py").read_text() == "# vllm/a/two.py\n"
    assert (shown / "vllm/b").is_symlink()
    assert not (shown / "torch.py").exists()
    assert (root / "vllm/a/one.py").read_text() == "# vllm/a/one.py\n"


def test_a_python_without_pip_asks_through_another(shelf, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", bare], check=True, timeout=60
    )
    wheel(shelf, "torch", environment.TORCH, ("nvidia-cublas",))
    wheel(shelf, "nvidia-cublas", "13.0")
    plan = replace(planned(), python=bare / "bin" / "python")
    with pytest.raises(UserError) as raised:
        environment.require_cpu_torch(plan, lambda *_: None)
    assert "CUDA build (nvidia-cublas 13.0)" in raised.value.message


def test_what_nobody_asks_for_any_more_is_swept(shelf, tmp_path):
    store = tmp_path / "cache" / "verify"
    for name in ("trees/old", "trees/new", "bytecode/old", "torch-1-py3", "partial-x"):
        (store / name).mkdir(parents=True)
    month = time.time() - 30 * 86_400
    for name in ("trees/old", "bytecode/old", "torch-1-py3", "partial-x"):
        os.utime(store / name, (month, month))
    store.chmod(0o700)
    with pytest.raises(UserError):
        environment.make(planned())
    left = {str(p.relative_to(store)) for p in store.rglob("*")}
    # An environment is dear: it stays until it is removed by hand.
    assert left == {"trees", "trees/new", "bytecode", "torch-1-py3"}
