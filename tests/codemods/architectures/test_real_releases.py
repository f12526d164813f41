"""The architectures codemod on real releases."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from vlmend.codemods import DirectoryTree, FilePatch, Finding, Session, Status
from vlmend.codemods.explicit_architectures import ExplicitArchitectures

Release = Callable[[str], Path]
MODELS = "vllm/model_executor/models"

COSMOS = "Cosmos3EdgeForConditionalGeneration"
QWEN = "Qwen3VLForConditionalGeneration"
QWEN_MOE = "Qwen3VLMoeForConditionalGeneration"
KIMI = "KimiAudioForConditionalGeneration"
MOSS = "MossTranscribeDiarizeForConditionalGeneration"
VOXTRAL = "VoxtralForConditionalGeneration"
STEP = "Step3p7ForConditionalGeneration"


@dataclass(frozen=True)
class Shown:
    """What a scan of one release shows: counts, and who is named in them."""

    satisfied: int
    exempt: int
    fixable: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


MINIMAX = ("MiniMaxVL01ForConditionalGeneration",)
TWO = (QWEN, QWEN_MOE)
THREE = (COSMOS, QWEN, QWEN_MOE)
TOWERS = (KIMI, VOXTRAL)
ALL_TOWERS = (KIMI, MOSS, VOXTRAL)

TABLE = {
    "0.8.5": Shown(10, 19),
    "0.9.0": Shown(10, 20, unproven=MINIMAX),
    "0.9.1": Shown(10, 21, unproven=MINIMAX),
    "0.9.2": Shown(13, 21, unproven=MINIMAX),
    "0.10.0": Shown(14, 23, unproven=MINIMAX),
    "0.10.1": Shown(19, 26),
    "0.10.2": Shown(20, 31),
    "0.11.0": Shown(21, 29),
    "0.11.1": Shown(21, 33),
    "0.12.0": Shown(23, 33),
    "0.13.0": Shown(24, 33),
    "0.14.0": Shown(27, 35),
    "0.16.0": Shown(34, 39),
    "0.17.0": Shown(35, 41, TWO),
    "0.18.0": Shown(37, 42, TWO),
    "0.19.0": Shown(39, 42, TWO),
    "0.20.0": Shown(45, 37, TWO, TOWERS),
    "0.21.0": Shown(45, 38, TWO, TOWERS),
    "0.22.0": Shown(46, 38, TWO, TOWERS),
    "0.23.0": Shown(47, 40, TWO, TOWERS),
    "0.24.0": Shown(50, 39, TWO, TOWERS),
    "0.25.0": Shown(49, 37, TWO, ALL_TOWERS),
    "0.26.0": Shown(49, 36, THREE, ALL_TOWERS),
    "0.27.0": Shown(51, 36, THREE, ALL_TOWERS),
    "0.28.0": Shown(52, 35, THREE, ALL_TOWERS),
    "0.29.0": Shown(50, 34, THREE, ALL_TOWERS),
    "0.30.0": Shown(59, 33, (), ALL_TOWERS, (STEP,)),
    "0.31.0": Shown(63, 33, unproven=(STEP,)),
    "0.32.0": Shown(65, 33, unproven=(STEP,)),
    "0.33.0": Shown(66, 34, unproven=(STEP, "Step5ForConditionalGeneration")),
}
NEMOTRON = 'architectures=["NemotronHForCausalLM"]'
PLAIN = ("0.21.0", "0.29.0", "0.33.0")


@dataclass
class Scans:
    """Scans of real releases, each made once."""

    release: Release
    sessions: dict[str, Session] = field(default_factory=dict)

    def session(self, version: str) -> Session:
        if version not in self.sessions:
            tree = DirectoryTree(self.release(version))
            session = Session(tree, codemods=(ExplicitArchitectures(),))
            session.run()
            self.sessions[version] = session
        return self.sessions[version]

    def finding(self, version: str, class_name: str) -> Finding:
        found = self.session(version).run().findings
        (one,) = [f for f in found if f.class_name == class_name]
        return one

    def by_status(self, version: str, status: str) -> tuple[str, ...]:
        found = self.session(version).run().findings
        return tuple(sorted(f.class_name for f in found if f.status == status))

    def diff(self, version: str, class_name: str) -> list[str]:
        """Return the lines that one finding's patch takes away and adds."""
        session = self.session(version)
        (patch,) = session.patches([self.finding(version, class_name)])
        assert isinstance(patch, FilePatch), patch
        return [
            line
            for line in patch.diff().splitlines()[2:]
            if line.startswith(("+", "-"))
        ]


