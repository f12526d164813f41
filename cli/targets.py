"""TARGET: what a person points vlmend at, turned into a source tree.

``path``, ``path@REV``, ``vllm==0.21.0``, ``vllm-0.21.0.tar.gz`` and ``owner/repo@ref``
all end as the same kind of thing: files addressed by path, and a few words on what they
are.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, Self

from vlmend.cli.errors import UserError
from vlmend.cli.git_tree import GitTree, describe, open_repository, resolve_revision
from vlmend.codemods.analysis.tree import DirectoryTree, SourceTree, TreeError

if TYPE_CHECKING:
    from vlmend.cli.releases import Progress

Kind = Literal["directory", "git", "release"]
Layout = Literal["vllm", "plugin"]

MODELS: Final = "vllm/model_executor/models"
"""The folder that makes a tree a vLLM tree."""

_RELEASE: Final = re.compile(r"\s*(?i:vllm)\s*===?\s*(?P<version>\S+)\s*")
_REMOTE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[\w.-]+@\S+")
_OTHER_PIN: Final = re.compile(r"\s*(?i:vllm)\s*(?:[<>~!]=?|=|@|$)")
_PLUGIN_GROUP: Final = re.compile(rb"vllm\.[a-z_]*plugins")
_USES_VLLM: Final = re.compile(rb"^[ \t]*(?:from|import)[ \t]+vllm\b", re.MULTILINE)
_VERSION_FILE: Final = re.compile(
    rb"^__version__\s*=\s*(?:version\s*=\s*)?['\"]([^'\"]+)['\"]", re.MULTILINE
)
_METADATA_VERSION: Final = re.compile(rb"^Version:[ \t]*(\S+)", re.MULTILINE)
_PROJECT_VERSION: Final = re.compile(
    rb"^\[project\]$(?:\n(?!\[).*)*?\nversion\s*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE
)
_NOT_SOURCE: Final = frozenset({"site-packages", "node_modules", "venv", "build"})
_LOOKED_AT: Final = 4000
"""Files read in search of a plugin; a home directory must not be read to its end."""


@dataclass
class Target:
    """A tree to read, and where it came from. Close it, or use it in a ``with``.

    Attributes:
        spec: as it was asked for.
        kind: where it came from.
        tree: the files.
        layout: a vLLM tree, or a package that plugs into vLLM.
        root: the folder that the tree's paths are relative to; None for a git revision.
        revision: full id of the commit; None unless ``kind`` is "git".
        repository: the repository's work tree (or git folder); None unless "git".
    """

    spec: str
    kind: Kind
    tree: SourceTree
    layout: Layout
    root: Path | None = None
    revision: str | None = None
    repository: Path | None = None
    _resources: ExitStack = field(default_factory=ExitStack, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of temporary folders and of git."""
        self._resources.close()

    @cached_property
    def version(self) -> str | None:
        """The version as the tree itself (or git) states it; nothing is imported."""
        return _version(self)


def resolve_target(spec: str | None, *, progress: Progress | None = None) -> Target:
    """Turn what was typed into a tree.

    Args:
        spec: a folder, ``folder@REV``, ``vllm==X``, an sdist or ``owner/repo@ref``;
            None is the current folder.
        progress: told about downloads.

    Raises:
        UserError: there is no such thing, or it is neither vLLM nor a plugin.
    """
    spec = "." if spec is None or not spec.strip() else spec
    release = _RELEASE.fullmatch(spec)
    if release is not None:
        return _release(spec, release["version"], progress)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _directory(spec, path)
    if path.is_file():
        return _archive(spec, path, progress)
    place, revision = _split_revision(spec)
    if revision is not None:
        return _git(spec, place, revision)
    if _REMOTE.fullmatch(spec) is not None:
        return _remote(spec)
    raise _no_such(spec)


def is_on_forge(spec: str) -> bool:
    """Say whether a TARGET is read from GitHub, where a token may be needed."""
    return (
        not Path(spec).expanduser().exists()
        and _split_revision(spec)[1] is None
        and _REMOTE.fullmatch(spec) is not None
    )


