"""``vlmend models``: the coverage table, and what changed between two trees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from vlmend.cli.report.coverage import changes, coverage
from vlmend.cli.report.json import schema
from vlmend.codemods.codemod import Finding, ModelInfo, ScanResult, Source, Status

CODEMOD = "delegate-intermediate-tensors"
ONLY = ("--codemod", CODEMOD)
PACKAGE = "vllm.model_executor.models"


def document(text):
    found = json.loads(text)
    Draft202012Validator(schema("models")).validate(found)
    return found


def cells(text):
    """Return ``{class: row of cells}`` of the text table."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("class "))
    end = lines.index("", start)
    return {line.split()[0]: line.split(maxsplit=3)[1:] for line in lines[start:end]}


def test_the_schema_is_a_valid_schema():
    Draft202012Validator.check_schema(schema("models"))


def test_the_table_has_every_class_and_the_base_to_mend(vlmend, mini):
    ended = vlmend("models", mini, *ONLY)
    assert ended.code == 0
    rows = cells(ended.out)
    assert rows["class"] == ["MM", "PP", "delegate"]
    assert rows["BareForConditionalGeneration"] == ["yes", "yes", "fixable"]
    assert rows["WiredForConditionalGeneration"] == ["yes", "yes", "satisfied"]
    assert rows["InnerForCausalLM"] == ["-", "yes", "satisfied"]
    assert rows["HeirForConditionalGeneration"] == [
        "yes",
        "yes",
        "fixable via BareForConditionalGeneration",
    ]
    assert ended.out.splitlines()[-1] == (
        f"delegate  {CODEMOD}: 2 fixable, 2 satisfied, 1 broken through a base"
    )


def test_json(vlmend, mini):
    found = document(vlmend("models", mini, *ONLY, "--format", "json").out)
    assert found["summary"] == {
        "models": 5,
        "by_contract": {CODEMOD: {"fixable": 2, "satisfied": 2, "through_base": 1}},
    }
    assert found["changes"] is None
    heir = next(m for m in found["models"] if m["class"].startswith("Heir"))
    assert heir["contracts"][CODEMOD]["through"] == (
        f"{PACKAGE}.bare:BareForConditionalGeneration"
    )
    assert heir["architectures"] == ["HeirForConditionalGeneration"]


