"""What two runs amount to: a table of facts, and the verdict on each."""

from __future__ import annotations

import pytest

from vlmend.cli.proof.verdict import (
    ARCHITECTURES,
    DELEGATION,
    FORWARD,
    Outcome,
    Scenario,
    judge,
)

TENSORS = {"type": "IntermediateTensors", "shapes": {"hidden_states": [8, 4]}}
GIVES = {"stage": "done", "tensors": TENSORS}
NOTHING = {"stage": "done", "tensors": {"type": "NoneType"}}
BUILDS = {"stage": "done"}


def ended(stage, kind, message, frames=()):
    return {
        "stage": stage,
        "error": {
            "type": kind,
            "message": message,
            "frames": [{"file": "x.py", "line": 1, "function": f} for f in frames],
        },
    }


ABSENT = ended(
    "call",
    "AttributeError",
    "'M' object has no attribute 'make_empty_intermediate_tensors'",
)
UNRELATED = ended("build", "ValueError", "no such thing")


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        pytest.param(NOTHING, GIVES, Outcome.PROVEN, id="nothing, then tensors"),
        pytest.param(ABSENT, GIVES, Outcome.PROVEN, id="no attribute, then tensors"),
        pytest.param(NOTHING, NOTHING, Outcome.REFUTED, id="still nothing"),
        pytest.param(NOTHING, ABSENT, Outcome.REFUTED, id="now no attribute"),
        pytest.param(NOTHING, UNRELATED, Outcome.REFUTED, id="the change breaks it"),
        pytest.param(GIVES, GIVES, Outcome.INCONCLUSIVE, id="nothing to prove"),
        pytest.param(UNRELATED, GIVES, Outcome.INCONCLUSIVE, id="an unrelated crash"),
        pytest.param(UNRELATED, UNRELATED, Outcome.INCONCLUSIVE, id="never got there"),
        pytest.param(
            NOTHING,
            ended("build", "Timeout", "not done after 60 seconds"),
            Outcome.INCONCLUSIVE,
            id="a limit of the proof is not the change's fault",
        ),
        pytest.param(
            NOTHING,
            ended("build", "MemoryError", ""),
            Outcome.INCONCLUSIVE,
            id="nor is memory",
        ),
    ],
)
def test_delegation(before, after, outcome):
    assert judge(DELEGATION, "M", [Scenario(2, 1, before, after)]).outcome is outcome


def test_a_change_that_breaks_one_device_is_refuted():
    runs = [
        Scenario(2, 1, NOTHING, GIVES),
        Scenario(1, 0, BUILDS, ended("build", "AttributeError", "no attribute 'x'")),
    ]
    verdict = judge(DELEGATION, "M", runs)
    assert verdict.outcome is Outcome.REFUTED
    assert "PP size 1, rank 0" in verdict.reason


def viewed(facts, names, **more):
    frames = [{"file": "m.py", "line": 9, "function": "M.__init__"}]
    return {**facts, "views": [{"frames": frames, "after": names, **more}]}


NAMELESS = viewed(
    ended(
        "build",
        "ValidationError",
        "1 validation error Value error, No model architectures are specified [type=x",
    ),
    None,
)
NAMED = viewed(BUILDS, ["InnerForCausalLM"], registered=["InnerForCausalLM"])


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        pytest.param(NAMELESS, NAMED, Outcome.PROVEN, id="no name, then a name"),
        pytest.param(NAMELESS, NAMELESS, Outcome.REFUTED, id="still no name"),
        pytest.param(
            viewed(
                ended(
                    "build",
                    "IndexError",
                    "list index out of range",
                    ["use_mla", "_get_transformers_backend_cls"],
                ),
                [],
            ),
            NAMED,
            Outcome.PROVEN,
            id="the chain of a CPU",
        ),
        pytest.param(
            viewed(ended("build", "IndexError", "list index out of range", ["f"]), []),
            NAMED,
            Outcome.INCONCLUSIVE,
            id="another IndexError",
        ),
        pytest.param(
            NAMELESS,
            viewed(BUILDS, ["Typo"], registered=[]),
            Outcome.REFUTED,
            id="a name that nothing registers",
        ),
        pytest.param(
            NAMELESS,
            viewed(BUILDS, ["X"], registered=["X"], kin={"stranger": "X with XModel"}),
            Outcome.REFUTED,
            id="a name of something else",
        ),
        pytest.param(
            NAMELESS,
            viewed(UNRELATED, ["X"], registered=["X"]),
            Outcome.INCONCLUSIVE,
            id="named, but the build dies of something else",
        ),
        pytest.param(
            viewed(BUILDS, None),
            NAMED,
            Outcome.INCONCLUSIVE,
            id="nothing fails from it",
        ),
    ],
)
def test_architectures(before, after, outcome):
    assert judge(ARCHITECTURES, "M", [Scenario(2, 1, before, after)]).outcome is outcome


def calls(*notes):
    return {"stage": "done", "calls": list(notes)}


def passing(*keys, lost=()):
    got = [key for key in keys if key not in lost]
    return {"keywords": list(keys), "arrived": [{"at": "self.model", "values": got}]}


UNBOUND = {
    "keywords": ["a"],
    "error": {
        "type": "TypeError",
        "message": "missing 1 required positional argument: 'b'",
    },
    "arrived": [],
}


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        pytest.param(
            calls(UNBOUND), calls(passing("a")), Outcome.PROVEN, id="binds now"
        ),
        pytest.param(
            calls(UNBOUND), calls(UNBOUND), Outcome.REFUTED, id="still unbound"
        ),
        pytest.param(
            calls(passing("a", "b", lost="b")),
            calls(passing("a", "b")),
            Outcome.PROVEN,
            id="handed on now",
        ),
        pytest.param(
            calls(UNBOUND, passing("c")),
            calls(passing("a"), passing("c", lost="c")),
            Outcome.REFUTED,
            id="another call goes wrong",
        ),
        pytest.param(
            calls(passing("a")), calls(passing("a")), Outcome.INCONCLUSIVE, id="sound"
        ),
        pytest.param(UNRELATED, calls(), Outcome.INCONCLUSIVE, id="never got there"),
    ],
)
def test_forward(before, after, outcome):
    assert judge(FORWARD, "M", [Scenario(1, 0, before, after)]).outcome is outcome