def _no_such(spec: str) -> UserError:
    kinds = (
        "a folder, a git repository as PATH@REV, a release as vllm==X, or a repository"
        " on GitHub as OWNER/REPO@REF"
    )
    if _OTHER_PIN.match(spec):
        return UserError(f"{spec}: not one exact release", hint="write vllm==0.21.0")
    if "://" in spec or re.match(r"[\w.-]+@[\w.-]+:", spec):
        return UserError(
            f"{spec}: a remote repository cannot be read in place",
            hint="write OWNER/REPO@REF, or clone it and give the folder",
        )
    return UserError(f"{spec}: no such file or folder", hint=f"a target is {kinds}")


def _split_revision(spec: str) -> tuple[Path, str | None]:
    """Cut ``path@REV`` where the path exists; both sides may hold an ``@``."""
    for at in reversed([i for i, c in enumerate(spec) if c == "@"]):
        place, revision = Path(spec[:at] or ".").expanduser(), spec[at + 1 :]
        if place.is_dir():
            if not revision:
                raise UserError(f"{spec}: nothing after the @", hint="PATH@REV")
            return place, revision
    return Path(spec), None


def _release(spec: str, version: str, progress: Progress | None) -> Target:
    # Imported here: fetching brings much along that a folder does not need.
    from vlmend.cli.releases import get_release, parse_version, silent

    release = get_release(parse_version(version), progress=progress or silent)
    tree = DirectoryTree(release.root)
    _require_models(spec, tree)
    target = Target(spec, "release", tree, "vllm", release.root)
    target.version = release.version
    return target


def _archive(spec: str, path: Path, progress: Progress | None) -> Target:
    from vlmend.cli.unpack import unpack_sdist

    if not path.name.endswith((".tar.gz", ".tgz")):
        raise UserError(
            f"{spec}: a file, but not a source distribution (.tar.gz)",
            hint="a single Python file is scanned as part of its folder",
        )
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vlmend-"))
        root = Path(folder)
        unpack_sdist(
            path,
            root,
            progress=None
            if progress is None
            else partial(progress, f"unpacking {path.name}"),
        )
        tree = DirectoryTree(root)
        _require_models(spec, tree)
        return Target(spec, "release", tree, "vllm", root, _resources=stack.pop_all())


def _require_models(spec: str, tree: SourceTree) -> None:
    if not tree.is_dir(MODELS):
        raise UserError(f"{spec}: not a vLLM tree: there is no {MODELS}/ in it")


def _directory(spec: str, path: Path) -> Target:
    try:
        root = path.resolve(strict=True)
        next(root.iterdir(), None)
    except OSError as error:
        raise UserError(f"{spec}: cannot be read: {error.strerror}") from None
    for candidate in _vllm_roots(root):
        if (candidate / MODELS).is_dir():
            return Target(
                spec, "directory", DirectoryTree(candidate), "vllm", candidate
            )
    enclosing = next((p for p in root.parents if (p / MODELS).is_dir()), None)
    if enclosing is not None and root.is_relative_to(enclosing / "vllm"):
        raise UserError(
            f"{spec}: only a part of a vLLM tree", hint=f"give all of it: {enclosing}"
        )
    tree = DirectoryTree(root)
    if _is_plugin(tree):
        return Target(spec, "directory", tree, "plugin", root)
    raise _neither(spec)


def _vllm_roots(root: Path) -> list[Path]:
    """List the folders that may hold ``vllm/``, given one near it."""
    roots = [root]
    if root.name == "vllm":
        roots.append(root.parent)
    # A virtual environment with vLLM installed in it.
    if (root / "pyvenv.cfg").is_file():
        roots += sorted(root.glob("lib/python3*/site-packages"))
        roots.append(root / "Lib" / "site-packages")
    return roots


