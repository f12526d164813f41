"""forward-kwargs on small trees: what is judged, written and left alone."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

import pytest

from vlmend.codemods import FilePatch, Finding, MemoryTree, Session
from vlmend.codemods.analysis.forwards import forward_of
from vlmend.codemods.analysis.runner_calls import Role, runner_calls
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.forward_kwargs import ForwardKwargs

MODELS = "vllm/model_executor/models"

INTERFACES = """\
from typing import ClassVar, Literal, Protocol


class SupportsMultiModal(Protocol):
    supports_multimodal: ClassVar[Literal[True]] = True
    supports_multimodal_raw_input_only: ClassVar[bool] = False


class SupportsPP(Protocol):
    make_empty_intermediate_tensors: object

    def forward(self, *, intermediate_tensors): ...
"""

BACKBONES = """\
import torch
import torch.nn as nn

from .interfaces import SupportsPP


class Backbone(nn.Module):
    def forward(self, input_ids, positions, intermediate_tensors=None,
                inputs_embeds=None):
        if intermediate_tensors is not None:
            input_ids = intermediate_tensors["hidden_states"]
        return self.layers(input_ids, inputs_embeds)


class Ignoring(nn.Module):
    def forward(self, input_ids, positions, intermediate_tensors=None):
        assert intermediate_tensors is None
        return self.layers(input_ids)


class Strict(nn.Module):
    def forward(self, input_ids, positions, intermediate_tensors):
        return self.layers(intermediate_tensors["hidden_states"])


class Bare(nn.Module):
    def forward(self, input_ids, positions):
        return self.layers(input_ids)


class Open(nn.Module):
    def forward(self, input_ids, positions, intermediate_tensors=None, **kwargs):
        return self.layers(intermediate_tensors["hidden_states"])


