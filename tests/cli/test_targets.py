"""What was typed becomes a tree, or one line that says why not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from vlmend.cli.errors import UserError
from vlmend.cli.targets import MODELS, resolve_target

PLUGIN = {
    "pyproject.toml": '[project]\nname = "my-plugin"\nversion = "0.3"\n',
    "src/my_plugin/__init__.py": "def up():\n    from vllm import ModelRegistry\n",
}


@pytest.fixture
def write(tmp_path):
    def make(files, name="tree") -> Path:
        for path, content in files.items():
            place = tmp_path / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
        return tmp_path / name

    return make


class TestFolders:
    def test_vllm_checkout(self, write, tree_files):
        root = write(tree_files)
        with resolve_target(str(root)) as target:
            assert (target.kind, target.layout) == ("directory", "vllm")
            assert target.root == root.resolve()
            assert target.version == "9.1.0"
            assert target.tree.exists(f"{MODELS}/tiny.py")

    def test_current_folder_is_the_default(self, write, tree_files, monkeypatch):
        monkeypatch.chdir(write(tree_files))
        with resolve_target(None) as target:
            assert target.spec == "."
            assert target.layout == "vllm"

    def test_package_folder_itself(self, write, tree_files):
        root = write(tree_files)
        with resolve_target(str(root / "vllm")) as target:
            assert target.root == root.resolve()

    def test_installed_package(self, write):
        root = write(
            {
                f"site-packages/{MODELS}/a.py": "",
                "site-packages/vllm-0.9.2.dist-info/METADATA": "Version: 0.9.2\n",
                "site-packages/other/__init__.py": "",
            }
        )
        for place in (root / "site-packages", root / "site-packages/vllm"):
            with resolve_target(str(place)) as target:
                assert target.root == (root / "site-packages").resolve()
                assert target.version == "0.9.2"

    def test_virtual_environment(self, write):
        site = "lib/python3.11/site-packages"
        root = write({"pyvenv.cfg": "", f"{site}/{MODELS}/a.py": ""})
        with resolve_target(str(root)) as target:
            assert target.root == (root / site).resolve()

    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("__version__ = version = '0.33.0'\n", "0.33.0"),
            ('x = 1\n__version__ = "0.8.5"\n', "0.8.5"),
            ("version: str\n__version__: str\n", None),
        ],
    )
    def test_version_file_is_read_not_imported(self, write, text, version):
        root = write({f"{MODELS}/a.py": "", "vllm/_version.py": text + "1 / 0\n"})
        with resolve_target(str(root)) as target:
            assert target.version == version

    def test_checkout_is_described_by_git(self, make_repo, git, tree_files):
        del tree_files["PKG-INFO"]
        repo = make_repo(tree_files)
        git(repo, "tag", "v9.2.0")
        git(repo, "tag", "nightly")
        with resolve_target(str(repo)) as target:
            assert target.version == "9.2.0"

    def test_plugin(self, write):
        root = write(PLUGIN)
        with resolve_target(str(root)) as target:
            assert (target.kind, target.layout) == ("directory", "plugin")
            assert target.root == root.resolve()
            assert target.version == "0.3"

    def test_plugin_known_by_its_entry_point(self, write):
        entry = '[project.entry-points."vllm.general_plugins"]\nx = "x:y"\n'
        with resolve_target(str(write({"pyproject.toml": entry}))) as target:
            assert target.layout == "plugin"

    def test_plugin_inside_a_vllm_checkout(self, write, tree_files):
        root = write({**tree_files, "tests/plugins/p/m.py": "import vllm.config\n"})
        with resolve_target(str(root / "tests/plugins/p")) as target:
            assert target.layout == "plugin"

    @pytest.mark.parametrize(
        "line", ["# import vllm", "import vllm_ascend", "from vllmx import a", "vllm"]
    )
    def test_neither_says_what_was_looked_for(self, write, line):
        with pytest.raises(UserError, match="neither vLLM nor a plugin") as caught:
            resolve_target(str(write({"pkg/a.py": line})))
        assert MODELS in caught.value.message
        assert "import vllm" in caught.value.message

    def test_vendored_copies_do_not_make_a_plugin(self, write):
        root = write({"env/site-packages/x/a.py": "import vllm\n", "pkg/b.py": ""})
        with pytest.raises(UserError, match="neither"):
            resolve_target(str(root))

    def test_part_of_a_tree_names_the_whole(self, write, tree_files):
        root = write({**tree_files, f"{MODELS}/b.py": "import vllm\n"})
        with pytest.raises(UserError, match="only a part") as caught:
            resolve_target(str(root / MODELS))
        assert str(root) in (caught.value.hint or "")

    def test_unreadable_folder(self, write, tree_files):
        root = write(tree_files)
        root.chmod(0)
        try:
            if os.access(root, os.R_OK):
                with resolve_target(str(root)):
                    return  # the superuser may read everything
            with pytest.raises(UserError, match="cannot be read"):
                resolve_target(str(root))
        finally:
            root.chmod(0o755)


class TestRevisions:
    def test_revision(self, make_repo, git, tree_files):
        repo = make_repo(tree_files)
        git(repo, "tag", "v9.3.0")
        shutil.rmtree(repo / "vllm")
        with resolve_target(f"{repo}@v9.3.0") as target:
            assert (target.kind, target.layout) == ("git", "vllm")
            assert target.version == "9.3.0"
            assert target.revision == git(repo, "rev-parse", "HEAD")
            assert target.repository == repo.resolve()
            assert target.root is None
            assert target.tree.exists(f"{MODELS}/tiny.py")

    def test_at_signs_on_both_sides(self, make_repo, git, tree_files):
        make_repo({"a.py": ""}, name="me")
        repo = make_repo(tree_files, name="me@home")
        git(repo, "branch", "fix@1")
        with resolve_target(f"{repo}@fix@1") as target:
            assert target.layout == "vllm"
        with resolve_target(f"{repo}@HEAD@{{0}}") as target:
            assert target.layout == "vllm"

    def test_current_repository(self, make_repo, tree_files, monkeypatch):
        monkeypatch.chdir(make_repo(tree_files))
        with resolve_target("@HEAD") as target:
            assert target.kind == "git"

    def test_package_folder_and_plugin_in_a_subfolder(self, make_repo, tree_files):
        nested = {f"plugins/one/{path}": text for path, text in PLUGIN.items()}
        repo = make_repo({**tree_files, **nested})
        with resolve_target(f"{repo}/vllm@HEAD") as target:
            assert target.layout == "vllm"
            assert target.tree.exists(f"{MODELS}/tiny.py")
        with resolve_target(f"{repo}/plugins/one@HEAD") as target:
            assert target.layout == "plugin"
            assert target.version == "0.3"
            assert list(target.tree.python_files("")) == ["src/my_plugin/__init__.py"]

    def test_bare_repository(self, make_repo, git, tree_files, tmp_path):
        repo = make_repo(tree_files)
        bare = tmp_path / "bare.git"
        git(repo, "clone", "-q", "--bare", str(repo), str(bare))
        with resolve_target(f"{bare}@main") as target:
            assert target.layout == "vllm"

    def test_unknown_revision(self, make_repo, tree_files):
        repo = make_repo(tree_files)
        with pytest.raises(UserError, match="no commit 'v1.2.3'"):
            resolve_target(f"{repo}@v1.2.3")

    def test_repository_of_something_else(self, make_repo):
        repo = make_repo({"a.py": "x = 1\n"})
        with pytest.raises(UserError, match="neither vLLM nor a plugin"):
            resolve_target(f"{repo}@HEAD")

    def test_folder_without_repository(self, write, tree_files):
        root = write(tree_files)
        with pytest.raises(UserError, match="not a git repository"):
            resolve_target(f"{root}@HEAD")

    def test_nothing_after_the_at_sign(self, make_repo, tree_files):
        with pytest.raises(UserError, match="nothing after the @"):
            resolve_target(f"{make_repo(tree_files)}@")


class TestReleases:
    @pytest.mark.parametrize("spec", ["vllm==9.1.0", "vLLM == 9.1", "vllm===9.1.0"])
    def test_release(self, package_index, tree_files, spec):
        package_index.add("9.1.0", tree_files)
        with resolve_target(spec) as target:
            assert (target.kind, target.layout) == ("release", "vllm")
            assert target.version == "9.1.0"

    def test_downloaded_sdist(self, package_index, tree_files):
        archive = package_index.add("9.1.0", tree_files)
        with resolve_target(str(archive)) as target:
            assert (target.kind, target.version) == ("release", "9.1.0")
            root = target.root
            assert root is not None
            assert root.is_dir()
        assert not root.exists()
        assert package_index.asked == []

    def test_sdist_without_models(self, package_index):
        archive = package_index.add("9.1.0", {"vllm/__init__.py": ""})
        with pytest.raises(UserError, match=f"there is no {MODELS}/ in it"):
            resolve_target(str(archive))

    def test_release_without_models(self, package_index):
        package_index.add("9.1.0", {"vllm/__init__.py": ""})
        with pytest.raises(UserError, match=f"there is no {MODELS}/ in it"):
            resolve_target("vllm==9.1.0")

    def test_real_release(self, release):
        root = release("0.21.0")
        with resolve_target(str(root)) as target:
            assert target.version == "0.21.0"
            files = list(target.tree.python_files("vllm"))
        assert len(files) > 1500
        assert f"{MODELS}/registry.py" in files
        for kept in (".github/PULL_REQUEST_TEMPLATE.md", "requirements/common.txt"):
            assert (root / kept).is_file()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no/such/folder", "no such file or folder"),
        ("./no/such@HEAD", "no such file or folder"),
        ("vllm>=0.21", "not one exact release"),
        ("vllm~=0.21", "not one exact release"),
        ("vllm", "not one exact release"),
        ("https://example.invalid/vllm", "remote repository"),
        ("git@example.invalid:vllm", "remote repository"),
        ("vllm==banana", "is not a version"),
    ],
)
def test_no_target(spec, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        resolve_target(spec)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_single_file_is_no_target(write):
    root = write({"a.py": "import vllm\n"})
    with pytest.raises(UserError, match="not a source distribution"):
        resolve_target(str(root / "a.py"))