def _neither(spec: str) -> UserError:
    return UserError(
        f"{spec}: neither vLLM nor a plugin: looked for {MODELS}/, for a"
        " vllm.general_plugins entry point, and for Python files that import vllm"
    )


def _is_plugin(tree: SourceTree) -> bool:
    for name in ("pyproject.toml", "setup.cfg", "setup.py"):
        if tree.exists(name):
            try:
                if _PLUGIN_GROUP.search(tree.read(name)):
                    return True
            except TreeError:
                continue
    looked_at = 0
    for name in tree.python_files(""):
        if not _NOT_SOURCE.isdisjoint(PurePosixPath(name).parts):
            continue
        looked_at += 1
        if looked_at > _LOOKED_AT:
            return False
        try:
            if _USES_VLLM.search(tree.read(name)):
                return True
        except TreeError:
            continue
    return False


def _git(spec: str, place: Path, revision: str) -> Target:
    folder = place.resolve()
    with open_repository(folder) as repo:
        commit = resolve_revision(repo, revision)
        top = Path(repo.working_tree_dir or repo.git_dir).resolve()
    prefix = ""
    if folder.is_relative_to(top) and folder != top:
        prefix = folder.relative_to(top).as_posix()
    tree = GitTree(folder, commit, prefix)
    with ExitStack() as stack:
        stack.callback(tree.close)
        layout: Layout = "vllm"
        if not tree.is_dir(MODELS):
            above, _, name = prefix.rpartition("/")
            package = GitTree(folder, commit, above)
            if name == "vllm" and package.is_dir(MODELS):
                tree.close()
                tree = package
                stack.callback(tree.close)
            elif _is_plugin(tree):
                layout = "plugin"
            else:
                package.close()
                raise _neither(spec)
        return Target(
            spec,
            "git",
            tree,
            layout,
            revision=commit,
            repository=top,
            _resources=stack.pop_all(),
        )


def _remote(spec: str) -> Target:
    from vlmend.cli.remote_target import fetched

    workspace, commit = fetched(spec)
    tree = workspace.tree(commit)
    with ExitStack() as stack:
        stack.callback(tree.close)
        layout: Layout = "vllm"
        if not tree.is_dir(MODELS):
            if not _is_plugin(tree):
                raise _neither(spec)
            layout = "plugin"
        return Target(
            spec,
            "git",
            tree,
            layout,
            revision=commit,
            repository=workspace.folder,
            _resources=stack.pop_all(),
        )


def _version(target: Target) -> str | None:
    """Ask whoever knows best: git for a checkout, the metadata for what was built."""
    repository = target.repository
    if target.layout == "vllm":
        if repository is None and target.root and (target.root / ".git").exists():
            repository = target.root
        if repository is not None:
            described = describe(repository, target.revision or "HEAD")
            if described is not None:
                return described
    return next((v for read in _STATED for v in [read(target)] if v is not None), None)


def _find(target: Target, name: str, pattern: re.Pattern[bytes]) -> str | None:
    if not target.tree.exists(name):
        return None
    try:
        match = pattern.search(target.tree.read(name))
    except TreeError:
        return None
    return None if match is None else match[1].decode("utf-8", "replace")


def _from_metadata(target: Target) -> str | None:
    return _find(target, "PKG-INFO", _METADATA_VERSION)


def _from_version_file(target: Target) -> str | None:
    if target.layout != "vllm":
        return None
    return _find(target, "vllm/_version.py", _VERSION_FILE)


def _from_installed(target: Target) -> str | None:
    if target.root is None or target.layout != "vllm":
        return None
    for info in sorted(target.root.glob("vllm-*.dist-info")):
        version = _find(target, f"{info.name}/METADATA", _METADATA_VERSION)
        if version is not None:
            return version
    return None


def _from_project(target: Target) -> str | None:
    return _find(target, "pyproject.toml", _PROJECT_VERSION)


_STATED: Final[tuple[Callable[[Target], str | None], ...]] = (
    _from_metadata,
    _from_version_file,
    _from_installed,
    _from_project,
)