class Chained(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.inner = Open(vllm_config=vllm_config)

    def forward(self, input_ids, positions, intermediate_tensors=None, **kwargs):
        return self.inner(input_ids, positions, intermediate_tensors, **kwargs)


class Trap(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.inner = Backbone(vllm_config=vllm_config)

    def forward(self, input_ids, positions, intermediate_tensors=None, **kwargs):
        return self.inner(input_ids, positions, intermediate_tensors, **kwargs)
"""

HEADER = """\
import torch
import torch.nn as nn

from vllm.config import VllmConfig
from vllm.sequence import IntermediateTensors

from .backbones import Backbone, Bare, Chained, Ignoring, Open, Strict, Trap
from .interfaces import SupportsMultiModal, SupportsPP


"""

TARGET = """\
class GPUModelRunner:
    def load(self):
        self.model = get_model(vllm_config=self.vllm_config)

    def _model_forward(self, input_ids, positions, intermediate_tensors=None,
                       inputs_embeds=None, **model_kwargs):
        return self.model(
            input_ids=input_ids,
            positions=positions,
            intermediate_tensors=intermediate_tensors,
            inputs_embeds=inputs_embeds,
            **model_kwargs,
        )

    def _raw(self, output):
        if not self.is_multimodal_raw_input_only_model:
            return {}
        return output.tensors()

    def _prepare(self, output):
        model_kwargs = dict()
        if self.is_encoder_decoder:
            model_kwargs["encoder_outputs"] = output.encoded
        return 1, {**model_kwargs, **self._raw(output)}

    def execute_model(self, output):
        number, model_kwargs = self._prepare(output)
        return self._model_forward(
            input_ids=1,
            positions=2,
            intermediate_tensors=3,
            inputs_embeds=4,
            **model_kwargs,
        )

    def _pool(self, model):
        return model.pooler(1)

    def start_drafter(self):
        if self.speculative_config.use_eagle():
            self.drafter = EagleProposer(self)
        elif self.speculative_config.uses_draft_model():
            self.drafter = DraftModelProposer(self)
"""

DRAFT = """\
class SpecDecodeBaseProposer:
    def __init__(self, runner, pass_hidden_states_to_model):
        self.pass_hidden_states_to_model = pass_hidden_states_to_model

    def propose(self):
        model_kwargs = {"input_ids": 1, "positions": 2, "inputs_embeds": None}
        if self.pass_hidden_states_to_model:
            model_kwargs["hidden_states"] = 3
        return self.model(**model_kwargs)


class EagleProposer(SpecDecodeBaseProposer):
    def __init__(self, runner):
        super().__init__(runner, pass_hidden_states_to_model=True)


class DraftModelProposer(SpecDecodeBaseProposer):
    def __init__(self, runner):
        super().__init__(runner, pass_hidden_states_to_model=False)
"""

IMPORTS = """\
from vllm.v1.spec_decode.proposers import DraftModelProposer, EagleProposer


"""


def tree(
    models: str | Mapping[str, str], *, drafts: bool = True, **tables: str
) -> dict[str, bytes]:
    """Return a vLLM in miniature; ``tables`` are ``_NAME_MODELS`` by class name."""
    files = {"wrap.py": HEADER + dedent(models)} if isinstance(models, str) else models
    known = {"text": "_TEXT_GENERATION_MODELS", "mm": "_MULTIMODAL_MODELS"}
    known |= {"draft": "_SPECULATIVE_DECODING_MODELS", "pool": "_EMBEDDING_MODELS"}
    registry = ""
    for table, names in (tables or {"text": "Tiny"}).items():
        entries = "".join(
            f'    "{name}": ("{module}", "{name}"),\n'
            for module, name in (
                entry.split(":") if ":" in entry else ("wrap", entry)
                for entry in names.split()
            )
        )
        registry += f"{known[table]} = {{\n{entries}}}\n"
    place = "vllm/v1/worker/gpu_model_runner.py"
    data = {
        f"{MODELS}/__init__.py": "",
        f"{MODELS}/interfaces.py": INTERFACES,
        f"{MODELS}/backbones.py": BACKBONES,
        f"{MODELS}/registry.py": registry,
        place: IMPORTS + TARGET,
    }
    if drafts:
        data["vllm/v1/spec_decode/proposers.py"] = DRAFT
    data |= {f"{MODELS}/{name}": text for name, text in files.items()}
    return {name: text.encode() for name, text in data.items()}


def judged(
    models: str | Mapping[str, str], *, drafts: bool = True, **tables: str
) -> tuple[Session, dict[str, Finding]]:
    session = Session(
        MemoryTree(tree(models, drafts=drafts, **tables)), codemods=[ForwardKwargs()]
    )
    result = session.run()
    assert not result.errors
    return session, {f.class_name: f for f in result.findings}


def changed(session: Session, findings: Mapping[str, Finding]) -> dict[str, list[str]]:
    """Return, by file, the changed lines of all patches; each passes its own proof."""
    lines: dict[str, list[str]] = {}
    for patch in session.patches(findings.values()):
        assert isinstance(patch, FilePatch), patch
        lines[patch.file.rpartition("/")[2]] = [
            line for line in patch.diff(0).splitlines()[2:] if not line.startswith("@@")
        ]
    return lines


BUILD = """\
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = {inner}(vllm_config=vllm_config, prefix=prefix)
"""


def model(
    forward: str, *, inner: str = "Backbone", name: str = "Tiny", bases: str = ""
) -> str:
    """Return a class with one inner model and the given forward."""
    listed = f"nn.Module, {bases}" if bases else "nn.Module"
    body = dedent(forward).strip("\n").replace("\n", "\n    ").replace("    \n", "\n")
    return f"class {name}({listed}):\n{BUILD.format(inner=inner)}\n    {body}\n"


TAKES = """
def forward(
    self,
    input_ids: torch.Tensor,
    positions: torch.Tensor,
    intermediate_tensors: IntermediateTensors | None = None,
    inputs_embeds: torch.Tensor | None = None,
):
    return self.model({passed})
"""

CHANGED = [
    pytest.param(
        model(TAKES.format(passed="input_ids, positions"), bases="SupportsPP"),
        {},
        "drops intermediate_tensors",
        [
            "-        return self.model(input_ids, positions)",
            "+        return self.model(",
            (
                "+            input_ids, positions, "
                "intermediate_tensors=intermediate_tensors"
            ),
            "+        )",
        ],
        id="tensors that the inner call makes use of are handed on",
    ),
    pytest.param(
        model(
            TAKES.format(
                passed="\n        input_ids=input_ids,\n        positions=positions,"
                "\n        inputs_embeds=inputs_embeds,\n    "
            ),
            bases="SupportsPP",
        ),
        {},
        "drops intermediate_tensors",
        ["+            intermediate_tensors=intermediate_tensors,"],
        id="a list with a line per argument gets a line, before inputs_embeds",
    ),
    pytest.param(
        model(TAKES.format(passed="input_ids, positions"), inner="Strict"),
        {},
        "drops intermediate_tensors",
        [
            "-        return self.model(input_ids, positions)",
            "+        return self.model(",
            (
                "+            input_ids, positions, "
                "intermediate_tensors=intermediate_tensors"
            ),
            "+        )",
        ],
        id="an inner call that fails without them",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, inputs_embeds=None, **kwargs):
                return self.model(input_ids, positions, inputs_embeds=inputs_embeds)
            """,
            bases="SupportsPP",
        ),
        {},
        "does not take intermediate_tensors",
        [
            (
                "-    def forward(self, input_ids, positions, inputs_embeds=None, "
                "**kwargs):"
            ),
            (
                "-        return self.model(input_ids, positions, "
                "inputs_embeds=inputs_embeds)"
            ),
            "+    def forward(",
            "+        self,",
            "+        input_ids,",
            "+        positions,",
            "+        intermediate_tensors: IntermediateTensors | None = None,",
            "+        inputs_embeds=None,",
            "+        **kwargs,",
            "+    ):",
            "+        return self.model(",
            "+            input_ids,",
            "+            positions,",
            "+            intermediate_tensors=intermediate_tensors,",
            "+            inputs_embeds=inputs_embeds,",
            "+        )",
        ],
        id="a parameter that runners pass is added in its usual place",
    ),
    pytest.param(
        model(
            """
            def forward(
                self,
                input_ids: torch.Tensor,
                positions: torch.Tensor,
                intermediate_tensors: IntermediateTensors | None,
                inputs_embeds: torch.Tensor | None = None,
            ):
                return self.model(input_ids, positions, intermediate_tensors)
            """
        ),
        {},
        "requires intermediate_tensors",
        [
            "-        intermediate_tensors: IntermediateTensors | None,",
            "+        intermediate_tensors: IntermediateTensors | None = None,",
        ],
        id="a draft runner leaves out what a causal model requires",
    ),
    pytest.param(
        model(
            """
            def forward(
                self,
                input_ids: torch.Tensor,
                positions: torch.Tensor,
                intermediate_tensors: IntermediateTensors,
                inputs_embeds: torch.Tensor,
            ):
                return self.model(input_ids, positions, intermediate_tensors)
            """
        ),
        {},
        "requires intermediate_tensors",
        [
            "-        intermediate_tensors: IntermediateTensors,",
            "-        inputs_embeds: torch.Tensor,",
            "+        intermediate_tensors: IntermediateTensors | None = None,",
            "+        inputs_embeds: torch.Tensor | None = None,",
        ],
        id="a default brings None into the annotation, and one for inputs_embeds",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, *, intermediate_tensors, **kw):
                return self.model(input_ids, positions, intermediate_tensors)
            """
        ),
        {},
        "requires intermediate_tensors",
        [
            (
                "-    def forward(self, input_ids, positions, *, intermediate_tensors, "
                "**kw):"
            ),
            (
                "+    def forward(self, input_ids, positions, *, "
                "intermediate_tensors=None, **kw):"
            ),
        ],
        id="a keyword-only parameter without an annotation",
    ),
    pytest.param(
        model(
            """
            supports_multimodal_raw_input_only = True

            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None):
                return self.model(input_ids, positions, intermediate_tensors)
            """,
            bases="SupportsMultiModal",
        ),
        {"mm": "Tiny"},
        "no **kwargs",
        [
            "-                inputs_embeds=None):",
            "+                inputs_embeds=None,",
            "+                **kwargs: object):",
        ],
        id="a class that is passed raw inputs collects them, in aligned layout",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None):
                return self.model(input_ids, positions, intermediate_tensors, **kwargs)
            """,
            inner="Open",
        ),
        {},
        "no **kwargs",
        [
            "-                inputs_embeds=None):",
            "+                inputs_embeds=None,",
            "+                **kwargs: object):",
        ],
        id="kwargs that are unpacked and not there",
    ),
]


