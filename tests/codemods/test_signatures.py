"""The static binder against Python itself, on functions made up by hypothesis."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmend.codemods.analysis.signatures import Signature, read_signature

NAMES = ("a", "b", "c", "d", "e", "g")


@st.composite
def functions(draw: st.DrawFn) -> str:
    """Return the source of a function ``f`` with any legal mix of parameters."""
    names = draw(st.permutations(NAMES))
    count = draw(st.integers(0, 5))
    only = draw(st.integers(0, count))
    defaults = draw(st.integers(0, count))
    parts = [
        name if index < count - defaults else f"{name}=None"
        for index, name in enumerate(names[:count])
    ]
    if only:
        parts.insert(only, "/")
    keyword_only = names[count : count + draw(st.integers(0, 6 - count))]
    star = draw(st.sampled_from(["", "*args"]))
    if star or keyword_only:
        parts.append(star or "*")
    parts += [draw(st.sampled_from([n, f"{n}=None"])) for n in keyword_only]
    if draw(st.booleans()):
        parts.append("**kwargs")
    return f"def f({', '.join(parts)}): pass"


def _python_says(function: object, positional: int, keywords: list[str]) -> str:
    try:
        function(*range(positional), **dict.fromkeys(keywords))  # type: ignore[operator]
    except TypeError as error:
        # Newer Pythons add a suggestion of their own.
        return re.sub(r"\. Did you mean .*$", "", str(error))
    return ""


@given(
    functions(),
    st.integers(0, 7),
    st.lists(st.sampled_from([*NAMES, "x", "y"]), unique=True),
)
def test_binder_answers_as_python_does(
    source: str, positional: int, keywords: list[str]
) -> None:
    scope: dict[str, object] = {}
    exec(source, scope)
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    signature = read_signature(node)
    answer = signature.bind(positional, keywords)
    said = _python_says(scope["f"], positional, keywords)
    assert (answer if isinstance(answer, str) else "") == said
    try:
        bound = inspect.signature(scope["f"]).bind(  # type: ignore[arg-type]
            *range(positional), **dict.fromkeys(keywords)
        )
    except TypeError:
        # inspect refuses a positional-only name that **kwargs would take (gh-87106,
        # since repaired); the call itself is what counts.
        taken = "/" in source and "**kwargs" in source and set(keywords) & set(NAMES)
        assert isinstance(answer, str) or taken
        return
    assert not isinstance(answer, str)
    collected = set(bound.arguments.get("kwargs", {}))
    assert answer.extra == collected
    named = set(bound.arguments) - {"args", "kwargs"}
    assert {n for n in NAMES if answer.gives(n)} == named


def _signature(source: str, owner: str = "") -> Signature:
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    return read_signature(node, owner)


def test_a_method_is_named_with_its_class_and_counts_self() -> None:
    signature = _signature("def forward(self, input_ids, positions): pass", "Tiny")
    assert signature.bind(1, ["input_ids"]) == (
        "Tiny.forward() missing 1 required positional argument: 'positions'"
    )
    assert signature.bind(4, []) == (
        "Tiny.forward() takes 3 positional arguments but 4 were given"
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("def f(a, b=1): pass", "(a, b=...)", id="defaults"),
        pytest.param("def f(a, /, b): pass", "(a, /, b)", id="positional-only"),
        pytest.param("def f(a, *, b): pass", "(a, *, b)", id="keyword-only"),
        pytest.param("def f(*a, b=1, **k): pass", "(*a, b=..., **k)", id="collecting"),
    ],
)
def test_text_shows_the_shape(source: str, text: str) -> None:
    assert _signature(source).text() == text
