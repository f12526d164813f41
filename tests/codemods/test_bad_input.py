"""Files that cannot be read: one error each, and everything else is still judged."""

from __future__ import annotations

import os

import pytest

from vlmend.codemods import (
    DirectoryTree,
    FilePatch,
    MemoryTree,
    Session,
    SourceTree,
    TreeError,
)
from vlmend.codemods.analysis.tree import MAX_FILE_BYTES
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors

MODELS = "vllm/model_executor/models"
PLAIN = """\
import torch.nn as nn

from .inner import InnerForCausalLM
from .interfaces import SupportsMultiModal, SupportsPP


class WrapForConditionalGeneration(nn.Module, SupportsMultiModal, SupportsPP):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.language_model = InnerForCausalLM(vllm_config=vllm_config)

    def forward(self, input_ids, positions, intermediate_tensors=None):
        return self.language_model(input_ids, positions, intermediate_tensors)
"""
WRAPPER = PLAIN.encode()

BAD = {
    "a syntax error": (b"class X(SupportsPP:\n", "does not parse (line 1): "),
    "another language": (
        b"SupportsPP <- function(x) { x }\n}",
        "does not parse (line ",
    ),
    "not UTF-8 in a string": (b's = "SupportsPP \xe9"\n', "does not parse"),
    "not UTF-8 in a comment": (WRAPPER + b"# \xe9\n", "does not parse: 'utf-8' codec"),
    "not UTF-8 in the first line": (b"# \xe9\n" + WRAPPER, "does not parse: "),
    "null bytes": (b"SupportsPP = 1\0\n", "null bytes"),
    "an unknown encoding": (b"# coding: klingon\nSupportsPP = 1\n", "unknown encoding"),
    "no encoding of text": (
        b"# coding: rot13\nSupportsPP = 1\n",
        "not a text encoding",
    ),
    "a byte order mark and another encoding": (
        b"\xef\xbb\xbf# coding: latin-1\nSupportsPP = 1\n",
        "does not parse",
    ),
    "deep parentheses": (b"SupportsPP = " + b"(" * 300 + b")" * 300, "nested"),
    "a long sum": (b"SupportsPP = 1" + b" + 1" * 30_000, "recursion depth"),
    "many minus signs": (b"SupportsPP = " + b"-" * 50_000 + b"1", "nested too deeply"),
    "many branches": (
        b"SupportsPP = 1\nif a:\n    b\n" + b"elif a:\n    b\n" * 3_000,
        "recursion depth",
    ),
    "huge": (b"# SupportsPP\n" + b"#" * MAX_FILE_BYTES, "is larger than 4 MiB"),
}


def sound(judge) -> dict[str, bytes]:
    return dict(judge({"wrap.py": PLAIN}).files)


def lay_out(root, files):
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return DirectoryTree(root)


def judged(tree: SourceTree) -> Session:
    return Session(tree, codemods=(DelegateIntermediateTensors(),))


def check_the_rest(session: Session) -> None:
    """Everything that is not broken is judged and mended as ever."""
    found = {f.class_name: f.status for f in session.run().findings}
    assert found["InnerForCausalLM"] == "satisfied"
    assert found["WrapForConditionalGeneration"] == "fixable"
    (patch,) = session.patches(session.run().findings)
    assert isinstance(patch, FilePatch), patch


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_file_that_cannot_be_read_is_one_error(judge, tmp_path, content, message):
    files = {**sound(judge), f"{MODELS}/bad.py": content}
    session = judged(lay_out(tmp_path, files))

    (error,) = session.run().errors
    assert error.file == f"{MODELS}/bad.py"
    assert message in error.message
    assert "\n" not in error.message
    check_the_rest(session)


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_inner_model_that_cannot_be_read_is_no_proof(judge, tmp_path, content, message):
    files = {**sound(judge), f"{MODELS}/inner.py": content}
    session = judged(lay_out(tmp_path, files))

    assert [e.file for e in session.run().errors] == [f"{MODELS}/inner.py"]
    found = {f.class_name: f for f in session.run().findings}
    assert found["WrapForConditionalGeneration"].status == "unproven"
    assert list(session.patches(session.run().findings)) == []