@pytest.mark.parametrize(("text", "tables", "shape", "lines"), CHANGED)
def test_changed(
    text: str, tables: dict[str, str], shape: str, lines: list[str]
) -> None:
    session, findings = judged(text, **tables)
    assert (findings["Tiny"].status, findings["Tiny"].shape) == ("fixable", shape)
    assert changed(session, findings) == {"wrap.py": lines}


REVIEWED = [
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors,
                        inputs_embeds=None):
                return self.model(input_ids, positions, intermediate_tensors)
            """
        ),
        {"pool": "Tiny"},
        "requires intermediate_tensors",
        ["intermediate_tensors=None,"],
        id="tensors are required and every runner that reaches it passes them",
    ),
    pytest.param(
        model(
            TAKES.format(passed="input_ids, positions, intermediate_tensors"),
            bases="SupportsMultiModal",
        ),
        {"mm": "Tiny"},
        "no **kwargs",
        ["**kwargs: object,"],
        id="a multimodal forward without kwargs that is passed no others",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None, **kwargs):
                return self.model(input_ids, positions, intermediate_tensors)
            """,
            inner="Chained",
        ),
        {},
        "swallows **kwargs",
        ["return self.model(input_ids, positions, intermediate_tensors, **kwargs)"],
        id="kwargs that nothing behind the inner call refuses",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None):
                if inputs_embeds is None:
                    return self.model(input_ids, positions)
                return self.model(input_ids, positions, intermediate_tensors)
            """,
        ),
        {},
        "drops intermediate_tensors",
        ["intermediate_tensors=intermediate_tensors"],
        id="tensors that only one branch hands on",
    ),
]


@pytest.mark.parametrize(("text", "tables", "shape", "added"), REVIEWED)
def test_reviewed(
    text: str, tables: dict[str, str], shape: str, added: list[str]
) -> None:
    session, findings = judged(text, **tables)
    assert (findings["Tiny"].status, findings["Tiny"].shape) == ("review", shape)
    (lines,) = changed(session, findings).values()
    new = "\n".join(line[1:] for line in lines if line.startswith("+"))
    for text_ in added:
        assert text_ in new


UNCHANGED = [
    pytest.param(
        model(TAKES.format(passed="input_ids, positions, intermediate_tensors")),
        {},
        "satisfied",
        "hands intermediate_tensors on",
        id="tensors handed on by position",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, **kwargs):
                return self.model(input_ids, positions, **kwargs)
            """,
            inner="Open",
        ),
        {},
        "satisfied",
        "",
        id="tensors that travel in kwargs",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None):
                given = {"intermediate_tensors": intermediate_tensors}
                return self.model(input_ids, positions, **given)
            """,
            bases="SupportsPP",
        ),
        {},
        "satisfied",
        "",
        id="tensors in a dict that is passed on",
    ),
    pytest.param(
        model(TAKES.format(passed="input_ids, positions"), inner="Ignoring"),
        {},
        "satisfied",
        "",
        id="an inner model that makes no use of tensors",
    ),
    pytest.param(
        model(TAKES.format(passed="input_ids, positions"), inner="Bare"),
        {},
        "satisfied",
        "",
        id="an inner model that does not take tensors",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None, **kwargs):
                return self.model(input_ids, positions, intermediate_tensors)
            """
        ),
        {},
        "satisfied",
        "kwargs end in it because Backbone.forward takes no others",
        id="kwargs that the inner model refuses",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None, **kwargs):
                return self.model(input_ids, positions, intermediate_tensors)
            """,
            inner="Trap",
        ),
        {},
        "satisfied",
        "kwargs end in it because Backbone.forward takes no others",
        id="kwargs that are refused two calls further on",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None, **kwargs):
                forward_kwargs = {"input_ids": input_ids, "positions": positions}
                forward_kwargs.update(kwargs)
                return self.model(**forward_kwargs)
            """,
            inner="Open",
        ),
        {},
        "satisfied",
        "",
        id="kwargs merged into a dict that is passed on",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None, **kwargs):
                del kwargs
                return self.model(input_ids, positions, intermediate_tensors)
            """,
            inner="Open",
        ),
        {},
        "satisfied",
        "",
        id="kwargs that are deleted on purpose",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors, offsets,
                        inputs_embeds=None):
                return self.model(input_ids, positions, intermediate_tensors)
            """
        ),
        {},
        "unproven",
        "a default there would need one for offsets",
        id="a default that another parameter bars",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, intermediate_tensors=None,
                        inputs_embeds=None):
                return self.unknown(input_ids, positions)
            """,
            bases="SupportsPP",
        ),
        {},
        "unproven",
        "what it calls",
        id="an inner call that cannot be followed",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, inputs_embeds=None):
                return self.model(input_ids, positions)
            """,
            inner="Bare",
        ),
        {},
        "blocked",
        "got an unexpected keyword argument 'intermediate_tensors'",
        id="a runner passes tensors and the inner model takes none",
    ),
    pytest.param(
        model(
            """
            def forward(self, input_ids, positions, hidden_states,
                        intermediate_tensors=None):
                return self.model(input_ids, positions)
            """
        ),
        {"draft": "Tiny"},
        "exempt",
        "draft",
        id="a draft drops tensors that nobody passes it",
    ),
    pytest.param(
        """
        class Tiny(nn.Module):
            def __new__(cls, *, vllm_config, prefix=""):
                return Other(vllm_config=vllm_config)

            def forward(self, input_ids, positions, intermediate_tensors):
                ...
        """,
        {"mm": "Tiny"},
        "exempt",
        "returns an object of another class",
        id="a dispatcher",
    ),
]


