"""The edits of signatures, calls and imports, in every layout that files have."""

from __future__ import annotations

from textwrap import dedent

import pytest

from vlmend.codemods.rewriting.add_import import AddImport
from vlmend.codemods.rewriting.apply import apply_edits
from vlmend.codemods.rewriting.call_arguments import CallArguments
from vlmend.codemods.rewriting.change_signature import ChangeSignature, NewParameter
from vlmend.codemods.rewriting.splices import EditError

KWARGS = NewParameter("**kwargs: object")
TENSORS = NewParameter("tensors: T | None = None", before="embeds")


def _edited(before: str, edit: object) -> str:
    return apply_edits(before.encode(), [edit]).after.decode()  # type: ignore[list-item]


def _signature(*add: NewParameter, defaults: tuple[str, ...] = (), line: int = 1):
    return ChangeSignature("f.py", "f", line, add, defaults)


SIGNATURES = [
    pytest.param(
        "def f(self, a): pass\n",
        _signature(KWARGS),
        "def f(self, a, **kwargs: object): pass\n",
        id="one line",
    ),
    pytest.param(
        "def f(self, a, *args, b=1): pass\n",
        _signature(NewParameter("c=2")),
        "def f(self, a, c=2, *args, b=1): pass\n",
        id="behind what goes by position",
    ),
    pytest.param(
        "def f(self, a, /): pass\n",
        _signature(NewParameter("c=2")),
        "def f(self, a, /, c=2): pass\n",
        id="behind a slash",
    ),
    pytest.param(
        "def f(self, a, embeds=None): pass\n",
        _signature(TENSORS, KWARGS),
        "def f(self, a, tensors: T | None = None, embeds=None, **kwargs: object): "
        "pass\n",
        id="two at once, each in its place",
    ),
    pytest.param(
        f"def f(self, a, {'b' * 50}) -> str: pass\n",
        _signature(KWARGS),
        f"def f(\n    self, a, {'b' * 50}, **kwargs: object\n) -> str: pass\n",
        id="a line too long is broken at the brackets",
    ),
    pytest.param(
        f"def f(self, a, {'b' * 68}) -> str: pass\n",
        _signature(KWARGS),
        f"def f(\n    self,\n    a,\n    {'b' * 68},\n    **kwargs: object,\n) -> str: "
        "pass\n",
        id="and then at every parameter",
    ),
    pytest.param(
        "def f(\n    self,\n    a: A,  # why\n    embeds=None,\n): pass\n",
        _signature(TENSORS),
        "def f(\n    self,\n    a: A,  # why\n    tensors: T | None = None,\n"
        "    embeds=None,\n): pass\n",
        id="a comment behind a parameter",
    ),
    pytest.param(
        "def f(\n    self, a, embeds=None\n): pass\n",
        _signature(TENSORS),
        "def f(\n    self, a, tensors: T | None = None, embeds=None\n): pass\n",
        id="a line of its own between the brackets",
    ),
    pytest.param(
        "def f(self, a,\n      embeds=None): pass\n",
        _signature(TENSORS),
        "def f(self, a,\n      tensors: T | None = None,\n      embeds=None): pass\n",
        id="aligned with the bracket",
    ),
    pytest.param(
        "def f(self,\n      a, embeds=None,\n      c=1): pass\n",
        _signature(TENSORS),
        "def f(self,\n      a,\n      tensors: T | None = None,\n      embeds=None,\n"
        "      c=1): pass\n",
        id="several parameters on a line",
    ),
    pytest.param(
        "def f(self,\n      a,): pass\n",
        _signature(KWARGS),
        "def f(self,\n      a,\n      **kwargs: object,): pass\n",
        id="the bracket behind the last comma",
    ),
    pytest.param(
        "def f(\r\n    self,\r\n    a,\r\n): pass\r\n",
        _signature(KWARGS),
        "def f(\r\n    self,\r\n    a,\r\n    **kwargs: object,\r\n): pass\r\n",
        id="line ends are kept",
    ),
    pytest.param(
        "def f(self, a: A, b: B | None, c): pass\n",
        _signature(defaults=("b", "c")),
        "def f(self, a: A, b: B | None = None, c=None): pass\n",
        id="defaults",
    ),
    pytest.param(
        "def f(\n    self,\n    é: Ä,\n): pass\n",
        _signature(defaults=("é",)),
        "def f(\n    self,\n    é: Ä | None = None,\n): pass\n",
        id="names that are not ASCII",
    ),
]


