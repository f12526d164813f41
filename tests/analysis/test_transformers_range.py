"""Which Transformers releases a tree allows, and which facts stand in for them."""

from __future__ import annotations

import pytest

from vlmend.codemods.analysis.transformers_range import (
    TransformersRange,
    choose,
    pin_and_floor,
)
from vlmend.codemods.analysis.tree import MemoryTree
from vlmend.codemods.codemod import Source

SHIPPED = ("4.56.0", "4.57.5", "5.5.3", "5.10.4", "5.20.2")


def tree(**files: str) -> MemoryTree:
    names = {"common": "requirements/common.txt", "test": "requirements/test.txt"}
    names |= {
        "cuda": "requirements/test/cuda.txt",
        "rocm": "requirements/test/rocm.txt",
    }
    names |= {"test_in": "requirements/test.in"}
    return MemoryTree({names[k]: v.encode() for k, v in files.items()})


COMMON = [
    pytest.param("transformers >= 4.51.1\n", "4.51.1", id="a floor"),
    pytest.param("transformers >= 4.56.0, < 5\n", "4.56.0", id="with a ceiling"),
    pytest.param("transformers[torch]>=5.5.3  # new\n", "5.5.3", id="with an extra"),
    pytest.param('transformers == 5.5.3; python_version > "3"\n', "5.5.3", id="exact"),
    pytest.param("transformers\n", None, id="no version"),
    pytest.param("transformers-stream-generator==0.0.5\n", None, id="another package"),
    pytest.param("# transformers >= 4.51.1\n", None, id="a comment"),
    pytest.param("", None, id="an empty file"),
]


@pytest.mark.parametrize(("text", "floor"), COMMON)
def test_floor(text: str, floor: str | None) -> None:
    assert pin_and_floor(tree(common=text)).floor == floor


def test_evidence_names_file_and_line() -> None:
    found = pin_and_floor(
        tree(
            common="regex\ntransformers >= 4.56.0, < 5\n",
            test="x==1\ny==2\ntransformers==4.57.5\n    # via\n",
        ),
        Source.BASE,
    )
    assert [(e.source, e.file, e.line) for e in found.evidence] == [
        (Source.BASE, "requirements/common.txt", 2),
        (Source.BASE, "requirements/test.txt", 3),
    ]
    assert "4.57.5" in found.evidence[1].statement


PINS = [
    pytest.param({"test": "transformers==4.57.5\n"}, "4.57.5", id="one test file"),
    pytest.param(
        {"rocm": "transformers==1.0\n", "cuda": "transformers==5.5.3\n"},
        "5.5.3",
        id="CUDA's among the platforms",
    ),
    pytest.param({"rocm": "transformers==5.5.3\n"}, "5.5.3", id="the only platform"),
    pytest.param(
        {"test": "other==1\n", "test_in": "transformers==4.57.5\n"},
        "4.57.5",
        id="a file without it is passed over",
    ),
    pytest.param({"test": "transformers>=4\n"}, None, id="a floor is no pin"),
    pytest.param({}, None, id="no file"),
]


@pytest.mark.parametrize(("files", "pin"), PINS)
def test_pin(files: dict[str, str], pin: str | None) -> None:
    assert pin_and_floor(tree(**files)).pin == pin


ALLOWED = [
    pytest.param(">= 4.56.0, < 5", "4.57.5", True, id="inside"),
    pytest.param(">= 4.56.0, < 5", "5.0.0", False, id="at the ceiling"),
    pytest.param(">= 4.56.0, < 5", "4.55.9", False, id="below the floor"),
    pytest.param("!= 5.0.*", "5.0.3", False, id="an excluded series"),
    pytest.param("!= 5.0.*", "5.1.0", True, id="beside an excluded series"),
    pytest.param("!= 5.5.0", "5.5.0", False, id="an excluded release"),
    pytest.param("!= 5.5.0", "5.5.1", True, id="beside an excluded release"),
    pytest.param("== 5.5.*", "5.5.1", True, id="a series"),
    pytest.param("== 5.5", "5.5.0", True, id="zeros do not count"),
    pytest.param("~= 5.5", "5.9.1", True, id="compatible"),
    pytest.param("~= 5.5", "6.0", False, id="not compatible"),
    pytest.param("> 5.5, <= 5.6", "5.6", True, id="at an inclusive ceiling"),
]


@pytest.mark.parametrize(("rules", "version", "expected"), ALLOWED)
def test_allows(rules: str, version: str, expected: bool) -> None:
    found = pin_and_floor(tree(common=f"transformers {rules}\n"))
    assert found.allows(version) is expected


CHOICES = [
    pytest.param(">= 5.5.3", "5.10.4", ("5.5.3", "5.10.4"), (True, True), id="exact"),
    pytest.param(
        ">= 5.5.4",
        "5.12.0",
        ("5.10.4", "5.10.4"),
        (False, False),
        id="nearest below, but never one that is not allowed",
    ),
    pytest.param(
        ">= 4.56.0, != 5.5.*", "5.6.0", ("4.56.0", "4.57.5"), (True, False), id="gap"
    ),
    pytest.param(
        ">= 5.5.3", None, ("5.5.3", "5.20.2"), (True, False), id="no pin: the newest"
    ),
    pytest.param(
        ">= 9", "9.1", ("5.20.2", "5.20.2"), (False, False), id="newer than all"
    ),
]


@pytest.mark.parametrize(("rules", "pin", "versions", "exact"), CHOICES)
def test_choose(
    rules: str,
    pin: str | None,
    versions: tuple[str, str],
    exact: tuple[bool, bool],
) -> None:
    files = {"common": f"transformers {rules}\n"}
    if pin is not None:
        files["test"] = f"transformers=={pin}\n"
    floor, tested = choose(pin_and_floor(tree(**files)), SHIPPED)
    assert (floor.version, tested.version) == versions
    assert (floor.exact, tested.exact) == exact
    for choice in (floor, tested):
        assert choice.version in choice.statement
        if choice.asked and not choice.exact:
            assert choice.asked in choice.statement


def test_tree_without_requirements_gets_both_ends() -> None:
    floor, tested = choose(pin_and_floor(tree()), SHIPPED)
    assert (floor.version, tested.version) == (SHIPPED[0], SHIPPED[-1])


def test_nothing_shipped_is_an_error() -> None:
    with pytest.raises(ValueError, match="no facts"):
        choose(TransformersRange(), ())