@pytest.mark.parametrize(("text", "tables", "status", "said"), UNCHANGED)
def test_unchanged(text: str, tables: dict[str, str], status: str, said: str) -> None:
    session, findings = judged(text, **tables)
    found = findings["Tiny"]
    assert found.status == status, found.message
    assert said in found.message
    assert not changed(session, findings)


REFUSING = model(
    """
    def forward(self, input_ids, positions, intermediate_tensors=None,
                inputs_embeds=None):
        return self.model(input_ids, positions, intermediate_tensors)
    """
)


@pytest.mark.parametrize(
    ("passed", "status"),
    [
        pytest.param("lookahead=5,", "blocked", id="a name of the runner's own"),
        pytest.param("inter_tensors=5,", "blocked", id="another name for tensors"),
        pytest.param("encoder_outputs=5,", "satisfied", id="an encoder's outputs"),
        pytest.param("", "satisfied", id="what every model takes"),
    ],
)
def test_what_a_runner_always_passes_must_be_taken(passed: str, status: str) -> None:
    files = tree(REFUSING)
    place = "vllm/v1/worker/gpu_model_runner.py"
    call = b"inputs_embeds=inputs_embeds,"
    assert files[place].count(call) == 1
    files[place] = files[place].replace(call, call + passed.encode())
    session = Session(MemoryTree(files), codemods=[ForwardKwargs()])
    (found,) = (f for f in session.run().findings if f.class_name == "Tiny")
    assert found.status == status, found.message
    assert (found.shape == f"refuses {passed[:-3]}") == (status == "blocked")
    if status == "blocked":
        name = passed[:-3]
        assert f"got an unexpected keyword argument '{name}'" in found.message
        assert place in found.message
    assert not found.edits