@pytest.fixture(scope="module")
def scans(release: Release) -> Scans:
    """Return what scans releases."""
    return Scans(release)


def shows(scans: Scans, version: str) -> Shown:
    """Return what a scan of a release shows."""
    assert not scans.by_status(version, "blocked")
    return Shown(
        len(scans.by_status(version, "satisfied")),
        len(scans.by_status(version, "exempt")),
        scans.by_status(version, "fixable"),
        scans.by_status(version, "review"),
        scans.by_status(version, "unproven"),
    )


@pytest.mark.parametrize("version", PLAIN)
def test_what_a_release_shows(scans: Scans, version: str) -> None:
    assert shows(scans, version) == TABLE[version]


@pytest.mark.replay
@pytest.mark.parametrize("version", [v for v in TABLE if v not in PLAIN])
def test_what_every_other_release_shows(release: Release, version: str) -> None:
    scans = Scans(release)
    assert shows(scans, version) == TABLE[version]
    never_a_guess(scans, version)
    every_patch_is_proven(scans, version)


def never_a_guess(scans: Scans, version: str) -> None:
    """No class whose text config the checkpoint chooses is ever fixable."""
    for finding in scans.session(version).run().findings:
        if finding.status == Status.FIXABLE:
            said = " ".join(e.statement for e in finding.evidence)
            assert not re.search(r"AutoConfig|CONFIG_MAPPING\[|chooses", said), finding


def every_patch_is_proven(scans: Scans, version: str) -> None:
    session = scans.session(version)
    for patch in session.patches(session.run().findings):
        assert isinstance(patch, FilePatch), patch


@pytest.mark.parametrize("version", PLAIN)
def test_no_guess_and_no_unproven_patch(scans: Scans, version: str) -> None:
    never_a_guess(scans, version)
    every_patch_is_proven(scans, version)


@pytest.mark.parametrize("version", ["0.21.0", "0.29.0"])
@pytest.mark.parametrize(
    ("class_name", "name"),
    [(QWEN, "Qwen3ForCausalLM"), (QWEN_MOE, "Qwen3MoeForCausalLM")],
)
def test_qwen_gets_the_name_that_upstream_gave_it(
    scans: Scans, version: str, class_name: str, name: str
) -> None:
    """Upstream #43272."""
    assert scans.diff(version, class_name) == [
        "-                vllm_config=vllm_config.with_hf_config(config.text_config),",
        "+                vllm_config=vllm_config.with_hf_config(",
        f'+                    config.text_config, architectures=["{name}"]',
        "+                ),",
    ]


def test_cosmos_is_narrowed_by_its_wrapper(scans: Scans) -> None:
    """Upstream #53699, line for line; both roads are in the evidence."""
    assert scans.diff("0.29.0", COSMOS) == [
        "-                vllm_config=vllm_config,",
        "+                vllm_config=vllm_config.with_hf_config(",
        f"+                    config.text_config, {NEMOTRON}",
        "+                ),",
    ]
    said = " / ".join(e.statement for e in scans.finding("0.29.0", COSMOS).evidence)
    assert "which derives from NemotronHModel" in said
    assert "Cosmos3EdgeTextConfig is a NemotronHConfig" in said
    assert "Cosmos3EdgeTextModel reads hidden_size" in said
    assert "only NemotronHForCausalLM has HasInnerState" in said


def test_encoders_are_for_review_with_ultravox_as_precedent(scans: Scans) -> None:
    for class_name in ALL_TOWERS:
        found = scans.finding("0.29.0", class_name)
        assert "NotImplementedError at pipeline-parallel size 2" in found.message
        said = [e.statement for e in found.evidence]
        assert any(s.startswith("UltravoxModel gives UltravoxModel") for s in said)


