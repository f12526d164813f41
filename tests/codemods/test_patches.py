"""Patches: byte-exact edits, real diffs, and a proof that refuses what is wrong."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace

import pytest

from vlmend.codemods import FilePatch, MemoryTree, PatchFailure, Session
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors
from vlmend.codemods.rewriting.insert_assignment import InsertAssignment
from vlmend.codemods.rewriting.splices import Splice

WRAP = "vllm/model_executor/models/wrap.py"
SOURCE = '''\
import torch.nn as nn

from .inner import InnerForCausalLM
from .interfaces import SupportsMultiModal, SupportsPP


class WrapForConditionalGeneration(nn.Module, SupportsMultiModal, SupportsPP):
    """Sees — “and” reads é."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.language_model = InnerForCausalLM(vllm_config=vllm_config)

    def forward(self, input_ids, positions, intermediate_tensors=None):
        return self.language_model(input_ids, positions, intermediate_tensors)
'''
ANCHOR = "        self.language_model = InnerForCausalLM(vllm_config=vllm_config)\n"
ADDED = """
        self.make_empty_intermediate_tensors = (
            self.language_model.make_empty_intermediate_tensors
        )
"""
MENDED = SOURCE.replace(ANCHOR, ANCHOR + ADDED)
SHORT = SOURCE.replace("language_model", "llm")
HEAD, TAIL = SOURCE.split("\n    def forward")
TAIL = "\n    def forward" + TAIL
LAST = HEAD.replace(
    "\n    def __init__", f"{TAIL}\n    def __init__"
)  # __init__ comes last, so that the file ends with it


def latin(text: str) -> bytes:
    return ("# -*- coding: latin-1 -*-\n" + text.replace("— “and”", "and")).encode(
        "latin-1"
    )


LAYOUTS = {
    "line feeds": (SOURCE.encode(), MENDED.encode()),
    "carriage returns and line feeds": (
        SOURCE.replace("\n", "\r\n").encode(),
        MENDED.replace("\n", "\r\n").encode(),
    ),
    "carriage returns alone": (
        SOURCE.replace("\n", "\r").encode(),
        MENDED.replace("\n", "\r").encode(),
    ),
    "a byte order mark": (
        b"\xef\xbb\xbf" + SOURCE.encode(),
        b"\xef\xbb\xbf" + MENDED.encode(),
    ),
    "Latin-1 by a coding line": (latin(SOURCE), latin(MENDED)),
    "tabs": (
        SOURCE.replace("    ", "\t").encode(),
        MENDED.replace("    ", "\t").encode(),
    ),
    "a form feed before the class": (
        SOURCE.replace("class", "\f\nclass", 1).encode(),
        MENDED.replace("class", "\f\nclass", 1).encode(),
    ),
    "a form feed in the indentation": (
        SOURCE.replace(ANCHOR, "\f" + ANCHOR).encode(),
        MENDED.replace(ANCHOR, "\f" + ANCHOR).encode(),
    ),
    "spaces behind the statement": (
        SOURCE.replace(ANCHOR, ANCHOR[:-1] + "   \n").encode(),
        MENDED.replace(ANCHOR, ANCHOR[:-1] + "   \n").encode(),
    ),
    "a comment behind the statement": (
        SOURCE.replace(ANCHOR, ANCHOR[:-1] + "  # built\n").encode(),
        MENDED.replace(ANCHOR, ANCHOR[:-1] + "  # built\n").encode(),
    ),
    "a comment below the statement stays below": (
        SOURCE.replace(ANCHOR, ANCHOR + "        # Done.\n").encode(),
        MENDED.replace(ADDED, ADDED + "\n        # Done.\n").encode(),
    ),
    "no empty line before the next method": (
        SOURCE.replace(ANCHOR + "\n", ANCHOR).encode(),
        MENDED.replace(ADDED + "\n", ADDED).encode(),
    ),
    "a statement that goes on behind a backslash": (
        SOURCE.replace(
            "language_model = I", "language_model = \\\n            I", 1
        ).encode(),
        MENDED.replace(
            "language_model = I", "language_model = \\\n            I", 1
        ).encode(),
    ),
    "the file ends with __init__": (LAST.encode(), (LAST + ADDED).encode()),
    "no line end at the end": (LAST[:-1].encode(), (LAST + ADDED)[:-1].encode()),
    "no line end at the end, and carriage returns": (
        LAST[:-1].replace("\n", "\r\n").encode(),
        (LAST + ADDED)[:-1].replace("\n", "\r\n").encode(),
    ),
    "a short name on one line of at most 88 columns": (
        SHORT.encode(),
        SHORT.replace(
            "(vllm_config=vllm_config)\n",
            "(vllm_config=vllm_config)\n\n"
            "        self.make_empty_intermediate_tensors = "
            "self.llm.make_empty_intermediate_tensors\n",
        ).encode(),
    ),
    "a line of 88 columns is none too long": (
        SOURCE.replace("language_model", "llmo").encode(),
        SOURCE.replace("language_model", "llmo")
        .replace(
            "(vllm_config=vllm_config)\n",
            "(vllm_config=vllm_config)\n\n"
            "        self.make_empty_intermediate_tensors = "
            "self.llmo.make_empty_intermediate_tensors\n",
        )
        .encode(),
    ),
    "a line of 89 columns is wrapped": (
        SOURCE.replace("language_model", "llmoo").encode(),
        MENDED.replace("language_model", "llmoo").encode(),
    ),
    "a string with foreign line ends": (
        SOURCE.replace(ANCHOR, f'        x = "\x0b\x1c\x85\u2028"\n{ANCHOR}').encode(),
        MENDED.replace(ANCHOR, f'        x = "\x0b\x1c\x85\u2028"\n{ANCHOR}').encode(),
    ),
}


def session_of(core: dict[str, str], source: bytes) -> Session:
    files = {name: text.encode() for name, text in core.items()}
    return judged({**files, WRAP: source})


def judged(files: dict[str, bytes]) -> Session:
    return Session(MemoryTree(files), codemods=(DelegateIntermediateTensors(),))


@pytest.fixture
def core(judge):
    files = judge(SOURCE).files
    return {k: v.decode() for k, v in files.items() if k != WRAP}


@pytest.mark.parametrize(("before", "after"), LAYOUTS.values(), ids=LAYOUTS)
def test_layout_is_kept_to_the_byte(core, before, after):
    session = session_of(core, before)

    (patch,) = session.patches(session.run().findings)

    assert isinstance(patch, FilePatch), patch
    assert patch.after == after


@pytest.mark.parametrize(("before", "after"), LAYOUTS.values(), ids=LAYOUTS)
def test_second_run_changes_nothing(core, before, after):
    session = session_of(core, after)
    assert list(session.patches(session.run().findings)) == []
    assert {f.class_name: f.status for f in session.run().findings}[
        "WrapForConditionalGeneration"
    ] == "satisfied"


@pytest.mark.parametrize(("before", "after"), LAYOUTS.values(), ids=LAYOUTS)
def test_git_takes_the_diff(core, before, after, make_repo, git):
    repo = make_repo({WRAP: before})
    session = session_of(core, before)
    (patch,) = session.patches(session.run().findings)

    subprocess.run(
        ["git", "-C", repo, "apply", "--whitespace=nowarn"],
        input=patch.diff().encode("utf-8", "surrogateescape"),
        check=True,
    )

    assert (repo / WRAP).read_bytes() == after
    assert git(repo, "status", "--porcelain") == f"M {WRAP}"


@pytest.mark.parametrize("encoding", ["idna", "utf-7", "unicode_escape"])
def test_encoding_that_does_not_lead_back_is_refused(core, encoding):
    source = SOURCE.replace("— “and”", "and").replace("é", "e") + "# +AGE- \\x41\n"
    session = session_of(core, f"# coding: {encoding}\n{source}".encode())
    (patch,) = session.patches(session.run().findings)
    assert isinstance(patch, PatchFailure)
    assert encoding.replace("_", "-") in patch.reason.replace("_", "-")


def test_diff_has_as_much_context_as_is_asked_for(core):
    session = session_of(core, SOURCE.encode())
    (patch,) = session.patches(session.run().findings)
    assert patch.diff(0).splitlines()[2:] == [
        "@@ -13,0 +14,4 @@",
        *(f"+{line}" for line in (*ADDED.splitlines()[1:], "")),
    ]


def test_two_classes_of_a_file_are_one_patch_and_two_diffs(core):
    second = SOURCE[SOURCE.index("class") :].replace("WrapFor", "OtherFor")
    registry = "vllm/model_executor/models/registry.py"
    core[registry] = core[registry].replace(
        '"WrapForC',
        '"OtherForConditionalGeneration": ("wrap", "OtherForConditionalGeneration"),\n'
        '    "WrapForC',
        1,
    )
    session = session_of(core, f"{SOURCE}\n\n{second}".encode())
    findings = session.run().findings

    (patch,) = session.patches(findings)
    assert isinstance(patch, FilePatch)
    assert patch.after.decode().count(ADDED) == 2
    assert [f.class_name for f in patch.findings] == [
        "WrapForConditionalGeneration",
        "OtherForConditionalGeneration",
    ]
    for finding in patch.findings:
        (alone,) = session.patches([finding])
        assert alone.after.decode().count(ADDED) == 1
        assert session.finding_diff(finding) == alone.diff()


def test_file_that_changed_since_the_scan_is_not_patched(core):
    files = {name: text.encode() for name, text in core.items()}
    files[WRAP] = SOURCE.encode()
    session = judged(files)
    findings = session.run().findings

    files[WRAP] = b"# new first line\n" + SOURCE.encode()
    (patch,) = session.patches(findings)
    assert isinstance(patch, PatchFailure)
    assert "__init__" in patch.reason

    del files[WRAP]
    (patch,) = session.patches(findings)
    assert isinstance(patch, PatchFailure)
    assert patch.reason == f"{WRAP}: does not exist"


# -- an edit that does something else than it says must be found out ----------------


@dataclass(frozen=True)
class Sabotage:
    """Does what ``honest`` does, and then spoils it."""

    honest: InsertAssignment
    old: str
    new: str

    @property
    def file(self) -> str:
        return self.honest.file

    @property
    def line(self) -> int:
        return self.honest.line

    def splices(self, view):
        (splice,) = self.honest.splices(view)
        if self.old in splice.text:
            return (replace(splice, text=splice.text.replace(self.old, self.new)),)
        start = view.utf8.index(self.old.encode())
        return splice, Splice(start, start + len(self.old.encode()), self.new)


SPOILED = {
    "does not parse": ("make_empty_intermediate_tensors = (", "make = = ("),
    "another attribute is set": ("self.make_empty", "self.makes_empty"),
    "another object is handed up": ("self.language_model.make", "self.vision.make"),
    "the Protocol is taken off": (", SupportsPP):", "):"),
    "the inner model goes": ("self.language_model = Inner", "self.gone = Inner"),
    "a comment goes": ("  # keep", ""),
    "the class has another name": ("class WrapFor", "class WarpFor"),
    "the import goes": ("from .inner import InnerForCausalLM\n", ""),
    "nothing is left of it": (ADDED, ""),
}


@pytest.mark.parametrize(("old", "new"), SPOILED.values(), ids=SPOILED)
def test_sabotaged_edit_fails_its_proof(core, old, new):
    source = SOURCE.replace("super().__init__()", "super().__init__()  # keep")
    session = session_of(core, source.encode())
    finding = next(f for f in session.run().findings if f.edits)
    assert isinstance(next(session.patches([finding])), FilePatch)

    spoiled = replace(finding, edits=(Sabotage(finding.edits[0], old, new),))
    (patch,) = session.patches([spoiled])

    assert isinstance(patch, PatchFailure), patch.after.decode()
    assert patch.reason
    assert session.finding_diff(spoiled) is None


def test_edits_of_the_same_text_are_refused(core):
    session = session_of(core, SOURCE.encode())
    finding = next(f for f in session.run().findings if f.edits)
    twice = Sabotage(finding.edits[0], "super().__init__()", "super().__init__( )")

    spoiled = replace(finding, edits=(twice, twice))
    (patch,) = session.patches([spoiled])

    assert isinstance(patch, PatchFailure)


def test_fingerprint_names_the_defect_not_the_place(core):
    def prints(source: str) -> list[str]:
        found = session_of(core, source.encode()).run().findings
        return [f.fingerprint for f in found if f.status == "fixable"]

    there = prints(SOURCE)
    assert len(there) == 1
    assert prints(f"# moved\n\n\n{SOURCE}") == there
    assert (
        prints(SOURCE.replace("        super", "        x = 1\n        super")) == there
    )
    assert prints(SHORT) != there