@pytest.mark.parametrize(("before", "edit", "after"), SIGNATURES)
def test_signatures(before: str, edit: ChangeSignature, after: str) -> None:
    assert _edited(before, edit) == after


def _call(*add: str, unpack: str = "", line: int = 1) -> CallArguments:
    return CallArguments("f.py", "g", line, add, ("embeds",), unpack)


CALLS = [
    pytest.param("g(a, b)\n", _call("t"), "g(a, b, t=t)\n", id="one line"),
    pytest.param(
        "g(a, embeds=e, **k)\n",
        _call("t", unpack="x"),
        "g(a, t=t, embeds=e, **k, **x)\n",
        id="before the keyword, and behind everything",
    ),
    pytest.param(
        f"    y = g({'a' * 70})\n",
        _call("tensors", line=2),
        f"    y = g(\n        {'a' * 70},\n        tensors=tensors,\n    )\n",
        id="a line too long",
    ),
    pytest.param(
        f"    y = g({'a' * 61})\n",
        _call("tensors", line=2),
        f"    y = g(\n        {'a' * 61}, tensors=tensors\n    )\n",
        id="a line that fits between the brackets",
    ),
    pytest.param(
        "    y = g(\n        a, b\n    )\n",
        _call("t", line=2),
        "    y = g(\n        a, b, t=t\n    )\n",
        id="a line of its own between the brackets",
    ),
    pytest.param(
        "    y = g(\n        a,\n        b,  # why\n    )\n",
        _call("t", line=2),
        "    y = g(\n        a,\n        b,  # why\n        t=t,\n    )\n",
        id="a comment behind the last argument",
    ),
    pytest.param(
        "    y = g(a,\n          b)\n",
        _call("t", line=2),
        "    y = g(a,\n          b,\n          t=t)\n",
        id="aligned with the bracket",
    ),
    pytest.param(
        "    y = g(a,\n          b,)\n",
        _call("t", line=2),
        "    y = g(a,\n          b,\n          t=t,)\n",
        id="the bracket behind the last comma",
    ),
    pytest.param(
        "    y = g(\n        a,\n        embeds=e,\n    )\n",
        _call("t", unpack="x", line=2),
        "    y = g(\n        a,\n        t=t,\n        embeds=e,\n        **x,\n"
        "    )\n",
        id="an argument to a line",
    ),
]


@pytest.mark.parametrize(("before", "edit", "after"), CALLS)
def test_calls(before: str, edit: CallArguments, after: str) -> None:
    head = "if 1:\n" if before.startswith(" ") else ""
    assert _edited(head + before, edit) == head + after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "import a\nfrom v.a import A\nfrom v.z import Z\n",
            "import a\nfrom v.a import A\nfrom v.m import N\nfrom v.z import Z\n",
            id="in order among its package",
        ),
        pytest.param(
            "from v.z import Z\n",
            "from v.m import N\nfrom v.z import Z\n",
            id="before the first of its package",
        ),
        pytest.param(
            "from v.m import A, z\n", "from v.m import A, N, z\n", id="joined"
        ),
        pytest.param(
            "from v.m import (\n    A,\n    z,\n)\n",
            "from v.m import (\n    A,\n    N,\n    z,\n)\n",
            id="joined, a name to a line",
        ),
    ],
)
def test_imports(before: str, after: str) -> None:
    assert _edited(before, AddImport("f.py", "v.m", "N")) == after


@pytest.mark.parametrize(
    ("before", "edit", "said"),
    [
        pytest.param(
            "def f(): pass\n", _signature(KWARGS), "no parameters", id="no parameters"
        ),
        pytest.param(
            "def f(a=1): pass\n",
            _signature(defaults=("a",)),
            "default already",
            id="a default is there",
        ),
        pytest.param(
            "def f(a): pass\n",
            _signature(defaults=("b",)),
            "no parameter b",
            id="no such parameter",
        ),
        pytest.param("g(a); g(a)\n", _call("t"), "2 calls", id="two such calls"),
        pytest.param("h(a)\n", _call("t"), "0 calls", id="no such call"),
        pytest.param(
            "import v\n", AddImport("f.py", "v.m", "N"), "no import", id="no neighbour"
        ),
        pytest.param(
            "from v.m import A  # why\n",
            AddImport("f.py", "v.m", "N"),
            "form of its own",
            id="an import with a comment",
        ),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(
    before: str, edit: object, said: str
) -> None:
    with pytest.raises(EditError, match=said):
        _edited(dedent(before), edit)
