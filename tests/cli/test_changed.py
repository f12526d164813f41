"""``--changed``: what a change touches, and what is new with it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from vlmend.cli.changed import Change, compared
from vlmend.cli.report.json import schema
from vlmend.codemods import Finding, ScanResult, Status

MODELS = "vllm/model_executor/models"
ONLY = ("--codemod", "delegate-intermediate-tensors")
BARE = f"{MODELS}/bare.py"
WIRED = f"{MODELS}/wired.py"
INNER = f"{MODELS}/inner.py"
HAND_UP = (
    "        self.make_empty_intermediate_tensors = (\n"
    "            self.language_model.make_empty_intermediate_tensors\n"
    "        )\n"
)


@pytest.fixture
def repo(make_repo, mini_files) -> Path:
    return make_repo(mini_files)


def unwire(repo: Path) -> None:
    """Take the hand-up out of a sound wrapper."""
    place = repo / WIRED
    text = place.read_text()
    assert HAND_UP in text
    place.write_text(text.replace(HAND_UP, ""))


def found(vlmend, *words):
    """Run a scan with --changed; return the exit code and the document."""
    ended = vlmend("scan", *words, *ONLY, "--changed", "--format", "json")
    assert ended.code in (0, 1), ended.err
    document = json.loads(ended.out)
    Draft202012Validator(schema("scan")).validate(document)
    return ended.code, document


def names(document) -> set[str]:
    return {f["class"].removesuffix("ForConditionalGeneration") for f in document}


def touched(document) -> set[str]:
    return {
        key.partition(":")[2].removesuffix("ForConditionalGeneration")
        for key in document["changed"]["classes"]
    }


def test_what_was_wrong_before_does_not_count(vlmend, repo):
    assert vlmend("scan", repo, *ONLY).code == 1
    code, document = found(vlmend, repo)
    assert (code, document["findings"], document["changed"]["files"]) == (0, [], [])


@pytest.mark.parametrize("staged", [False, True], ids=["in the work tree", "staged"])
def test_an_uncommitted_defect_is_new(vlmend, repo, git, staged):
    unwire(repo)
    if staged:
        git(repo, "add", "-A")
    code, document = found(vlmend, repo)
    assert code == 1
    assert names(document["findings"]) == {"Wired"}
    assert document["changed"]["files"] == [WIRED]
    assert document["changed"]["commit"] == git(repo, "rev-parse", "HEAD")
    assert touched(document) == {"Wired"}


def test_a_new_file_counts_before_git_knows_it(vlmend, repo):
    text = (repo / BARE).read_text().replace("Bare", "Fresh")
    (repo / f"{MODELS}/fresh.py").write_text(text)
    code, document = found(vlmend, repo)
    assert code == 1
    assert names(document["findings"]) == {"Fresh"}


def test_a_commit_counts_against_its_base(vlmend, repo, git):
    unwire(repo)
    git(repo, "commit", "-qam", "Unwire")
    assert found(vlmend, repo)[0] == 0
    code, document = found(vlmend, repo, "--base", "HEAD~1")
    assert (code, names(document["findings"])) == (1, {"Wired"})


def test_what_pre_commit_compares_with_is_the_base(vlmend, repo, git):
    unwire(repo)
    git(repo, "commit", "-qam", "Unwire")
    base = git(repo, "rev-parse", "HEAD~1")
    words = ("scan", repo, *ONLY, "--changed")
    assert vlmend(*words, PRE_COMMIT_FROM_REF=base).code == 1
    assert vlmend(*words, "--base", "HEAD", PRE_COMMIT_FROM_REF=base).code == 0


def test_a_commit_is_not_judged_by_what_it_leaves_out(vlmend, repo, git):
    """What is not staged is put aside by pre-commit, a file unknown to git is not."""
    text = (repo / BARE).read_text().replace("Bare", "Fresh")
    (repo / f"{MODELS}/fresh.py").write_text(text)
    (repo / WIRED).write_text(f"{(repo / WIRED).read_text()}# harmless\n")
    words = ("scan", repo, *ONLY, "--changed", "--format", "json")
    assert vlmend(*words).code == 1
    ended = vlmend(*words, PRE_COMMIT="1")
    assert (ended.code, json.loads(ended.out)["changed"]["files"]) == (0, [WIRED])
    git(repo, "add", "-A")
    ended = vlmend(*words, PRE_COMMIT="1")
    assert (ended.code, names(json.loads(ended.out)["findings"])) == (1, {"Fresh"})


def _renamed(repo: Path, git, old: str, new: str) -> None:
    git(repo, "mv", f"{MODELS}/{old}.py", f"{MODELS}/{new}.py")
    for place in repo.glob(f"{MODELS}/*.py"):
        text = place.read_text()
        for form in (f'"{old}"', f".{old} "):
            text = text.replace(form, form.replace(old, new))
        place.write_text(text)


def test_a_defect_that_moves_with_its_file_is_not_new(vlmend, repo, git):
    _renamed(repo, git, "bare", "moved")
    code, document = found(vlmend, repo)
    assert (code, document["findings"]) == (0, [])
    assert found(vlmend, repo, "--all")[0] == 0


def test_a_class_that_breaks_while_it_moves_is_new(vlmend, repo, git):
    unwire(repo)
    _renamed(repo, git, "wired", "moved")
    code, document = found(vlmend, repo)
    assert (code, names(document["findings"])) == (1, {"Wired"})


def test_a_copy_of_a_broken_class_is_new(vlmend, repo):
    (repo / f"{MODELS}/copied.py").write_text((repo / BARE).read_text())
    code, document = found(vlmend, repo)
    assert (code, names(document["findings"])) == (1, {"Bare"})


def test_a_revision_can_be_compared_without_a_checkout(vlmend, repo, git):
    git(repo, "switch", "-qc", "topic")
    unwire(repo)
    git(repo, "commit", "-qam", "Unwire")
    git(repo, "switch", "-q", "main")
    code, document = found(vlmend, f"{repo}@topic", "--base", "main")
    assert (code, names(document["findings"])) == (1, {"Wired"})


def test_a_changed_base_class_touches_its_heirs(vlmend, repo):
    place = repo / BARE
    place.write_text(f"# moved\n{place.read_text()}")
    code, document = found(vlmend, repo)
    assert code == 0
    assert {"Bare", "Heir"} <= touched(document)
    assert touched(document).isdisjoint({"Wired", "Other"})


def test_a_changed_inner_model_touches_its_wrappers(vlmend, repo):
    place = repo / INNER
    text = place.read_text()
    place.write_text(text.replace("self.make_empty_intermediate_tensors", "self.other"))
    code, document = found(vlmend, repo)
    assert code == 1
    assert {"InnerForCausalLM", "Wired"} <= touched(document)
    assert {"InnerForCausalLM", "Wired"} <= names(document["findings"])


def test_what_is_touched_does_not_depend_on_what_was_remembered(vlmend, repo, git):
    """An answer from the cache asks no further; that is no difference between trees."""
    told: list[list[str]] = []
    for place in (WIRED, INNER, BARE, WIRED):
        (repo / place).write_text(f"{(repo / place).read_text()}# harmless\n")
        ended = vlmend("scan", repo, "--changed", "--format", "json")
        told.append(json.loads(ended.out)["changed"]["classes"])
        git(repo, "checkout", "-q", ".")
    first, *_, again = told
    assert [key.partition(":")[2] for key in first] == ["WiredForConditionalGeneration"]
    assert again == first


def test_a_file_that_nothing_rests_on_touches_nothing(vlmend, repo):
    (repo / "notes.md").write_text("words\n")
    code, document = found(vlmend, repo)
    assert (code, document["changed"]["classes"]) == (0, [])


def test_a_finding_that_was_no_part_of_a_reading_touches_its_class():
    """A base that heals its heirs is told without having been judged for itself."""
    finding = Finding(
        codemod="some-codemod",
        module="package.base",
        class_name="Base",
        file="package/base.py",
        line=1,
        class_line=1,
        status=Status.FIXABLE,
        message="It is broken.",
    )
    nothing = ScanResult((), (), ())
    change = Change("HEAD", "0" * 40, {"package/heir.py": b""})
    told = replace(nothing, findings=(finding,))
    assert compared(change, nothing, told).touched == {"package.base:Base"}
    assert compared(change, told, told).touched == set()


def test_known_findings_are_counted_and_can_be_shown(vlmend, repo):
    place = repo / BARE
    place.write_text(f"# moved\n{place.read_text()}")
    told = vlmend("scan", repo, *ONLY, "--changed").out
    assert "  compared with HEAD (" in told
    assert "Not new: 1; --all shows it" in told
    ended = vlmend("scan", repo, *ONLY, "--changed", "--all")
    assert ended.code == 0
    assert "fixable  BareForConditionalGeneration" in ended.out
    assert "OtherForConditionalGeneration" not in ended.out


def test_fix_writes_what_is_new_and_nothing_else(vlmend, repo):
    unwire(repo)
    ended = vlmend("fix", repo, *ONLY, "--changed", "--allow-dirty")
    assert ended.code == 0, ended.err
    assert HAND_UP in (repo / WIRED).read_text()
    assert HAND_UP not in (repo / BARE).read_text()


def test_a_tree_below_the_top_of_its_repository(vlmend, make_repo, mini_files):
    repo = make_repo({f"src/fork/{name}": text for name, text in mini_files.items()})
    unwire(repo / "src/fork")
    code, document = found(vlmend, repo / "src/fork")
    assert (code, document["changed"]["files"]) == (1, [WIRED])


# --- bases that are no use ------------------------------------------------------------


def one_line(ended, *parts: str) -> None:
    """Assert that the command ended with code 2 and one line (and perhaps a hint)."""
    assert (ended.code, ended.out) == (2, ""), ended
    first, *hint = ended.err.splitlines()
    assert first.startswith("vlmend: ")
    assert len(hint) <= 1
    for part in parts:
        assert part in ended.err


def test_a_base_that_is_no_ancestor_is_replaced_by_where_they_parted(vlmend, repo, git):
    git(repo, "switch", "-qc", "topic")
    unwire(repo)
    git(repo, "commit", "-qam", "Unwire")
    git(repo, "switch", "-q", "main")
    (repo / "other.md").write_text("x")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "Go on")
    git(repo, "switch", "-q", "topic")
    ended = vlmend("scan", repo, *ONLY, "--changed", "--base", "main")
    assert ended.code == 1
    parted = git(repo, "merge-base", "main", "topic")[:12]
    assert ended.err == (
        f"main is no ancestor of HEAD; compared with {parted}, where they parted\n"
    )


def test_a_base_without_common_history(vlmend, repo, git):
    git(repo, "switch", "-q", "--orphan", "alone")
    git(repo, "commit", "-q", "--allow-empty", "-m", "Alone")
    git(repo, "switch", "-q", "main")
    ended = vlmend("scan", repo, "--changed", "--base", "alone")
    one_line(ended, "alone: is no ancestor of HEAD, and they have no history in common")


def test_a_base_that_is_not_there(vlmend, repo):
    one_line(vlmend("scan", repo, "--changed", "--base", "nope"), "no commit 'nope'")


def test_a_shallow_clone(vlmend, repo, git, tmp_path):
    git(repo, "switch", "-qc", "topic")
    unwire(repo)
    git(repo, "commit", "-qam", "Unwire")
    first = git(repo, "rev-parse", "main")
    place = tmp_path / "shallow"
    origin = f"file://{repo}"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--branch=topic", origin, place], check=True
    )
    ended = vlmend("scan", place, "--changed", "--base", first)
    one_line(ended, "the clone is shallow and has no commit", "git fetch --unshallow")
    git(place, "fetch", "-q", "--depth=1", "origin", "main")
    ended = vlmend("scan", place, "--changed", "--base", "FETCH_HEAD")
    one_line(ended, "the clone is shallow: its history ends", "fetch-depth: 0")


def test_a_folder_outside_any_repository(vlmend, mini):
    one_line(vlmend("scan", mini, "--changed"), "not a git repository")


def test_a_release_has_no_history(vlmend, package_index, mini_files):
    package_index.add("9.1.0", mini_files)
    one_line(vlmend("scan", "vllm==9.1.0", "--changed"), "has no history")


def test_a_base_needs_a_change(vlmend, repo):
    ended = vlmend("scan", repo, "--base", "HEAD")
    assert ended.code == 2
    assert "--base means nothing without --changed" in ended.err


def test_an_unset_variable_is_no_base(vlmend, repo):
    ended = vlmend("scan", repo, "--changed", "--base", "")
    assert ended.code == 2
    assert "--base is empty" in ended.err


def test_a_repository_without_a_commit(vlmend, mini, git):
    git(mini, "init", "-q")
    ended = vlmend("scan", mini, "--changed")
    one_line(ended, "has no commit yet", "without --changed")


# --- baselines ------------------------------------------------------------------------


def test_a_baseline_lets_a_tree_pass_and_still_finds_what_is_new(
    vlmend, mini, tmp_path
):
    known = tmp_path / "known.json"
    ended = vlmend("scan", mini, *ONLY, "--write-baseline", known)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"{known}: 2 findings listed\n"
    assert vlmend("scan", mini, *ONLY, "--baseline", known).code == 0
    unwire(mini)
    ended = vlmend("scan", mini, *ONLY, "--baseline", known)
    assert ended.code == 1
    assert "fixable  WiredForConditionalGeneration" in ended.out
    assert "fixable  BareForConditionalGeneration" not in ended.out


def test_a_finding_that_is_worse_than_listed_counts(vlmend, mini, tmp_path):
    known = tmp_path / "known.json"
    vlmend("scan", mini, *ONLY, "--write-baseline", known)
    text = known.read_text()
    known.write_text(text.replace('"fixable"', '"unproven"', 1))
    ended = vlmend("scan", mini, *ONLY, "--baseline", known, "--format", "json")
    assert ended.code == 1
    assert names(json.loads(ended.out)["findings"]) == {"Bare"}


def test_a_baseline_is_stable_sorted_and_readable(vlmend, mini, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    vlmend("scan", mini, *ONLY, "--write-baseline", first)
    (mini / BARE).write_text(f"# moved\n\n{(mini / BARE).read_text()}")
    vlmend("scan", mini, *ONLY, "--write-baseline", second)
    assert first.read_bytes() == second.read_bytes()
    document = json.loads(first.read_text())
    assert document["schema_version"] == 1
    classes = [entry["class"] for entry in document["findings"]]
    assert classes == sorted(classes)
    assert classes[0] == f"{MODELS.replace('/', '.')}.bare:BareForConditionalGeneration"


def test_what_was_mended_since_is_told(vlmend, mini, tmp_path):
    known = tmp_path / "known.json"
    vlmend("scan", mini, *ONLY, "--write-baseline", known)
    vlmend("fix", mini, *ONLY, "--class", "Bare*")
    told = vlmend("scan", mini, *ONLY, "--baseline", known).out
    assert f"1 entry of {known} no longer found" in told


def test_a_report_serves_as_a_baseline(vlmend, mini, tmp_path):
    report = tmp_path / "report.json"
    vlmend("scan", mini, *ONLY, "--format", "json", "-o", report)
    assert vlmend("scan", mini, *ONLY, "--baseline", report).code == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("{", "is no baseline", id="not JSON"),
        pytest.param("[]", "not a JSON object", id="not an object"),
        pytest.param('{"a": 1}', "neither a baseline nor a report", id="another thing"),
        pytest.param(
            '{"kind": "vlmend baseline", "schema_version": 7, "findings": []}',
            "a baseline of schema version 7; 1 is read here",
            id="another version",
        ),
        pytest.param(
            '{"schema_version": 7, "target": {}, "findings": []}',
            "a report of schema version 7; 1 is read here",
            id="a report of another version",
        ),
        pytest.param(
            '{"kind": "vlmend baseline", "schema_version": 1, "findings": [{}]}',
            "a damaged baseline",
            id="damaged",
        ),
    ],
)
def test_a_baseline_that_is_no_use(vlmend, mini, tmp_path, content, said):
    place = tmp_path / "known.json"
    place.write_text(content)
    one_line(vlmend("scan", mini, "--baseline", place), said)


def test_a_baseline_that_is_not_there(vlmend, mini, tmp_path):
    ended = vlmend("scan", mini, "--baseline", tmp_path / "none.json")
    one_line(ended, "cannot be read", "--write-baseline")


@pytest.mark.parametrize("option", ["--output", "--write-baseline"])
def test_a_place_that_cannot_be_written(vlmend, mini, tmp_path, option):
    ended = vlmend("scan", mini, option, tmp_path / "no/such/folder/file")
    one_line(ended, "cannot be written")
