"""What a pull request says of the tree around its change."""

from __future__ import annotations

import pytest

from vlmend.cli.drafts.around import surroundings
from vlmend.cli.drafts.change import Change
from vlmend.codemods import DirectoryTree, Session
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors
from vlmend.codemods.explicit_architectures import ExplicitArchitectures


@pytest.fixture
def precedents(release):
    def told(version, codemod, class_name):
        session = Session(DirectoryTree(release(version)), codemods=(codemod,))
        result = session.run()
        (finding,) = (
            f for f in result.findings if f.class_name == class_name and f.edits
        )
        change = Change(codemod.id, "scope", tuple(session.patches([finding])))
        return [one.told for one in surroundings(change, result).precedents]

    return told


def test_wrappers_that_give_the_same_name_come_first(precedents):
    told = precedents(
        "0.29.0", ExplicitArchitectures(), "Qwen3VLForConditionalGeneration"
    )
    assert all("the call gives Qwen3ForCausalLM" in one for one in told)
    assert "Qwen3ASRForConditionalGeneration" in told[0]


def test_a_name_that_nobody_gives_is_shown_by_wrappers_that_give_another(precedents):
    told = precedents(
        "0.29.0", ExplicitArchitectures(), "Cosmos3EdgeForConditionalGeneration"
    )
    assert len(told) == 4
    assert all("the call gives" in one for one in told)


def test_a_wrapper_is_shown_wrappers(precedents):
    told = precedents(
        "0.21.0", DelegateIntermediateTensors(), "AyaVisionForConditionalGeneration"
    )
    assert len(told) == 4
    assert all("ForConditionalGeneration.__init__" in one for one in told)
    assert not any(".py:" in one for one in told)
