"""Whatever a wrapper looks like: no crash, no patch that fails its proof."""

from __future__ import annotations

import ast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlmend.codemods import FilePatch, MemoryTree, Session
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors

WRAP = "vllm/model_executor/models/wrap.py"
HEADER = """\
import torch.nn as nn

from .inner import InnerForCausalLM, LackingForCausalLM
from .interfaces import SupportsMultiModal, SupportsPP


"""

names = st.sampled_from(["language_model", "llm", "model", "text", "a", "_lm", "größe"])
comments = st.sampled_from(["", "# note", "# vlmend", "#", "# make_empty = 1", "# é"])
indents = st.sampled_from(["    ", "  ", "\t", "   "])
line_ends = st.sampled_from(["\n", "\r\n", "\r"])
spaces = st.sampled_from(["", " ", "   ", "\t"])
conditions = st.sampled_from(["vllm_config.a", "not prefix", "True", "self.x > 1"])


@st.composite
def statements(draw, attribute: str, depth: int = 0) -> list[str]:
    """Return a block of statements that may build the language model."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 14 if depth < 2 else 8))
        built = draw(st.sampled_from(["Inner", "Inner", "Inner", "Lacking"]))
        target = f"self.{attribute} = {built}ForCausalLM(vllm_config=vllm_config)"
        if kind <= 3:
            lines.append(target)
        elif kind == 4:
            lines += [
                f"built = {built}ForCausalLM(",
                "    vllm_config=vllm_config",
                ")",
                f"self.{attribute} = built",
            ]
        elif kind == 5:
            lines.append(f"self.size = 1; {target}")
        elif kind == 6:
            lines.append(draw(st.sampled_from(["pass", "self.x = '''a\n b'''", "..."])))
        elif kind == 7:
            lines.append(f"self.{draw(names)} = None")
        elif kind == 8:
            lines.append(draw(st.sampled_from(["return", "raise KeyError", "x = 1"])))
        else:
            condition = draw(conditions)
            inner = draw(statements(attribute, depth + 1))
            head = {
                9: f"if {condition}:",
                10: "with self._mark_language_model(vllm_config):",
                11: f"for x in {condition}:",
                12: f"while {condition}:",
                13: "try:",
                14: "with one(), two() as three:",
            }[kind]
            lines += [head, *(f"    {line}" for line in inner)]
            if kind == 9 and draw(st.booleans()):
                other = draw(statements(attribute, depth + 1))
                lines += ["else:", *(f"    {line}" for line in other)]
            if kind == 13:
                end = draw(st.sampled_from(["pass", "raise", "return"]))
                lines += ["except KeyError:", f"    {end}"]
    return lines


@st.composite
def wrappers(draw) -> bytes:
    """Return the text of a file with one wrapper in some layout."""
    attribute = draw(names)
    body = draw(statements(attribute))
    lines = [
        "class WrapForConditionalGeneration(nn.Module, SupportsPP):",
        '    def __init__(self, *, vllm_config, prefix=""):',
        "        super().__init__()",
        *(f"        {line}" for line in body),
    ]
    forward = [
        "    def forward(self, input_ids, positions, intermediate_tensors=None):",
        f"        return self.{attribute}(input_ids, positions, intermediate_tensors)",
    ]
    lines = lines[:1] + forward + lines[1:] if draw(st.booleans()) else lines + forward
    step, end = draw(indents), draw(line_ends)
    out: list[str] = []
    for line in lines:
        text = line.lstrip(" ")
        column = len(line) - len(text)
        comment = draw(comments) if draw(st.integers(0, 4)) == 0 else ""
        if "'''" in text or text.endswith("("):
            comment = ""
        out.append(step * (column // 4) + " " * (column % 4) + text + comment)
        if draw(st.integers(0, 6)) == 0 and "'''" not in text:
            out.append(draw(spaces))
    text = HEADER + "\n".join(out)
    if draw(st.booleans()):
        text += "\n"
    bom = b"\xef\xbb\xbf" if draw(st.integers(0, 5)) == 0 else b""
    return bom + text.replace("\n", end).encode()


@pytest.fixture(scope="module")
def core(judge):
    files = dict(judge(HEADER + "class WrapForConditionalGeneration: pass\n").files)
    del files[WRAP]
    return files


def session_of(core: dict[str, bytes], source: bytes) -> Session:
    tree = MemoryTree({**core, WRAP: source})
    return Session(tree, codemods=(DelegateIntermediateTensors(),))


def parses(source: bytes) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


quick = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@given(source=wrappers())
@quick
def test_every_patch_passes_its_proof(core, source):
    session = session_of(core, source)
    result = session.run()

    assert [bool(result.errors), parses(source)] in ([True, False], [False, True])
    for patch in session.patches(result.findings):
        assert isinstance(patch, FilePatch), (patch.reason, source.decode())
        after = session_of(core, patch.after)
        found = {f.class_name: f.status for f in after.run().findings}
        assert found["WrapForConditionalGeneration"] == "satisfied"
        assert list(after.patches(after.run().findings)) == []
        # Only lines are added, and only such as hand the attribute up.
        rest = patch.after.splitlines()
        for line in patch.before.splitlines():
            assert line in rest
            rest.remove(line)
        added = b"".join(line.strip() for line in rest).decode()
        assert added.startswith("self.make_empty_intermediate_tensors = ")
        assert added.count("make_empty_intermediate_tensors") == 2


@given(
    source=wrappers(),
    shift=st.integers(0, 40),
    filler=st.sampled_from(["", "# moved", "x = 1"]),
)
@quick
def test_fingerprints_survive_line_shifts(core, source, shift, filler):
    before = session_of(core, source).run()
    if before.errors:
        return
    end = next(e for e in (b"\r\n", b"\r", b"\n") if e in source)
    bom = source[:3] if source.startswith(b"\xef\xbb\xbf") else b""
    moved = bom + (filler.encode() + end) * shift + source[len(bom) :]
    after = session_of(core, moved).run()

    def prints(result):
        return [(f.class_name, f.status, f.fingerprint) for f in result.findings]

    assert prints(after) == prints(before)
    assert [f.class_line + shift for f in before.findings if f.file == WRAP] == [
        f.class_line for f in after.findings if f.file == WRAP
    ]


@given(junk=st.binary(max_size=60), at=st.integers(0, 900))
@quick
def test_noise_in_a_file_is_no_crash(core, junk, at):
    source = HEADER.encode() + (
        b"class WrapForConditionalGeneration(nn.Module, SupportsPP):\n"
        b"    def __init__(self, *, vllm_config):\n        super().__init__()\n"
        b"        self.llm = InnerForCausalLM(vllm_config=vllm_config)\n\n"
        b"    def forward(self, ids, positions, intermediate_tensors=None):\n"
        b"        return self.llm(ids, positions, intermediate_tensors)\n"
    )
    session = session_of(core, source[:at] + junk + source[at:])
    for patch in session.patches(session.run().findings):
        assert isinstance(patch, FilePatch), patch.reason