def test_collected_names_are_refused_by_nobody() -> None:
    files = tree(REFUSING.replace("inputs_embeds=None)", "inputs_embeds=None, **kw)"))
    place = "vllm/v1/worker/gpu_model_runner.py"
    call = b"inputs_embeds=inputs_embeds,"
    files[place] = files[place].replace(call, call + b"lookahead=5,")
    findings = Session(MemoryTree(files), codemods=[ForwardKwargs()]).run().findings
    assert {f.status for f in findings if f.class_name == "Tiny"} == {"satisfied"}


# -- the proof -------------------------------------------------------------------------

ALL = "input_ids, positions, intermediate_tensors, inputs_embeds"


class _Cache:
    """Keeps answers for the length of a test."""

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._kept.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self._kept[key] = value

    def flush(self) -> None:
        pass


REQUIRING = """
def forward(self, input_ids, positions, intermediate_tensors, inputs_embeds=None):
    return self.model(input_ids, positions, intermediate_tensors)
"""


def test_the_proof_is_the_draft_runners_call_with_pythons_own_words() -> None:
    _, findings = judged(model(REQUIRING))
    found = findings["Tiny"]
    said = {e.file.rpartition("/")[2]: e.statement for e in found.evidence}
    assert said["wrap.py"].startswith("Tiny.forward takes (self, input_ids, ")
    assert "DraftModelProposer" in said["gpu_model_runner.py"]
    assert said["proposers.py"] == (
        "SpecDecodeBaseProposer.propose passes input_ids, positions, inputs_embeds: "
        "TypeError: Tiny.forward() missing 1 required positional argument: "
        "'intermediate_tensors'"
    )