def test_markdown_is_a_table_with_as_many_cells_in_each_row(vlmend, mini):
    ended = vlmend("models", mini, *ONLY, "--format", "markdown")
    table = [line for line in ended.out.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 5
    assert {line.count(" | ") for line in table} == {4}
    assert "| **WiredForConditionalGeneration** |" in ended.out


def test_a_filter_narrows_the_table(vlmend, mini):
    rows = cells(vlmend("models", mini, *ONLY, "--class", "*Conditional*").out)
    assert len(rows) == 1 + 4


@pytest.fixture
def mended(vlmend, mini: Path, tmp_path: Path) -> Path:
    """The miniature after a fix, with one class more, one less, and one moved."""
    other = tmp_path / "mended"
    shutil.copytree(mini, other)
    models = other / "vllm/model_executor/models"
    text = (models / "wired.py").read_text()
    (models / "new.py").write_text(text.replace("Wired", "New"))
    (models / "other.py").unlink()
    (models / "wired.py").rename(models / "wired_up.py")
    assert vlmend("fix", other, *ONLY).code == 0
    return other


def test_against_says_what_changed(vlmend, mini, mended):
    out = vlmend("models", mended, *ONLY, "--against", mini).out
    _, _, told = out.partition(f"From {mini} (vLLM 9.1.0) to ")
    lines = [line.strip() for line in told.splitlines()]
    assert lines[1:] == [
        "1 class new",
        f"{PACKAGE}.new:NewForConditionalGeneration",
        "1 class gone",
        f"{PACKAGE}.other:OtherForConditionalGeneration",
        "1 class moved",
        (
            f"{PACKAGE}.wired:WiredForConditionalGeneration"
            f" -> {PACKAGE}.wired_up:WiredForConditionalGeneration"
        ),
        "2 verdicts changed",
        f"{PACKAGE}.bare:BareForConditionalGeneration  {CODEMOD}: fixable -> satisfied",
        (
            f"{PACKAGE}.heir:HeirForConditionalGeneration  {CODEMOD}:"
            " fixable via BareForConditionalGeneration -> satisfied"
        ),
    ]


@pytest.mark.parametrize("style", ["json", "markdown"])
def test_against_in_other_formats(vlmend, mini, mended, style):
    out = vlmend("models", mended, *ONLY, "--against", mini, "--format", style).out
    if style == "json":
        found = document(out)["changes"]
        assert found["added"] == [f"{PACKAGE}.new:NewForConditionalGeneration"]
        assert [c["after"] for c in found["changed"]] == ["satisfied", "satisfied"]
    else:
        assert "- new: vllm.model\\_executor.models.new:NewForConditional" in out


def test_against_itself_nothing_changed(vlmend, mini):
    out = vlmend("models", mini, "--against", mini).out
    assert out.endswith("  the same classes, the same verdicts\n")


def test_a_spoilt_file_on_either_side_is_told(vlmend, mini, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(mini, other)
    (other / "vllm/model_executor/models/wired.py").write_text("class Broken(:\n")
    for words in ((mini, "--against", other), (other, "--against", mini)):
        ended = vlmend("models", *words)
        assert ended.code == 2
        assert ended.err.startswith("vlmend: vllm/model_executor/models/wired.py: ")


def test_an_unreadable_other_tree_is_an_error(vlmend, mini, tmp_path):
    ended = vlmend("models", mini, "--against", tmp_path / "nowhere")
    assert ended.code == 2
    assert ended.err.startswith("vlmend: ")


# --- the table itself, on values ------------------------------------------------------


def model(name: str, module: str = "m") -> ModelInfo:
    return ModelInfo(module, name, "m.py", 1, Source.TREE, (), True, True)


def finding(name: str, status: Status, heirs: tuple[str, ...] = ()) -> Finding:
    return Finding("c", "m", name, "m.py", 1, 1, status, "why", heirs=heirs)


def table(models: list[ModelInfo], *findings: Finding):
    return coverage(ScanResult(findings, tuple(models), ()), ["c"], models)


@pytest.mark.parametrize(
    ("findings", "label"),
    [
        pytest.param([], "-", id="not judged"),
        pytest.param(
            [finding("A", Status.SATISFIED), finding("A", Status.REVIEW)],
            "review",
            id="of two findings, the one to act on",
        ),
        pytest.param(
            [finding("B", Status.BLOCKED, ("m:A",)), finding("A", Status.SATISFIED)],
            "blocked via B",
            id="a broken base outweighs a sound verdict",
        ),
        pytest.param(
            [finding("B", Status.FIXABLE, ("m:A",)), finding("A", Status.BLOCKED)],
            "blocked",
            id="a defect of its own outweighs the base's",
        ),
        pytest.param(
            [finding("B", Status.SATISFIED, ("m:A",))],
            "-",
            id="a sound base breaks none",
        ),
        pytest.param(
            [finding("B", Status.FIXABLE, ("elsewhere:A",))],
            "-",
            id="an heir of the same name in another module is another class",
        ),
    ],
)
def test_cells(findings, label):
    (row,) = table([model("A")], *findings).rows
    assert row.cells[0].label == label


def test_two_classes_of_one_name_are_never_taken_for_a_move():
    before = table([model("A", "old")])
    after = table([model("A", "nvidia"), model("A", "amd")])
    found = changes(before, after)
    assert found.moved == ()
    assert [m.key for m in found.added] == ["amd:A", "nvidia:A"]
    assert [m.key for m in found.removed] == ["old:A"]
