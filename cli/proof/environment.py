"""The Python that runs a tree: made once per (Python, torch, Transformers), and kept.

Two layers, since torch is nine tenths of it and the same for many trees: an environment
with torch and what else every tree needs, and on top of it one per Transformers pin. A
build of torch that brings CUDA along is recognised before anything is installed, and
never is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.specifiers import SpecifierSet

from vlmend.cli.cache import cache_directory, make_private
from vlmend.cli.errors import UserError
from vlmend.cli.proof.group import end_group
from vlmend.cli.releases import Progress, silent

TORCH: Final = "2.13.0"
"""Runs every tree from 0.20 to 0.33; a proof needs no other."""

COMMON: Final = (
    "blake3",
    "cachetools",
    "cloudpickle",
    "einops",
    "jinja2",
    "msgspec",
    "numpy",
    "pillow",
    "protobuf",
    "psutil",
    "py-cpuinfo",
    "pydantic",
    "pytest",
    "pyyaml",
    "pyzmq",
    "regex",
    "requests",
    "sentencepiece",
    "six",
)
SIZE: Final = "about 1.3 GB"
_BASE_BYTES: Final = 1_400 << 20
_LAYER_BYTES: Final = 170 << 20
_RECEIPT: Final = ".vlmend.json"
_SWEPT: Final = {
    "partial-*": 86_400,
    "trees/*": 7 * 86_400,
    "bytecode/*": 7 * 86_400,
}
"""What is swept, and after how many seconds without a change."""
_CANDIDATES: Final = tuple(f"python3.{minor}" for minor in (13, 12, 11, 10, 14))
_ADVICE: Final = (
    "name an index of CPU builds: --torch-index URL; or reuse an environment that has"
    " one: --python PATH"
)
_ABOUT: Final = (
    "import json, sys; from importlib.metadata import version;"
    "print(json.dumps({'python': sys.version.split()[0],"
    " **{n: version(n) for n in ('torch', 'transformers', 'pydantic')}}))"
)


@dataclass(frozen=True)
class Environment:
    """An interpreter that can run a tree.

    Attributes:
        python: the interpreter.
        versions: of Python, torch and Transformers, as they are installed.
    """

    python: Path
    versions: dict[str, str]


@dataclass(frozen=True)
class Plan:
    """What has to be there for a tree, and what of it is missing."""

    python: Path
    transformers: str
    torch_index: str | None
    base: Path
    layer: Path

    @property
    def is_ready(self) -> bool:
        """Nothing has to be installed."""
        return _is_done(self.base) and _is_done(self.layer)

    def asks_for(self) -> str:
        """Say what will be installed, how large it is and where."""
        parts = [] if _is_done(self.base) else [f"torch {TORCH} (CPU only)"]
        if not _is_done(self.layer):
            parts.append(f"transformers {self.transformers}")
        size = SIZE if not _is_done(self.base) else "about 150 MB"
        return f"{' and '.join(parts)}, {size}, in {self.layer.parent}"


def plan_environment(
    pythons: SpecifierSet, transformers: str, torch_index: str | None
) -> Plan:
    """Decide which environment a tree needs; nothing is made yet.

    Raises:
        UserError: no Python here is one that the tree takes.
    """
    python, version = _choose_python(pythons)
    # Resolved: a layer keeps the place of its base, which must outlive any link to it.
    store = (cache_directory() / "verify").resolve()
    index = ""
    if torch_index is not None:
        index = "-" + hashlib.sha256(torch_index.encode()).hexdigest()[:8]
    base = store / f"torch-{TORCH}-py{version}{index}"
    layer = store / f"transformers-{transformers}-{base.name}"
    return Plan(python, transformers, torch_index, base, layer)


def reuse(python: Path, pythons: SpecifierSet) -> Environment:
    """Return an environment that the person named; nothing is installed into it.

    Raises:
        UserError: it cannot run a tree.
    """
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ABOUT],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"--python {python}: cannot be run: {error}") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(
            f"--python {python}: cannot run vLLM: {last}",
            hint="it needs torch, transformers and pydantic; without --python an"
            " environment is made",
        )
    versions = json.loads(done.stdout)
    if not pythons.contains(versions["python"]):
        raise UserError(
            f"--python {python}: Python {versions['python']}, but the tree takes"
            f" {pythons}"
        )
    # Not resolved: the link to its interpreter is what makes it that environment.
    return Environment(python.absolute(), versions)


def make(plan: Plan, progress: Progress = silent) -> Environment:
    """Return the planned environment, making what is missing of it.

    Raises:
        UserError: no CPU build of torch resolves, or the installation fails.
    """
    make_private(plan.base.parent)
    _sweep(plan.base.parent)
    if not plan.is_ready:
        _require_space(plan)
    if not _is_done(plan.base):
        require_cpu_torch(plan, progress)
        _make_base(plan, progress)
    if not _is_done(plan.layer):
        _make_layer(plan, progress)
    python = _python_in(plan.layer)
    return Environment(python, reuse(python, SpecifierSet()).versions)


def _require_space(plan: Plan) -> None:
    needed, words = _LAYER_BYTES, "about 150 MB"
    if not _is_done(plan.base):
        needed, words = _BASE_BYTES, SIZE
    free = shutil.disk_usage(plan.base.parent).free
    if free < needed:
        raise UserError(
            f"{plan.base.parent}: no space left for {words}: {free >> 20} MB are free",
            hint="set VLMEND_CACHE_DIR to a folder with more space",
        )


def _choose_python(pythons: SpecifierSet) -> tuple[Path, str]:
    running = "{}.{}".format(*sys.version_info[:2])
    if pythons.contains(f"{running}.{sys.version_info[2]}", prereleases=True):
        return Path(sys.executable), running
    for name in _CANDIDATES:
        found = shutil.which(name)
        if found and pythons.contains(name.removeprefix("python") + ".99"):
            version = _version_of(found)
            if version is not None and pythons.contains(version):
                return Path(found), name.removeprefix("python")
    raise UserError(
        f"the tree takes Python {pythons}, and here is {running}",
        hint="name one that it takes: --python PATH, an environment with torch",
    )


def _version_of(python: str) -> str | None:
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [python, "-I", "-c", "import sys; print(sys.version.split()[0])"],
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def _is_done(folder: Path) -> bool:
    return (folder / _RECEIPT).is_file() and _python_in(folder).exists()


def _python_in(folder: Path) -> Path:
    return folder / "bin" / "python"


def _sweep(store: Path) -> None:
    """Remove what a killed run left, and trees with their code that nobody asks for."""
    for pattern, age in _SWEPT.items():
        for folder in store.glob(pattern):
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > age:
                    shutil.rmtree(folder, ignore_errors=True)


def require_cpu_torch(plan: Plan, progress: Progress) -> None:
    """Ask pip what it would install, and refuse what brings CUDA along.

    Raises:
        UserError: no CPU build of torch resolves; the hint says what to do.
    """
    make_private(plan.base.parent)
    with tempfile.TemporaryDirectory(dir=plan.base.parent, prefix="partial-") as place:
        report = Path(place) / "report.json"
        arguments = ["--dry-run", "--ignore-installed", "--report", str(report)]
        _pip(
            [str(_with_pip(plan.python, Path(place) / "venv")), "-m", "pip"],
            [*arguments, *_torch_arguments(plan)],
            f"looking for a CPU build of torch {TORCH}",
            progress,
            failure=f"torch {TORCH} cannot be had",
        )
        chosen = json.loads(report.read_bytes())["install"]
    heavy = cuda_parts(chosen)
    if heavy:
        raise UserError(
            f"torch {TORCH} resolves to a CUDA build ({', '.join(heavy[:3])}): not"
            " installed",
            hint=_ADVICE,
        )


def _with_pip(python: Path, spare: Path) -> Path:
    """Return a Python that has pip: what `uv` or `pipx` made may have none."""
    words = [str(python), "-I", "-m", "pip", "--version"]
    if subprocess.run(words, capture_output=True, check=False).returncode == 0:
        return python
    _venv(python, spare, pip=True)
    return _python_in(spare)


def cuda_parts(chosen: Sequence[dict[str, Any]]) -> list[str]:
    """Return the distributions of a pip report that only a CUDA build brings along."""
    heavy: list[str] = []
    for item in chosen:
        name = str(item["metadata"]["name"]).lower().replace("_", "-")
        version = str(item["metadata"]["version"])
        local = version.partition("+")[2]
        if name.startswith(("nvidia-", "cuda-", "triton", "pytorch-triton")) or (
            name == "torch" and local.startswith(("cu", "rocm", "xpu"))
        ):
            heavy.append(f"{name} {version}")
    return heavy


def _torch_arguments(plan: Plan) -> list[str]:
    arguments = ["--only-binary", ":all:", f"torch=={TORCH}"]
    if plan.torch_index is not None:
        arguments += ["--index-url", plan.torch_index]
    return arguments


def _make_base(plan: Plan, progress: Progress) -> None:
    with _workshop(plan.base) as folder:
        _venv(plan.python, folder, pip=True)
        pip = [str(_python_in(folder)), "-m", "pip"]
        stage = f"installing torch {TORCH} (CPU), once for all trees"
        _pip(pip, _torch_arguments(plan), stage, progress)
        common = ["--only-binary", ":all:", *COMMON]
        _pip(pip, common, "installing what vLLM imports", progress)
        _finish(folder, plan.base)


def _make_layer(plan: Plan, progress: Progress) -> None:
    with _workshop(plan.layer) as folder:
        _venv(plan.python, folder, pip=False)
        (site,) = folder.glob("lib/python3*/site-packages")
        (below,) = plan.base.glob("lib/python3*/site-packages")
        (site / "vlmend-base.pth").write_text(f"{below}\n", "utf-8")
        python = str(_python_in(folder))
        _pip(
            [str(_python_in(plan.base)), "-m", "pip", "--python", python],
            ["--only-binary", ":all:", f"transformers=={plan.transformers}"],
            f"installing transformers {plan.transformers}",
            progress,
        )
        _finish(folder, plan.layer)


class _workshop:  # noqa: N801 - used like a function
    """A folder that becomes the environment, or goes away."""

    def __init__(self, final: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="partial-", dir=final.parent))

    def __enter__(self) -> Path:
        return self._folder

    def __exit__(self, *exc: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _finish(folder: Path, final: Path) -> None:
    (folder / _RECEIPT).write_text(json.dumps({"made": "vlmend verify"}), "utf-8")
    shutil.rmtree(final, ignore_errors=True)
    try:
        folder.rename(final)
    except OSError as error:
        if not _is_done(final):  # another run was faster, which is as good
            raise UserError(f"{final}: cannot be written: {error.strerror}") from None


def _venv(python: Path, folder: Path, *, pip: bool) -> None:
    words = [python, "-m", "venv", *(() if pip else ("--without-pip",)), folder]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise UserError(
            f"{python}: cannot make an environment: {' '.join(last)}",
            hint="Debian's package for this is python3-venv",
        )


def _pip(
    pip: Sequence[str],
    arguments: Sequence[str],
    stage: str,
    progress: Progress,
    *,
    failure: str = "",
) -> None:
    words = [*pip, "install", "-q", "--no-input", *arguments]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=env,
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                progress(stage, 0, None)
                time.sleep(0.1)
        finally:
            end_group(child)
        if child.returncode == 0:
            return
        said.seek(0)
        lines = [line.strip() for line in said if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else "pip failed"
    if any("No space left" in line for line in lines):
        reason = f"no space left for {SIZE}"
    raise UserError(f"{failure or stage}: {reason}", hint=_ADVICE if failure else None)