def test_without_a_runner_for_draft_models_it_is_a_matter_of_review() -> None:
    """The same class in a tree whose drafts are all registered ones."""
    data = tree(model(REQUIRING))
    place = "vllm/v1/worker/gpu_model_runner.py"
    data[place] = data[place].replace(b"uses_draft_model", b"uses_ngram")
    session = Session(MemoryTree(data), codemods=[ForwardKwargs()])
    (found,) = [f for f in session.run().findings if f.class_name == "Tiny"]
    assert found.status == "review"
    assert "every runner that reaches it passes them" in found.message


def test_a_model_that_only_pools_is_not_reached_by_a_runner_that_does_not() -> None:
    text = model(REQUIRING)
    data = tree(text, pool="Tiny")
    place = "vllm/v1/worker/gpu_model_runner.py"
    data[place] = data[place].replace(
        b"intermediate_tensors=intermediate_tensors,", b""
    )
    for pooler, status in ((b"model.pooler(1)", "fixable"), (b"1", "review")):
        data[place] = data[place].replace(b"model.pooler(1)", pooler)
        session = Session(MemoryTree(data), codemods=[ForwardKwargs()])
        (found,) = [f for f in session.run().findings if f.class_name == "Tiny"]
        assert found.status == status


def test_a_call_that_passes_them_under_a_condition_leaves_them_out_otherwise() -> None:
    """CUDA-graph capture of 0.27 to 0.30: only later ranks were given tensors."""
    data = tree(model(REQUIRING), pool="Tiny")
    place = "vllm/v1/worker/gpu_model_runner.py"
    capture = """
    def capture(self):
        model_inputs = {"input_ids": 1, "positions": 2}
        if not self.is_first_pp_rank:
            model_inputs["intermediate_tensors"] = 3
        return self.model(**model_inputs)
"""
    data[place] += capture.encode()
    session = Session(MemoryTree(data), codemods=[ForwardKwargs()])
    (found,) = [f for f in session.run().findings if f.class_name == "Tiny"]
    assert found.status == "fixable"
    assert found.evidence[-1].statement.startswith(
        "GPUModelRunner.capture passes input_ids, positions, [intermediate_tensors] "
        "where self.is_first_pp_rank: TypeError: "
    )


@pytest.mark.parametrize(
    ("body", "used"),
    [
        pytest.param("return self.model(tensors)", True, id="an argument"),
        pytest.param("return tensors['hidden']", True, id="a subscript"),
        pytest.param("x = {'t': tensors}", True, id="a value of a dict"),
        pytest.param("x = y if tensors is None else tensors", True, id="a choice"),
        pytest.param("if look(tensors): pass", True, id="a call in a condition"),
        pytest.param("if tensors is not None: x = None", False, id="a look"),
        pytest.param("if not tensors and y: x = None", False, id="a truth value"),
        pytest.param("assert tensors", False, id="an assertion"),
        pytest.param("del tensors", False, id="a deletion"),
        pytest.param("tensors = None", False, id="an assignment"),
    ],
)
def test_a_look_is_no_use(body: str, used: bool) -> None:
    text = f"class Tiny(nn.Module):\n    def forward(self, tensors):\n        {body}\n"
    index = Session(MemoryTree(tree(text)), codemods=[]).index
    forward = forward_of(index, ClassRef("vllm.model_executor.models.wrap", "Tiny"))
    assert forward is not None
    assert forward.uses("tensors") is used


# -- heirs -----------------------------------------------------------------------------


def test_a_base_is_fixed_once_and_its_heirs_are_named() -> None:
    text = model(REQUIRING) + "\n\nclass Heir(Tiny):\n    pass\n"
    session, findings = judged(text, text="Tiny Heir")
    assert findings["Tiny"].heirs == ("vllm.model_executor.models.wrap:Heir",)
    assert "Heir" not in findings
    assert changed(session, findings)


