"""What each release of vLLM shows, checked by reading its sources."""

from __future__ import annotations

from functools import cache

import pytest

from vlmend.codemods import DirectoryTree, FilePatch, Session
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors

AYA = "AyaVisionForConditionalGeneration"
COHERE = "Cohere2VisionForConditionalGeneration"
DOTS = "DotsOCRForCausalLM"
EMBEDDING = "Qwen2EmbeddingModel"
HCX = "HCXVisionForCausalLM"
VOXTRAL = "VoxtralForConditionalGeneration"
GLM = {"Glm5NextForCausalLM", "Glm5NextForConditionalGeneration"}
KIMI = {"KimiLinearForCausalLM"}
NEMOTRON = {"NemotronHForCausalLM"}

SHOWN: dict[str, tuple[set[str], set[str]]] = {
    "0.8.5": ({AYA, EMBEDDING}, set()),
    "0.9.0": ({AYA, EMBEDDING}, set()),
    "0.9.1": ({AYA}, NEMOTRON),
    "0.9.2": ({AYA}, NEMOTRON),
    "0.10.0": ({AYA, VOXTRAL}, NEMOTRON),
    "0.10.1": ({AYA, COHERE, HCX, VOXTRAL}, NEMOTRON),
    "0.10.2": ({AYA, COHERE, HCX, VOXTRAL}, NEMOTRON),
    "0.11.0": ({AYA, COHERE, DOTS, HCX, VOXTRAL}, NEMOTRON),
    "0.11.1": ({AYA, COHERE, HCX, VOXTRAL}, KIMI),
    "0.12.0": ({AYA, COHERE, HCX, VOXTRAL}, KIMI),
    "0.13.0": ({AYA, COHERE, HCX, VOXTRAL}, KIMI),
    "0.14.0": ({AYA, COHERE, HCX, VOXTRAL}, KIMI),
    "0.16.0": ({AYA, COHERE, HCX, VOXTRAL}, KIMI),
    "0.17.0": ({AYA, COHERE, HCX, VOXTRAL}, KIMI),
    "0.18.0": ({AYA, COHERE, VOXTRAL}, KIMI),
    "0.19.0": ({AYA, COHERE, VOXTRAL}, KIMI),
    "0.20.0": ({AYA, COHERE, VOXTRAL}, KIMI),
    "0.21.0": ({AYA, COHERE, VOXTRAL}, KIMI),
    "0.22.0": (set(), KIMI),
    "0.23.0": (set(), KIMI),
    "0.24.0": (set(), KIMI),
    "0.25.0": (set(), KIMI),
    "0.26.0": (set(), KIMI),
    "0.27.0": (set(), set()),
    "0.28.0": (set(), set()),
    "0.29.0": (set(), set()),
    "0.30.0": (set(), GLM),
    "0.31.0": (set(), GLM),
    "0.32.0": (set(), GLM),
    "0.33.0": (set(), GLM),
}
"""(fixable, blocked) of each release; nothing is unproven in any of them."""

PLAIN = ("0.21.0", "0.22.0", "0.33.0")
VERSIONS = [
    v if v in PLAIN else pytest.param(v, marks=pytest.mark.replay) for v in SHOWN
]

MENDED = {
    VOXTRAL: "self.language_model",
    EMBEDDING: "self.model",
}


@pytest.fixture(scope="module")
def session_of(release):
    @cache
    def make(version: str) -> Session:
        tree = DirectoryTree(release(version))
        return Session(tree, codemods=(DelegateIntermediateTensors(),))

    return make


def by_status(session: Session, status: str):
    return {f.class_name: f for f in session.run().findings if f.status == status}


def added(patch: FilePatch) -> list[str]:
    """Return the added lines that are not empty, the statement's first line first.

    Where the line before ends alike, a diff may show the last line as the first.
    """
    lines = [
        line[1:]
        for line in patch.diff().splitlines()
        if line.startswith("+") and not line.startswith("+++") and line[1:].strip()
    ]
    while not lines[0].lstrip().startswith("self."):
        lines.append(lines.pop(0))
    return lines


