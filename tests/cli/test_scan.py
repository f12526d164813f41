"""``vlmend scan``: what is shown, what decides the exit code, and the JSON document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from vlmend.cli.report.json import schema

BARE = "BareForConditionalGeneration"
OTHER = "OtherForConditionalGeneration"
WIRED = "WiredForConditionalGeneration"
CODEMOD = "delegate-intermediate-tensors"
ONLY = ("--codemod", CODEMOD)


def document(text):
    """Return a scan document that is known to follow its schema."""
    found = json.loads(text)
    Draft202012Validator(schema("scan")).validate(found)
    return found


def test_the_schema_is_a_valid_schema():
    Draft202012Validator.check_schema(schema("scan"))


def test_a_defect_is_told_with_its_place_its_proof_and_its_heirs(vlmend, mini):
    ended = vlmend("scan", mini, *ONLY)
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert lines[0].startswith(f"{mini} (vLLM 9.1.0): ")
    assert f"fixable  {BARE}" in lines
    assert any("models/bare.py:" in line and CODEMOD in line for line in lines)
    assert "    1. " in ended.out
    assert "    vllm.model_executor.models.heir:HeirForConditionalGeneration" in lines
    assert WIRED not in ended.out
    assert ended.err == ""


def test_the_last_lines_count_and_lead_on(vlmend, mini):
    lines = vlmend("scan", mini, *ONLY).out.splitlines()
    assert "2 fixable" in lines
    assert any(
        line.startswith("Not shown: ") and "satisfied" in line and "--all" in line
        for line in lines
    )
    assert any(line.startswith(f"Next: vlmend preview {mini}") for line in lines)


def test_a_sound_tree_exits_with_zero(vlmend, mini):
    ended = vlmend("scan", mini, *ONLY, "--class", WIRED)
    assert ended.code == 0
    assert "Nothing wrong was found." in ended.out
    assert "Next:" not in ended.out


def test_the_current_directory_is_the_default(vlmend, mini):
    assert "2 fixable" in vlmend("scan", *ONLY, cwd=mini).out


def test_exit_zero_changes_the_exit_code_and_nothing_else(vlmend, mini):
    asked = vlmend("scan", mini, *ONLY)
    forgiven = vlmend("scan", mini, *ONLY, "--exit-zero")
    assert (forgiven.code, forgiven.out) == (0, asked.out)


def test_all_shows_the_sound_class_with_the_line_that_keeps_the_contract(vlmend, mini):
    ended = vlmend("scan", mini, *ONLY, "--all", "--format", "json")
    found = {f["class"]: f for f in document(ended.out)["findings"]}
    sound = found[WIRED]
    assert sound["status"] == "satisfied"
    line = sound["line"]
    source = (mini / sound["file"]).read_text().splitlines()
    assert "make_empty_intermediate_tensors" in source[line - 1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param((), {BARE, OTHER}, id="no filter shows both"),
        pytest.param(("--class", "Bare*"), {BARE}, id="class glob"),
        pytest.param(
            ("--class", BARE, "--class", OTHER), {BARE, OTHER}, id="two classes"
        ),
        pytest.param(("--class", f"*.bare:{BARE}"), {BARE}, id="module and class"),
        pytest.param(("--exclude", "Bare*"), {OTHER}, id="excluded by class"),
        pytest.param(("--exclude", "*/other.py"), {BARE}, id="excluded by file"),
        pytest.param(("--class", "*For*", "--exclude", "*"), set(), id="exclude wins"),
    ],
)
def test_filters(vlmend, mini, options, expected):
    ended = vlmend("scan", mini, *ONLY, "--format", "json", *options)
    assert {f["class"] for f in document(ended.out)["findings"]} == expected
    assert ended.code == (1 if expected else 0)


def test_a_misspelled_class_is_an_error_that_names_the_nearest(vlmend, mini):
    ended = vlmend("scan", mini, "--class", "BearForConditionalGeneration")
    assert (ended.code, ended.out) == (2, "")
    first, hint = ended.err.splitlines()
    assert first.startswith("vlmend: no model class matches --class Bear")
    assert BARE in hint


def test_a_misspelled_codemod_is_an_error_that_names_the_nearest(vlmend, mini):
    ended = vlmend("scan", mini, "--codemod", "delegate-tensors")
    assert (ended.code, ended.out) == (2, "")
    assert CODEMOD in ended.err


def test_json_says_what_the_issue_of_a_finding_is(vlmend, mini):
    ended = vlmend("scan", mini, *ONLY, "--format", "json")
    found = document(ended.out)
    assert found["target"] == {
        "spec": str(mini),
        "kind": "directory",
        "version": "9.1.0",
    }
    assert found["summary"] == {"by_status": {"fixable": 2}, "by_codemod": {CODEMOD: 2}}
    bare = next(f for f in found["findings"] if f["class"] == BARE)
    assert bare["module"] == "vllm.model_executor.models.bare"
    assert bare["file"] == "vllm/model_executor/models/bare.py"
    assert bare["heirs"] == [
        "vllm.model_executor.models.heir:HeirForConditionalGeneration"
    ]
    assert "+        self.make_empty_intermediate_tensors = (" in bare["diff"]
    assert "other.py" not in bare["diff"]


def test_every_citation_can_be_looked_up(vlmend, mini):
    found = document(vlmend("scan", mini, "--all", "--format", "json").out)
    cited = [link for f in found["findings"] for link in f["evidence"]]
    cited += [link for note in found["contract"].values() for link in note["evidence"]]
    assert cited
    for link in cited:
        if link["source"] == "tree":
            lines = (mini / link["file"]).read_text().splitlines()
            assert 1 <= link["line"] <= len(lines), link


def test_a_file_that_does_not_parse_costs_only_itself(vlmend, mini):
    (mini / "vllm/model_executor/models/other.py").write_text("class Broken(:\n")
    ended = vlmend("scan", mini, *ONLY, "--format", "json")
    found = document(ended.out)
    assert ended.code == 2
    assert [f["class"] for f in found["findings"]] == [BARE]
    assert [e["file"] for e in found["errors"]] == [
        "vllm/model_executor/models/other.py"
    ]
    assert ended.err.startswith("vlmend: vllm/model_executor/models/other.py: ")
    assert len(ended.err.splitlines()) == 1


def test_exit_zero_does_not_hide_that_a_file_was_not_judged(vlmend, mini):
    (mini / "vllm/model_executor/models/other.py").write_text("class Broken(:\n")
    assert vlmend("scan", mini, "--exit-zero").code == 2


def test_a_git_revision_is_judged_without_a_look_at_the_work_tree(
    vlmend, make_repo: Callable[..., Path], mini_files
):
    repo = make_repo(mini_files)
    wired = (repo / "vllm/model_executor/models/wired.py").read_text()
    for name in ("bare", "other"):
        place = repo / f"vllm/model_executor/models/{name}.py"
        place.write_text(wired.replace("Wired", name.title()))
    assert vlmend("scan", repo, *ONLY).code == 0
    ended = vlmend("scan", f"{repo}@HEAD", *ONLY, "--format", "json")
    assert ended.code == 1
    assert document(ended.out)["target"]["kind"] == "git"


def test_a_plugin_needs_to_know_its_vllm(vlmend, tmp_path):
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "model.py").write_text("from vllm.sequence import IntermediateTensors\n")
    ended = vlmend("scan", plugin)
    assert ended.code == 2
    assert "--vllm" in ended.err


def test_a_plugin_is_judged_against_the_vllm_it_extends(
    vlmend, mini, mini_files, tmp_path
):
    plugin = tmp_path / "plugin/my_plugin"
    plugin.mkdir(parents=True)
    text = mini_files["vllm/model_executor/models/bare.py"].replace("Bare", "Mine")
    (plugin / "model.py").write_text(text.replace(" .", " vllm.model_executor.models."))
    (plugin / "__init__.py").write_text(
        "def register():\n"
        "    from vllm import ModelRegistry\n\n"
        "    ModelRegistry.register_model(\n"
        '        "MineForConditionalGeneration",\n'
        '        "my_plugin.model:MineForConditionalGeneration",\n'
        "    )\n"
    )
    ended = vlmend("scan", plugin.parent, "--vllm", mini, *ONLY, "--format", "json")
    assert ended.code == 1
    (found,) = document(ended.out)["findings"]
    assert (found["module"], found["status"]) == ("my_plugin.model", "fixable")
    assert {link["source"] for link in found["evidence"]} == {"tree", "base"}
    for link in found["evidence"]:
        root = {"tree": plugin.parent, "base": mini}[link["source"]]
        assert (root / link["file"]).is_file(), link
    told = vlmend("scan", plugin.parent, "--vllm", mini, *ONLY).out
    assert f" against {mini} (vLLM 9.1.0)" in told.splitlines()[0]
    assert f"vlmend preview {plugin.parent} --vllm {mini}" in told


def test_a_vllm_tree_needs_no_other_one(vlmend, mini):
    ended = vlmend("scan", mini, "--vllm", mini)
    assert ended.code == 2
    assert "a vLLM tree of its own" in ended.err