def test_a_base_that_is_no_model_itself_carries_its_heirs_finding() -> None:
    text = model(REQUIRING, name="Base") + "\n\nclass Tiny(Base):\n    pass\n"
    session, findings = judged(text)
    assert findings["Base"].status == "fixable"
    assert findings["Base"].heirs == ("vllm.model_executor.models.wrap:Tiny",)
    assert changed(session, findings)


def test_an_heir_whose_inner_model_would_refuse_bars_the_edit() -> None:
    heir = """

class Heir(Tiny):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        self.model = Bare(vllm_config=vllm_config, prefix=prefix)
"""
    text = model(TAKES.format(passed="input_ids, positions")) + heir
    session, findings = judged(text, text="Tiny Heir")
    assert findings["Tiny"].status == "unproven"
    assert "Heir runs it too" in findings["Tiny"].message
    assert not changed(session, findings)


def test_a_milder_rule_waits_until_the_worse_one_is_mended() -> None:
    text = model(
        """
        def forward(self, input_ids, positions, intermediate_tensors=None,
                    inputs_embeds=None, **kwargs):
            return self.model(input_ids, positions)
        """,
        inner="Open",
    )
    session, findings = judged(text)
    assert findings["Tiny"].shape == "drops intermediate_tensors"
    (lines,) = changed(session, findings).values()
    assert "**kwargs" not in "".join(line for line in lines if line.startswith("+"))


# -- imports and style -----------------------------------------------------------------


def test_older_files_get_optional_and_the_imports_that_they_lack() -> None:
    head = """\
from typing import Any

import torch
import torch.nn as nn

from vllm.config import VllmConfig

from .backbones import Backbone


"""
    text = head + model(
        """
        def forward(self, input_ids: torch.Tensor, positions: torch.Tensor,
                    inputs_embeds: "Optional[torch.Tensor]" = None, **kwargs):
            return self.model(input_ids, positions)
        """
    )
    session, findings = judged({"wrap.py": text})
    lines = changed(session, findings)["wrap.py"]
    assert "+from typing import Any, Optional" in lines
    assert "+from vllm.sequence import IntermediateTensors" in lines
    assert (
        "+                intermediate_tensors: Optional[IntermediateTensors] = None,"
        in lines
    )


def test_a_forward_that_others_call_gets_its_parameter_behind_the_others() -> None:
    text = model(
        """
        def forward(
            self,
            input_ids: torch.Tensor,
            positions: torch.Tensor,
            inputs_embeds: torch.Tensor | None = None,
            **kwargs,
        ):
            return self.model(input_ids, positions)
        """
    )
    caller = """

class Caller(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.inner = Tiny(vllm_config=vllm_config, prefix=prefix)

    def forward(self, input_ids, positions, intermediate_tensors=None,
                inputs_embeds=None):
        return self.inner(input_ids, positions, inputs_embeds)
"""
    session, findings = judged(text + caller)
    patch = next(iter(session.patches([findings["Tiny"]])))
    assert isinstance(patch, FilePatch)
    lines = [line.strip() for line in patch.after.decode().splitlines()]
    place = lines.index("intermediate_tensors: IntermediateTensors | None = None,")
    assert lines[place - 1].startswith("inputs_embeds:")


# -- the runners -----------------------------------------------------------------------


def _calls(drafts: bool = True) -> dict[tuple[str, str], str]:
    session, _ = judged(model(REQUIRING), drafts=drafts)
    return {
        (call.place.function, call.role.value): call.text()
        for call in runner_calls(session.index)
    }


def test_a_dict_is_followed_to_where_it_is_built() -> None:
    session, _ = judged(model(REQUIRING))
    (call,) = [c for c in runner_calls(session.index) if c.role is Role.TARGET]
    assert call.names == (
        "input_ids",
        "positions",
        "intermediate_tensors",
        "inputs_embeds",
    )
    assert [tuple(key) for key in call.conditional] == [
        ("encoder_outputs", "self.is_encoder_decoder")
    ]
    (more,) = call.keywords.more
    assert "raw_input_only" in more.condition
    assert [place.function for place in call.via] == ["GPUModelRunner.execute_model"]


def test_a_proposer_is_read_with_what_it_tells_its_base() -> None:
    calls = _calls()
    base = "SpecDecodeBaseProposer.propose"
    assert (
        calls[base, "draft"] == "input_ids, positions, inputs_embeds, [hidden_states]"
    )
    assert calls[base, "draft model"] == "input_ids, positions, inputs_embeds"