@pytest.mark.parametrize(
    ("class_name", "status", "reason"),
    [
        ("Granite4VisionForConditionalGeneration", "exempt", "CONFIG_MAPPING"),
        ("Ovis", "exempt", "AutoConfig.for_model"),
        ("Ovis2_5", "exempt", "the tree names no config class"),
        ("AriaForConditionalGeneration", "satisfied", "does not run in pipeline"),
        ("Idefics3ForConditionalGeneration", "exempt", "CONFIG_MAPPING"),
        ("Step3VLForConditionalGeneration", "satisfied", "Step3TextConfig itself"),
        ("PaliGemmaForConditionalGeneration", "satisfied", "sets the architectures"),
        ("UnlimitedOCRForCausalLM", "satisfied", "verify_and_update_model_config"),
        ("Qwen3ASRForConditionalGeneration", "satisfied", "Qwen3ForCausalLM"),
        ("Glm4vForConditionalGeneration", "satisfied", "Glm4MoeForCausalLM"),
    ],
)
def test_other_calls_say_why_they_are_sound(
    scans: Scans, class_name: str, status: str, reason: str
) -> None:
    found = scans.finding("0.29.0", class_name)
    assert found.status == status
    assert reason in found.message


@pytest.mark.parametrize(
    ("class_name", "sibling"),
    [
        (QWEN, "Qwen3ASRForConditionalGeneration gives Qwen3ForCausalLM"),
        (
            QWEN_MOE,
            "Qwen3OmniMoeThinkerForConditionalGeneration gives Qwen3MoeForCausalLM",
        ),
    ],
)
def test_siblings_are_listed_as_precedents(
    scans: Scans, class_name: str, sibling: str
) -> None:
    said = [e.statement for e in scans.finding("0.29.0", class_name).evidence]
    assert any(s.startswith(sibling) for s in said)


def test_views_are_guarded_at_0_33(scans: Scans) -> None:
    (note,) = [
        n for n in scans.session("0.33.0").run().contract if n.name == "architectures"
    ]
    cited = {(e.file, e.line) for e in note.evidence}
    assert ("vllm/config/vllm.py", 1515) in cited
    assert ("vllm/config/model.py", 1140) in cited
    cosmos = scans.finding("0.33.0", COSMOS)
    assert cosmos.status == "satisfied"
    assert "Cosmos3EdgeForCausalLM itself gives NemotronHForCausalLM" in cosmos.message


@dataclass(frozen=True)
class Reversal:
    """A name that upstream took out again, on the release before it did.

    ``pattern`` finds what gave the name; it is replaced by ``by``.
    """

    number: str
    version: str
    file: str
    pattern: str
    by: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return self.number


REVERSALS = [
    Reversal(
        "#23268",
        "0.10.1",
        "cohere2_vision.py",
        r',\s*architectures=\["Cohere2ForCausalLM"\]',
        "",
        ("Cohere2ForCausalLM",),
    ),
    Reversal(
        "#39293",
        "0.19.0",
        "mistral3.py",
        r'config\.text_config\.architectures = \["MistralForCausalLM"\]',
        "pass",
        ("MistralForCausalLM",),
    ),
    Reversal(
        "#28101",
        "0.11.0",
        "deepseek_vl2.py",
        r"\n\s*architectures=architectures,",
        "",
        ("DeepseekV3ForCausalLM", "DeepseekForCausalLM", "DeepseekV2ForCausalLM"),
    ),
    Reversal(
        "#22000",
        "0.10.0",
        "glm4_1v.py",
        r'\n\s*architectures=\["Glm4ForCausalLM"\],',
        "",
        ("Glm4ForCausalLM",),
    ),
    Reversal(
        "#11142",
        "0.8.5",
        "paligemma.py",
        r"config\.text_config\.architectures = \[.*\]",
        "pass",
        ("GemmaForCausalLM", "Gemma2ForCausalLM"),
    ),
]


@pytest.mark.replay
@pytest.mark.parametrize("row", REVERSALS, ids=str)
def test_names_that_upstream_took_out_are_never_proposed(
    release: Release, row: Reversal
) -> None:
    """Neither as the release stands, nor with the name taken out of it."""
    session = _session(release, row.version)
    file = f"{MODELS}/{row.file}"
    source = (release(row.version) / file).read_text()
    without, count = re.subn(row.pattern, row.by, source)
    assert count
    for judged in (session, session.overlaid(file, without.encode())):
        proposed = {
            name
            for finding in judged.run().findings
            if finding.file == file
            for edit in finding.edits
            if (name := getattr(edit, "name", ""))
        }
        assert not proposed & set(row.names)


@cache
def _session(release: Release, version: str) -> Session:
    session = Session(
        DirectoryTree(release(version)), codemods=(ExplicitArchitectures(),)
    )
    session.run()
    return session
