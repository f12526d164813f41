"""What is built holds every module and data file, and nothing at the top level."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("cli", "codemods", "templates")
NOT_SHIPPED = {"__pycache__"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def settings(project):
    return project["tool"]["setuptools"]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it, from a copy without leftovers."""
    work = tmp_path_factory.mktemp("build")
    copy = work / "copy"
    shutil.copytree(
        ROOT,
        copy,
        symlinks=True,
        ignore=shutil.ignore_patterns(
            ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "venv*"
        ),
    )
    # The build's own environment comes from the configured index, as for any user.
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(work / "dist"), str(copy)],
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = (work / "dist").glob("*.tar.gz")
    (wheel,) = (work / "dist").glob("*.whl")
    return sdist, wheel


def shipped_name(path: Path) -> str:
    return "vlmend/" + path.relative_to(ROOT).as_posix()


def source_files(*, data: bool) -> set[str]:
    found = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if not path.is_file() or not NOT_SHIPPED.isdisjoint(path.parts):
                continue
            if (path.suffix != ".py") is data:
                found.add(shipped_name(path))
    return found


def test_every_folder_with_python_is_a_listed_package(settings):
    folders = {
        shipped_name(path.parent).replace("/", ".")
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if NOT_SHIPPED.isdisjoint(path.parts)
    }
    assert folders == set(settings["packages"])


def test_every_package_has_an_init_file(settings):
    for package in settings["packages"]:
        folder = ROOT / package.removeprefix("vlmend.").replace(".", "/")
        assert (folder / "__init__.py").is_file(), package


def test_top_packages_are_typed():
    for folder in FOLDERS:
        assert (ROOT / folder / "py.typed").is_file()


def test_every_data_file_matches_a_pattern(settings):
    matched = set()
    for package, patterns in settings["package-data"].items():
        folder = ROOT / package.removeprefix("vlmend.").replace(".", "/")
        for pattern in patterns:
            matched |= {shipped_name(p) for p in folder.glob(pattern)}
    assert source_files(data=True) - matched == set()


def test_typing_links_lead_to_the_folders():
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: the links serve its type checkers only")
    for folder in FOLDERS:
        link = ROOT / ".typing" / "vlmend" / folder
        assert link.is_symlink()
        assert link.resolve() == ROOT / folder


def test_wheel_holds_everything_and_nothing_else(built):
    _, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if ".dist-info/" not in n}
    assert names == source_files(data=False) | source_files(data=True)
    assert {n.split("/")[0] for n in names} == {"vlmend"}
    assert "vlmend/__init__.py" not in names


def test_sdist_holds_what_its_tests_need(built):
    sdist, _ = built
    with tarfile.open(sdist) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    for wanted in ("LICENSE", "README.md", "pyproject.toml", "tests/conftest.py"):
        assert wanted in names
    assert not [n for n in names if "__pycache__" in n]


def test_wheel_installs_as_a_namespace_only(built, tmp_path):
    _, wheel = built
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = (
        "import importlib.util, sys\n"
        "print(importlib.util.find_spec('cli'), importlib.util.find_spec('codemods'))\n"
        "import vlmend.cli.main, vlmend.codemods\n"
        "print(vlmend.__file__, vlmend.cli.__file__)\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(site)!r})\n{script}",
        ],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "None None",
        f"None {site / 'vlmend/cli/__init__.py'}",
    ]


def test_no_machine_and_no_registry_is_named():
    """What is committed must hold anywhere."""
    tracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True
    )
    if tracked.returncode:
        pytest.skip("not a checkout: nothing is committed here")
    hosts = (
        "py" + "pi.org",
        "pythonhosted" + ".org",
        "/tmp/" + "rel",
        "registry.npm" + "js",
    )
    for name in filter(None, tracked.stdout.split("\0")):
        place = ROOT / name
        if place.is_file() and not place.is_symlink():
            text = place.read_bytes().decode("utf-8", "replace")
            assert [h for h in hosts if h in text] == [], name


def locked():
    """Return what the action installs: name to the line that pins it."""
    lines = (ROOT / ".ci" / "requirements.txt").read_text().splitlines()
    pins = [Requirement(x.rstrip(" \\")) for x in lines if x and x[0] not in " #"]
    return {canonicalize_name(pin.name): pin for pin in pins}


def test_the_action_locks_every_dependency_at_a_version_that_is_allowed(project):
    pins = locked()
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for requirement in map(Requirement, wanted):
        pin = pins[canonicalize_name(requirement.name)]
        (version,) = (one.version for one in pin.specifier)
        assert version in requirement.specifier, "run .ci/lock"


def test_the_lock_has_hashes_and_names_no_index():
    text = (ROOT / ".ci" / "requirements.txt").read_text()
    assert "://" not in text
    blocks = re.split(r"\n(?=[a-z])", text)[1:]
    assert len(blocks) == len(locked())
    assert all("--hash=sha256:" in block for block in blocks)