def test_a_tree_without_proposers_has_only_target_calls() -> None:
    assert {role for _, role in _calls(drafts=False)} == {"target"}


def test_a_class_does_not_rest_on_another_of_the_same_shape() -> None:
    """Which of them is asked first must not tell what the others are read from."""
    texts = {
        f"{name.lower()}.py": HEADER + model(TAKES.format(passed=ALL), name=name)
        for name in ("One", "Two")
    }
    before = tree(texts, text="one:One two:Two")
    after = before | {f"{MODELS}/one.py": before[f"{MODELS}/one.py"] + b"# x\n"}
    first, second = (
        Session(MemoryTree(files), codemods=[ForwardKwargs()], cache=_Cache()).run()
        for files in (before, after)
    )
    keys = [f"{MODELS.replace('/', '.')}.{n.lower()}:{n}" for n in ("One", "Two")]
    assert [first.basis[key] == second.basis[key] for key in keys] == [False, True]


# -- what the tree demands -------------------------------------------------------------

ALWAYS = (
    "Every target runner passes input_ids, positions, intermediate_tensors and "
    "inputs_embeds; some pass encoder_outputs."
)


def _demand(files: Mapping[str, bytes]) -> tuple[str, dict[str, str]]:
    """Return what the note on forwards says, and what each cited line shows."""
    result = Session(MemoryTree(files), codemods=[ForwardKwargs()]).run()
    (note,) = [n for n in result.contract if n.name == "forward"]
    shown: dict[str, str] = {}
    for link in note.evidence:
        line = files[link.file].decode().splitlines()[link.line - 1]
        shown[link.statement] = line.strip()
    return note.statement, shown


def test_the_era_of_forwards_is_told_with_the_lines_that_show_it() -> None:
    said, shown = _demand(tree(model(REQUIRING)))
    assert said == (
        f"{ALWAYS} No runner of registered drafts passes intermediate_tensors. Any "
        "causal language model may serve as a draft model, and is then called without "
        "intermediate_tensors."
    )
    lines = {statement.partition(" ")[0]: line for statement, line in shown.items()}
    assert lines["GPUModelRunner._model_forward"] == "return self.model("
    assert (
        lines["SpecDecodeBaseProposer.propose"] == "return self.model(**model_kwargs)"
    )
    assert "self.drafter = DraftModelProposer(self)" in lines.values()


def test_an_era_without_draft_runners_is_told_so() -> None:
    assert _demand(tree(model(REQUIRING), drafts=False))[0] == ALWAYS


@pytest.mark.parametrize(
    ("annotation", "style"),
    [
        ("IntermediateTensors | None", "X | None"),
        ('"IntermediateTensors | None"', "X | None"),
        ('Optional["IntermediateTensors"]', "Optional[X]"),
        ("IntermediateTensors", None),
    ],
)
def test_the_typing_of_the_protocol_is_the_style_of_the_tree(
    annotation: str, style: str | None
) -> None:
    files = tree(model(REQUIRING))
    place = f"{MODELS}/interfaces.py"
    typed = f"intermediate_tensors: {annotation})"
    files[place] = files[place].replace(b"intermediate_tensors)", typed.encode())
    result = Session(MemoryTree(files), codemods=[ForwardKwargs()]).run()
    notes = [note for note in result.contract if note.name == "typing"]
    if style is None:
        assert not notes
        return
    (note,) = notes
    assert note.statement == f"Optional parameters are written {style}."
    (link,) = note.evidence
    assert typed in files[link.file].decode().splitlines()[link.line - 1]


def test_a_tree_without_runners_demands_nothing_of_forwards() -> None:
    files = tree(model(REQUIRING), drafts=False)
    del files["vllm/v1/worker/gpu_model_runner.py"]
    result = Session(MemoryTree(files), codemods=[ForwardKwargs()]).run()
    assert not {"forward", "typing"} & {note.name for note in result.contract}


def test_the_era_is_no_finding_s_failure() -> None:
    """Reports tell a note as the failure of the findings that share a link with it."""
    session, findings = judged(model(REQUIRING))
    (note,) = [n for n in session.run().contract if n.name == "forward"]
    assert findings["Tiny"].status == "fixable"
    assert set(note.evidence).isdisjoint(findings["Tiny"].evidence)