@pytest.mark.parametrize("version", VERSIONS)
def test_release_shows(session_of, version):
    session = session_of(version)
    fixable, blocked = SHOWN[version]

    assert set(by_status(session, "fixable")) == fixable
    assert set(by_status(session, "blocked")) == blocked
    assert by_status(session, "unproven") == {}
    assert session.run().errors == ()
    era = "stub" if tuple(map(int, version.split("."))) < (0, 28) else "annotation"
    words = {"stub": "inherits the Protocol's empty", "annotation": "AttributeError"}
    assert words[era] in session.run().contract[0].statement

    patches = list(session.patches(session.run().findings))
    assert all(isinstance(patch, FilePatch) for patch in patches), patches
    for patch in patches:
        (finding,) = patch.findings
        holder = MENDED.get(finding.class_name, "self.language_model")
        name = "make_empty_intermediate_tensors"
        text = " ".join("".join(added(patch)).split())
        assert text.replace("( ", "").replace(" )", "") in {
            f"self.{name} = {holder}.{name}",
            f"self.{name} = ({holder}.{name})",
        }


def test_0_21_0_shows_three_multimodal_edits_and_upstream_s_fix(session_of):
    session = session_of("0.21.0")
    found = by_status(session, "fixable")
    models = {m.class_name for m in session.run().models if m.multimodal}
    assert set(found) <= models
    patches = {p.file.rsplit("/", 1)[1]: p for p in session.patches(found.values())}
    assert set(patches) == {"aya_vision.py", "cohere2_vision.py", "voxtral.py"}
    # The lines that #42819 added.
    assert [line for line in added(patches["cohere2_vision.py"]) if line] == [
        "        self.make_empty_intermediate_tensors = (",
        "            self.language_model.make_empty_intermediate_tensors",
        "        )",
    ]
    after = patches["cohere2_vision.py"].after.decode()
    behind, _, rest = after.partition("        self.make_empty_intermediate_tensors")
    assert behind.rstrip().endswith(
        "architectures=config.text_config.architectures,\n            )"
    )
    assert rest.partition("        )\n")[2].lstrip("\n").startswith("    @property\n")
    heirs = [h.split(":")[1] for h in found[VOXTRAL].heirs]
    assert heirs == ["VoxtralRealtimeGeneration"]


@pytest.mark.replay
def test_0_11_0_shows_upstream_s_fix_of_dots_ocr(session_of):
    session = session_of("0.11.0")
    finding = by_status(session, "fixable")[DOTS]
    (patch,) = session.patches([finding])
    # The lines that #28705 added.
    assert [line for line in added(patch) if line] == [
        "        self.make_empty_intermediate_tensors = (",
        "            self.language_model.make_empty_intermediate_tensors",
        "        )",
    ]


@pytest.mark.replay
def test_misspelling_is_told(session_of):
    finding = by_status(session_of("0.10.0"), "blocked")["NemotronHForCausalLM"]
    assert "make_empty_intmd_tensors, which looks like a misspelling" in finding.message


def test_next_release_has_the_very_lines_that_0_21_0_lacks(session_of, release):
    session = session_of("0.21.0")
    for patch in session.patches(by_status(session, "fixable").values()):
        lines = [line for line in added(patch) if line]
        upstream = (release("0.22.0") / patch.file).read_text()
        assert "\n".join(lines) in upstream, patch.file


@pytest.mark.parametrize(
    "version", [v for v in VERSIONS if v == "0.22.0" or v == "0.33.0"]
)
def test_class_without_the_word_has_the_reason_of_a_maintainer(session_of, version):
    """What a plain search for a missing attribute would hit is each explained."""
    session = session_of(version)
    index = session.index
    hits = {}
    for ref in index.model_classes:
        if not (index.is_pipeline_parallel(ref) and index.is_multimodal(ref)):
            continue
        found = index.class_of(ref)
        lines = index.lines(index.module(ref.module))[found.line - 1 : found.end_line]
        if "make_empty_intermediate_tensors" not in "\n".join(lines):
            hits[ref] = None
    findings = {(f.module, f.class_name): f for f in session.run().findings}
    assert len(hits) > 30
    for ref in hits:
        finding = findings[ref.module, ref.name]
        assert finding.status in {"satisfied", "exempt", "blocked"}, finding.message
        if finding.status == "satisfied":
            # Somebody else's line keeps the contract, and it is cited.
            keeper = finding.evidence[0]
            source = index.roots[0].tree.read(keeper.file).decode().splitlines()
            text = "\n".join(source[keeper.line - 1 : keeper.line + 2])
            assert "make_empty_intermediate_tensors" in text
            assert not keeper.statement.startswith(f"{ref.name}.")
        elif finding.status == "exempt":
            assert "__new__" in finding.message or "registered" in finding.message
        else:
            assert "What would mend it" in finding.message
