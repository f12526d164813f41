"""``preview --pr-text`` and "present since": what has no evidence is not said."""

from __future__ import annotations

import pytest

from vlmend.cli.rig.sample import MODELS, registry, wrapper

ONLY = ("--codemod", "delegate-intermediate-tensors")
BARE = "BareForConditionalGeneration"


def test_the_text_says_what_was_not_done_and_links_to_nothing(vlmend, mini):
    ended = vlmend("preview", mini, *ONLY, "--pr-text")
    assert ended.code == 1
    assert ended.out.startswith("[Bugfix] Hand up make_empty_intermediate_tensors in ")
    assert "unknown (not done: this text was made without GitHub)" in ended.out
    assert "No test was run" in ended.out
    # No page is known to show a folder's lines.
    assert "](http" not in ended.out
    assert f"`{MODELS}/bare.py:" in ended.out
    assert "present since" not in ended.out
    assert f"--class {BARE}" in ended.out
    assert "PROVEN" not in ended.out


def test_a_release_links_to_its_tag(vlmend, release):
    release("0.21.0")
    ended = vlmend(
        *("preview", "vllm==0.21.0", *ONLY, "--pr-text", "--class", "Cohere2VisionFor*")
    )
    start = "https://github.com/vllm-project/vllm/blob/v0.21.0/vllm/model_executor/"
    assert f"]({start}models/cohere2_vision.py#L354)" in ended.out
    assert "present since vllm 0.10.1 (2025-08-18)" in ended.out
    assert "## Test Plan" in ended.out  # the release's own template


@pytest.mark.parametrize("other", [("--stat",), ("--format", "json")])
def test_it_is_a_text_of_its_own(vlmend, mini, other):
    ended = vlmend("preview", mini, "--pr-text", *other)
    assert (ended.code, "--pr-text is a text of its own" in ended.err) == (2, True)


@pytest.fixture
def clone(mini, git):
    """A clone in which Bare breaks with #41 and is then moved to another file."""
    bare = mini / MODELS / "bare.py"
    broken = bare.read_text()
    git(mini, "init", "-q", "-b", "main")

    def commit(subject: str) -> str:
        git(mini, "add", "-A")
        git(mini, "commit", "-q", "-m", subject)
        return git(mini, "rev-parse", "HEAD")

    bare.write_text(wrapper("Bare", sound=True))
    commit("Start")
    bare.write_text(broken)
    bringing = commit("[Model] Rework Bare (#41)")
    bare.write_text(f"{broken}\n# Something else.\n")
    commit("Touch Bare (#42)")
    moved = mini / MODELS / "moved.py"
    bare.rename(moved)
    heir = mini / MODELS / "heir.py"
    heir.write_text(heir.read_text().replace("from .bare", "from .moved"))
    names = {n.lower(): n for n in ("Bare", "Heir", "Other", "Wired")}
    listed = registry(names).replace('"bare"', '"moved"')
    (mini / MODELS / "registry.py").write_text(listed)
    commit("Move Bare (#43)")
    return mini, bringing


def test_the_commit_that_brought_it_is_found_over_a_move_and_kept(vlmend, clone):
    root, bringing = clone
    assert "present since" not in vlmend("explain", BARE, root, *ONLY).out
    ended = vlmend("explain", BARE, root, *ONLY, "--since")
    assert (ended.code, ended.err) == (0, "")
    said = f"present since commit {bringing[:10]} ("
    assert said in ended.out
    assert ", #41)" in ended.out.partition(said)[2].splitlines()[0]
    assert said in vlmend("explain", BARE, root, *ONLY).out
    assert said in vlmend("preview", root, *ONLY, "--pr-text").out


def test_a_commit_is_not_named_where_the_history_does_not_have_it(
    vlmend, clone, git, tmp_path
):
    root, _ = clone
    assert "present since" in vlmend("explain", BARE, root, *ONLY, "--since").out
    other = tmp_path / "other"
    other.mkdir()
    git(root, "checkout-index", "-a", f"--prefix={other}/")
    assert "present since" not in vlmend("explain", BARE, other, *ONLY).out


def test_history_over_commits_is_kept_too(vlmend, clone):
    root, bringing = clone
    ended = vlmend("history", root, "--git", "--class", "Bare*", *ONLY)
    assert ended.code == 0
    assert "#41" in ended.out
    said = f"present since commit {bringing[:10]} ("
    assert said in vlmend("explain", BARE, root, *ONLY).out


def test_since_needs_a_clone_that_knows_the_past(vlmend, clone, git, tmp_path):
    root, _ = clone
    shallow = tmp_path / "shallow"
    git(root, "clone", "-q", "--depth=1", f"file://{root}", str(shallow))
    ended = vlmend("explain", BARE, shallow, *ONLY, "--since")
    assert (ended.code, "is a shallow clone" in ended.err) == (2, True)
    (root / ".git").rename(tmp_path / "gone")
    ended = vlmend("explain", BARE, root, *ONLY, "--since")
    assert ended.code == 2
    assert len(ended.err.strip().splitlines()) <= 2
