"""The configuration of a tree, and suppressions without effect."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

MODELS = "vllm/model_executor/models"
CODEMOD = "delegate-intermediate-tensors"
BARE = "BareForConditionalGeneration"
OTHER = "OtherForConditionalGeneration"
IGNORE = (
    f'[[ignore]]\nclass = "Bare*"\ncodemod = "{CODEMOD}"\nreason = "a fork of ours"\n'
)


@pytest.fixture
def configured(mini):
    """Return a function that gives the miniature a configuration."""

    def write(text: str, name: str = "vlmend.toml"):
        (mini / name).write_text(f'codemods = ["{CODEMOD}"]\n{text}')
        return mini

    return write


def found(ended) -> set[str]:
    return {f["class"] for f in json.loads(ended.out)["findings"]}


def test_the_target_configures_itself(vlmend, configured):
    mini = configured('exclude = ["Bare*"]\n')
    ended = vlmend("scan", mini, "--format", "json")
    assert found(ended) == {OTHER}
    assert list(json.loads(ended.out)["summary"]["by_codemod"]) == [CODEMOD]


def test_a_table_of_the_project_file_is_as_good(vlmend, mini):
    (mini / "pyproject.toml").write_text(
        f'[project]\nname = "x"\n[tool.vlmend]\ncodemods = ["{CODEMOD}"]\n'
        'exclude = ["Bare*"]\n'
    )
    assert found(vlmend("scan", mini, "--format", "json")) == {OTHER}


def test_a_file_of_its_own_comes_before_the_project_file(vlmend, configured, mini):
    (mini / "pyproject.toml").write_text('[tool.vlmend]\nexclude = ["*"]\n')
    configured('exclude = ["Other*"]\n')
    assert found(vlmend("scan", mini, "--format", "json")) == {BARE}


def test_a_revision_has_the_configuration_of_its_own_time(
    vlmend, make_repo, mini_files
):
    repo = make_repo({**mini_files, "vlmend.toml": f'codemods = ["{CODEMOD}"]\n'})
    (repo / "vlmend.toml").write_text('exclude = ["*"]\n')
    ended = vlmend("scan", f"{repo}@HEAD", "--format", "json")
    assert found(ended) == {BARE, OTHER}
    assert vlmend("scan", repo).code == 0


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        pytest.param(
            'exclude = ["Bare*"]\n', ("--exclude", "Other*"), {BARE}, id="exclude"
        ),
        pytest.param(
            'codemods = ["forward-kwargs"]\n',
            ("--codemod", CODEMOD),
            {BARE, OTHER},
            id="codemods",
        ),
    ],
)
def test_what_is_typed_beats_the_file(vlmend, mini, text, words, expected):
    (mini / "vlmend.toml").write_text(text)
    ended = vlmend("scan", mini, *words, "--format", "json")
    assert found(ended) >= expected
    assert "Bare*" not in ended.out


def test_strict_of_the_file_holds_until_typed(vlmend, configured):
    mini = configured('strict = true\nexclude = ["Bare*", "Other*"]\n')
    place = mini / f"{MODELS}/wired.py"
    place.write_text(
        place.read_text().replace(
            "SupportsPP):", f"SupportsPP):  # vlmend: ignore[{CODEMOD}]"
        )
    )
    assert vlmend("scan", mini).code == 1
    assert vlmend("scan", mini, "--no-strict").code == 0


def test_a_file_can_be_named_instead(vlmend, configured, tmp_path):
    mini = configured('exclude = ["*"]\n')
    other = tmp_path / "ci.toml"
    other.write_text(f'codemods = ["{CODEMOD}"]\n')
    assert vlmend("scan", mini).code == 0
    assert vlmend("scan", mini, "--config", other).code == 1


def test_a_baseline_is_found_from_the_file_that_names_it(vlmend, mini, tmp_path):
    known = tmp_path / "ci/known.json"
    known.parent.mkdir()
    assert (
        vlmend("scan", mini, "--codemod", CODEMOD, "--write-baseline", known).code == 0
    )
    (known.parent / "ci.toml").write_text(
        f'codemods = ["{CODEMOD}"]\nbaseline = "known.json"\n'
    )
    assert vlmend("scan", mini, "--config", known.parent / "ci.toml").code == 0
    (mini / "known.json").write_bytes(known.read_bytes())
    (mini / "vlmend.toml").write_text(
        f'codemods = ["{CODEMOD}"]\nbaseline = "known.json"\n'
    )
    assert vlmend("scan", mini).code == 0


def test_a_baseline_outside_the_tree_is_not_followed(vlmend, configured, tmp_path):
    (tmp_path / "known.json").write_text("{}")
    ended = vlmend("scan", configured('baseline = "../known.json"\n'))
    assert (ended.code, ended.out) == (2, "")
    assert "lies outside the tree" in ended.err


def test_an_ignored_finding_is_suppressed_with_its_reason(vlmend, configured):
    mini = configured(IGNORE)
    ended = vlmend("scan", mini, "--all", "--format", "json")
    told = {f["class"]: f for f in json.loads(ended.out)["findings"]}
    assert told[BARE]["status"] == "suppressed"
    assert told[BARE]["message"] == "Suppressed by vlmend.toml: a fork of ours."
    assert found(vlmend("scan", mini, "--format", "json")) == {OTHER}
    assert "Bare" not in vlmend("preview", mini).out


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("levle = 1", "unknown key 'levle'; did you mean 'level'?", id="k"),
        pytest.param("x = 1", "unknown key 'x'; known: codemods, level,", id="far key"),
        pytest.param(
            "strict = 'yes'", "strict must be true or false, not a string", id="flag"
        ),
        pytest.param(
            "level = 'high'", "level must be 'fixable' or 'review', not 'high'", id="lv"
        ),
        pytest.param(
            "exclude = 'a'", "exclude must be a list of strings, not a string", id="s"
        ),
        pytest.param(
            "exclude = ['a', 1]", "exclude[1] must be a string, not a number", id="item"
        ),
        pytest.param("baseline = []", "baseline must be a string, not a list", id="b"),
        pytest.param(
            "baseline = ''", "baseline must be a string, not an empty string", id="e"
        ),
        pytest.param("ignore = {}", "ignore must be a list of tables", id="table"),
        pytest.param(
            "ignore = [{class = 'A', codemod = 'b'}]",
            "ignore[0]: reason is missing",
            id="no reason",
        ),
        pytest.param(
            "ignore = [{clas = 'A'}]",
            "ignore[0]: unknown key 'clas'; did you mean 'class'?",
            id="key of a table",
        ),
        pytest.param("= 1", "is no valid TOML", id="no TOML"),
        pytest.param("template = 'x'", "unknown key 'template'", id="no templates"),
        pytest.param(
            "codemods = ['forward-kwarg']",
            "there is no codemod 'forward-kwarg'",
            id="c",
        ),
    ],
)
def test_what_is_wrong_is_one_line(vlmend, mini, text, line):
    (mini / "vlmend.toml").write_text(f"{text}\n")
    for verb in ("scan", "preview", "models"):
        ended = vlmend(verb, mini)
        assert (ended.code, ended.out) == (2, "")
        first = ended.err.splitlines()[0]
        assert first.startswith("vlmend: vlmend.toml: ")
        assert line in first
    ended = vlmend("config", "check", mini)
    assert (ended.code, ended.out) == (2, "")
    assert line in ended.err


def test_the_check_names_every_problem(vlmend, mini):
    (mini / "vlmend.toml").write_text("strct = 1\nlevel = 2\n")
    ended = vlmend("config", "check", mini)
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 2
    scanned = vlmend("scan", mini)
    assert "and 1 more: vlmend config check" in scanned.err


def test_the_check_tells_what_holds(vlmend, configured, mini):
    assert vlmend("config", "check", mini).out.startswith("no configuration: ")
    ended = vlmend("config", "check", configured(f"strict = true\n{IGNORE}"))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "vlmend.toml: sound",
        f'  codemods = ["{CODEMOD}"]',
        "  strict = true",
        f"  ignore = [{CODEMOD} on Bare* (a fork of ours)]",
    ]


def test_the_configuration_of_the_page_is_sound(vlmend, mini):
    page = (Path(__file__).resolve().parents[2] / "docs/guard.md").read_text("utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (mini / "vlmend.toml").write_text(example)
    ended = vlmend("config", "check", mini)
    assert (ended.code, ended.err) == (0, "")
    assert len(ended.out.splitlines()) == 7


def test_a_file_that_is_not_there(vlmend, mini, tmp_path):
    for words in (("scan", mini), ("config", "check")):
        ended = vlmend(*words, "--config", tmp_path / "none.toml")
        assert (ended.code, ended.out) == (2, "")
        assert "none.toml: cannot be read" in ended.err


# --- suppressions without effect ------------------------------------------------------


def comment(mini, file: str, text: str) -> None:
    """Put a comment on the class line of a file."""
    place = mini / f"{MODELS}/{file}.py"
    lines = place.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("class "))
    lines[at] += f"  {text}"
    place.write_text("\n".join(lines) + "\n")


def unused(vlmend, mini, *words):
    ended = vlmend("scan", mini, *words, "--format", "json")
    return [
        (one["file"].rpartition("/")[2], one["reason"])
        for one in json.loads(ended.out)["unused_suppressions"]
    ]


def test_a_suppression_that_works_is_not_reported(vlmend, configured, mini):
    configured("")
    comment(mini, "bare", f"# vlmend: ignore[{CODEMOD}] for a reason")
    assert unused(vlmend, mini) == []
    assert found(vlmend("scan", mini, "--format", "json")) == {OTHER}


def test_a_suppression_on_a_sound_class_is_reported(vlmend, configured, mini):
    configured("")
    comment(mini, "wired", f"# vlmend: ignore[{CODEMOD}] was broken once")
    reason = f"{CODEMOD} finds WiredForConditionalGeneration satisfied"
    assert unused(vlmend, mini) == [("wired.py", reason)]
    told = vlmend("scan", mini).out
    assert "Unused suppressions\n" in told
    assert f"    {reason}." in told


def test_an_unknown_codemod_is_named_with_the_nearest(vlmend, configured, mini):
    configured("")
    comment(mini, "bare", "# vlmend: ignore[delegate-tensors]")
    ((file, reason),) = unused(vlmend, mini)
    assert file == "bare.py"
    assert reason.startswith("there is no codemod delegate-tensors; did you mean ")
    assert CODEMOD in reason


def test_a_codemod_that_did_not_run_says_nothing(vlmend, configured, mini):
    configured("")
    comment(mini, "bare", "# vlmend: ignore[forward-kwargs] later")
    assert unused(vlmend, mini) == []


def test_a_comment_on_another_line_is_reported(vlmend, configured, mini):
    configured("")
    place = mini / f"{MODELS}/bare.py"
    place.write_text(f"{place.read_text()}\n# vlmend: ignore[{CODEMOD}] here\n")
    reason = "it stands on no class line, and only there it counts"
    assert unused(vlmend, mini) == [("bare.py", reason)]


def test_an_entry_of_the_configuration_can_be_unused_too(vlmend, configured):
    mini = configured(IGNORE.replace("Bare*", "Wired*"))
    reason = f"{CODEMOD} has no finding on Wired*"
    assert unused(vlmend, mini) == [("vlmend.toml", reason)]


def test_only_a_strict_scan_fails_for_it(vlmend, configured, mini):
    configured('exclude = ["*"]\n')
    comment(mini, "wired", f"# vlmend: ignore[{CODEMOD}]")
    assert vlmend("scan", mini).code == 0
    assert vlmend("scan", mini, "--strict").code == 1