def test_links_out_of_the_tree_are_not_followed(judge, tmp_path):
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "secret.py").write_text("class Secret:\n    pass\n")
    root = tmp_path / "tree"
    tree = lay_out(
        root,
        {
            **sound(judge),
            f"{MODELS}/uses.py": b"from .linked.deep.secret import Secret\n"
            b"from .interfaces import SupportsPP\n\n\n"
            b"class Uses(Secret, SupportsPP):\n    pass\n",
        },
    )
    (root / MODELS / "linked").symlink_to(outside)
    (root / MODELS / "leaving.py").symlink_to(outside / "deep" / "secret.py")
    (root / MODELS / "dangling.py").symlink_to(outside / "nothing.py")
    (root / MODELS / "staying.py").symlink_to(root / MODELS / "utils.py")

    session = judged(tree)

    errors = {e.file.rsplit("/", 1)[1]: e.message for e in session.run().errors}
    assert set(errors) <= {"leaving.py", "dangling.py", "secret.py"}
    assert {"leaving.py", "dangling.py"} <= set(errors)
    assert set(errors.values()) == {"is a link that leaves the tree; not followed"}
    assert "Secret" not in str(session.run().models)
    found = {f.class_name: f for f in session.run().findings}
    assert found["Uses"].status == "unproven"
    with pytest.raises(TreeError, match="leaves the tree"):
        tree.read(f"{MODELS}/linked/deep/secret.py")
    check_the_rest(session)


@pytest.mark.parametrize("path", ["../x.py", "/etc/hostname", "vllm/../../x.py"])
def test_paths_out_of_the_tree_are_refused(tmp_path, path):
    for ask in (DirectoryTree(tmp_path).read, DirectoryTree(tmp_path).exists):
        with pytest.raises(TreeError, match="lies outside the tree"):
            ask(path)


def test_pipe_and_folder_with_a_module_s_name_do_not_stop_the_run(judge, tmp_path):
    tree = lay_out(tmp_path, sound(judge))
    os.mkfifo(tmp_path / MODELS / "pipe.py")
    (tmp_path / MODELS / "folder.py").mkdir()

    session = judged(tree)

    assert [(e.file, e.message) for e in session.run().errors] == [
        (f"{MODELS}/pipe.py", "is no regular file; not read")
    ]
    check_the_rest(session)


class Vanishing(MemoryTree):
    """A tree whose file is listed and gone when it is to be read."""

    gone = f"{MODELS}/gone.py"

    def read(self, path: str) -> bytes:
        if path == self.gone:
            raise TreeError(path, "cannot be read: No such file or directory")
        return super().read(path)


def test_file_that_vanishes_in_between_is_one_error(judge):
    session = judged(Vanishing({**sound(judge), Vanishing.gone: WRAPPER}))

    (error,) = session.run().errors
    assert error.file == Vanishing.gone
    assert error.message == "cannot be read: No such file or directory"
    check_the_rest(session)


REGISTRIES = {
    "an unknown form": b"TABLE = load_table('models.toml')\n",
    "a syntax error": b"_TEXT_GENERATION_MODELS = {\n",
    "empty": b"",
    "not UTF-8": b"# \xe9\n",
    "strings instead of pairs": b"_TEXT_GENERATION_MODELS = {'A': 'inner:A'}\n",
}


@pytest.mark.parametrize("content", REGISTRIES.values(), ids=REGISTRIES)
def test_registry_that_cannot_be_read_is_one_error(judge, content):
    place = f"{MODELS}/registry.py"
    session = judged(MemoryTree({**sound(judge), place: content}))

    assert [e.file for e in session.run().errors] == [place]
    check_the_rest(session)


def test_registry_that_is_absent_is_no_error(judge):
    files = sound(judge)
    del files[f"{MODELS}/registry.py"]
    session = judged(MemoryTree(files))
    assert session.run().errors == ()
    check_the_rest(session)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"vllm/__init__.py": b""},
        {f"{MODELS}/interfaces.py": b"class SupportsPP: ...\n"},
        {f"{MODELS}/interfaces.py": b"\xff"},
        {f"{MODELS}/interfaces.py": b"SupportsPP = SupportsPP\n"},
        {f"{MODELS}/interfaces.py": b"from .interfaces import SupportsPP\n"},
        {f"{MODELS}/interfaces.py": b"class SupportsPP(SupportsPP): ...\n"},
    ],
)
def test_tree_without_a_usable_contract_has_no_findings(files):
    assert judged(MemoryTree(files)).run().findings == ()


def test_classes_that_cannot_exist_do_not_stop_the_run(judge):
    odd = """\
import torch.nn as nn

from .interfaces import SupportsPP
from .odd import Ring as Rung


class Ring(Rung, SupportsPP):
    pass


class Self(Self, SupportsPP):
    def __init__(self):
        super().__init__()


class First(nn.Module, SupportsPP):
    pass


class Second(SupportsPP, First):
    def __init__(self):
        self.__init__()


class Many(*bases, SupportsPP, metaclass=type):
    __slots__ = ()

    def __init__():
        super().__init__()
"""
    session = judged(MemoryTree({**sound(judge), f"{MODELS}/odd.py": odd.encode()}))

    found = {f.class_name: f.status.value for f in session.run().findings}
    assert {found[n] for n in ("Ring", "Self", "Second", "Many")} == {"unproven"}
    check_the_rest(session)
