"""A revision is read from git's objects; the work tree is never touched."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

from vlmend.cli.errors import UserError
from vlmend.cli.git_tree import GitTree, describe, open_repository, resolve_revision
from vlmend.codemods.analysis.tree import MAX_FILE_BYTES, DirectoryTree, TreeError


def tree_of(repo: Path, revision: str = "HEAD", prefix: str = "") -> GitTree:
    with open_repository(repo) as opened:
        commit = resolve_revision(opened, revision)
    return GitTree(repo, commit, prefix)


def test_same_answers_as_a_folder(make_repo):
    repo = make_repo(
        {
            "vllm/b.py": "b = 1\r\n",
            "vllm/a.py": b"\xef\xbb\xbfa = 1\n",
            "vllm/sub/c.py": b"\xff\xfe\x00",
            "vllm/.hidden/d.py": "",
            "vllm/__pycache__/e.py": "",
            "vllm/note.txt": "",
            "vllm.py": "",
            "umläut/x.py": "",
            "with space/new\nline.py": "",
        }
    )
    git, folder = tree_of(repo), DirectoryTree(repo)

    for start in ("", "vllm", "vllm/sub", "umläut", "with space"):
        assert list(git.python_files(start)) == sorted(folder.python_files(start))
    for path in folder.python_files(""):
        assert git.exists(path)
        assert git.read(path) == folder.read(path)
    for path in ("", "vllm", "vllm/sub", "vll", "vllm/a.py", "nothing"):
        assert git.is_dir(path) == folder.is_dir(path), path
        assert git.exists(path) == folder.exists(path), path


def test_work_tree_does_not_matter_and_is_left_alone(make_repo, git):
    repo = make_repo({"vllm/a.py": "committed"})
    (repo / "vllm/a.py").write_text("changed")
    (repo / "vllm/new.py").write_text("untracked")
    before = git(repo, "status", "--porcelain=v2", "--branch")
    index = (repo / ".git/index").read_bytes()

    tree = tree_of(repo)
    assert tree.read("vllm/a.py") == b"committed"
    assert list(tree.python_files("vllm")) == ["vllm/a.py"]

    assert (repo / ".git/index").read_bytes() == index
    assert git(repo, "status", "--porcelain=v2", "--branch") == before


def test_older_revision(make_repo, git):
    repo = make_repo({"vllm/a.py": "old"})
    git(repo, "tag", "v1.0.0")
    (repo / "vllm/a.py").write_text("new")
    git(repo, "commit", "-qam", "Change")

    assert tree_of(repo, "v1.0.0").read("vllm/a.py") == b"old"
    assert tree_of(repo, "HEAD~1").read("vllm/a.py") == b"old"
    assert tree_of(repo, "main").read("vllm/a.py") == b"new"
    assert describe(repo, "v1.0.0") == "1.0.0"
    assert (describe(repo) or "").startswith("1.0.0-1-g")


def test_text_filters_do_not_apply(make_repo, git):
    repo = make_repo({"a.py": "x = 1\n", ".gitattributes": "*.py text eol=crlf\n"})

    assert tree_of(repo).read("a.py") == b"x = 1\n"


def test_links_and_submodules_are_not_followed(make_repo, git, tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("secret")
    repo = make_repo({"vllm/a.py": "a"})
    (repo / "vllm/link.py").symlink_to(secret)
    (repo / "vllm/loop").symlink_to(".")
    git(repo, "add", "-A")
    head = git(repo, "rev-parse", "HEAD")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},vllm/mod.py")
    git(repo, "commit", "-qm", "Links")
    tree = tree_of(repo)

    assert list(tree.python_files("")) == ["vllm/a.py"]
    assert not tree.exists("vllm/link.py")
    with pytest.raises(TreeError, match="is a link; not followed"):
        tree.read("vllm/link.py")
    with pytest.raises(TreeError, match="is not a file"):
        tree.read("vllm/mod.py")
    with pytest.raises(TreeError, match="does not exist in"):
        tree.read("vllm/loop/a.py")


@pytest.mark.parametrize("path", ["../a.py", "/etc/passwd", "vllm/../../a.py"])
def test_outside(make_repo, path):
    with pytest.raises(TreeError, match="lies outside the tree"):
        tree_of(make_repo({"a.py": ""})).read(path)


def test_huge_file_is_reported_and_the_next_one_is_read(make_repo):
    repo = make_repo({"a.py": bytes(MAX_FILE_BYTES + 1), "b.py": "b"})
    tree = tree_of(repo)

    with pytest.raises(TreeError, match="is larger than 4 MiB"):
        tree.read("a.py")
    assert tree.read("b.py") == b"b"


def test_lost_object_is_reported_and_the_next_one_is_read(make_repo, git):
    repo = make_repo({"a.py": "lost", "b.py": "b"})
    lost = git(repo, "rev-parse", "HEAD:a.py")
    (repo / ".git/objects" / lost[:2] / lost[2:]).unlink()
    tree = tree_of(repo)

    with pytest.raises(TreeError, match="git cannot read it"):
        tree.read("a.py")
    assert tree.read("b.py") == b"b"


def test_prefix_is_the_root(make_repo):
    repo = make_repo({"plugins/one/pkg/a.py": "a", "b.py": ""})
    tree = tree_of(repo, prefix="plugins/one")

    assert list(tree.python_files("")) == ["pkg/a.py"]
    assert tree.read("pkg/a.py") == b"a"


def test_forked_processes_read_for_themselves(make_repo):
    files = {f"m{i}.py": str(i) * 3000 for i in range(200)}
    tree = tree_of(make_repo(files))
    assert tree.read("m7.py") == b"7" * 3000

    def check() -> None:
        sys.exit(any(tree.read(n) != text.encode() for n, text in files.items()))

    # Forked with a live pipe to git in hand: the case that would mix up answers.
    children = [get_context("fork").Process(target=check) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)

    assert [child.exitcode for child in children] == [0, 0, 0]
    assert tree.read("m9.py") == b"9" * 3000


def test_pickled_without_what_belongs_to_the_process(make_repo):
    tree = tree_of(make_repo({"a.py": "a"}))
    tree.read("a.py")
    pickled = pickle.dumps(tree)

    assert b"Repo" not in pickled
    assert pickle.loads(pickled).read("a.py") == b"a"


@pytest.mark.parametrize(
    "revision", ["nope", "v0.0.1", "--help", "-x", "HEAD:a.py", ""]
)
def test_unknown_revision(make_repo, revision):
    repo = make_repo({"a.py": ""})

    with (
        open_repository(repo) as opened,
        pytest.raises(UserError, match="no commit") as caught,
    ):
        resolve_revision(opened, revision)

    assert "\n" not in caught.value.message


def test_no_repository(tmp_path):
    with pytest.raises(UserError, match="not a git repository"):
        open_repository(tmp_path)


def test_empty_repository_has_no_commit(tmp_path, git):
    git(tmp_path, "init", "-q")

    with (
        open_repository(tmp_path) as opened,
        pytest.raises(UserError, match="no commit 'HEAD'"),
    ):
        resolve_revision(opened, "HEAD")


def test_machine_without_git_says_so(make_repo, tmp_path):
    repo = make_repo({"vllm/model_executor/models/a.py": ""})
    script = (
        "import sys\n"
        "from vlmend.cli.targets import resolve_target\n"
        "from vlmend.cli.errors import UserError\n"
        f"with resolve_target({str(repo)!r}) as target:\n"
        "    print(target.layout, target.version)\n"
        "try:\n"
        f"    resolve_target({f'{repo}@HEAD'!r})\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    env = {**os.environ, "PATH": str(tmp_path / "empty")}

    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True
    )

    assert done.stderr == ""
    folder, revision = done.stdout.splitlines()
    assert folder == "vllm None"
    assert revision.endswith("is read through git, and git was not found")
