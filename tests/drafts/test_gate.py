"""Nothing opens a pull request upstream but a person at a terminal."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from vlmend.cli.errors import Refused
from vlmend.cli.forge.consent import ForkConsent, PersonalConsent

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "cli").rglob("*.py"))


def calls_of(name: str) -> list[str]:
    """Return where something of this name is called or taken, by file and line."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == name:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
            if isinstance(node, ast.Name) and node.id == name:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_one_place_opens_pull_requests():
    (place,) = calls_of("create_pull")
    assert place.startswith("cli/forge/pulls.py:")


def test_that_place_asks_for_consent_first():
    tree = ast.parse((ROOT / "cli/forge/pulls.py").read_text("utf-8"))
    (create,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "create"
    )
    assert ast.unparse(create.args.args[1]) == "consent: Consent"
    # The first statement after the docstring.
    first = create.body[1]
    assert isinstance(first, ast.If)
    assert ast.unparse(first.test) == "not consent.permits(self._repository)"
    assert isinstance(first.body[0], ast.Raise)


def test_no_other_road_leads_to_a_pull_request():
    """No raw request, no other program, no GraphQL."""
    for path in SOURCES:
        if "rig" in path.parts:
            continue  # the stand-in answers such requests
        text = path.read_text("utf-8")
        assert "graphql" not in text.casefold(), path
        assert "pr create" not in text, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and "requestJson" in ast.unparse(node.func):
                told = ast.unparse(node)
                assert "'GET'" in told, (path, told)
            if isinstance(node, ast.Constant) and node.value == "POST":
                # The labels of a pull request that is there.
                assert path.name == "pulls.py", path


def test_a_persons_consent_comes_from_the_prompt_only():
    with pytest.raises(TypeError):
        PersonalConsent(1, object())
    made = [p for p in calls_of("PersonalConsent") if "forge/consent.py" not in p]
    assert {place.split(":")[0] for place in made} == {
        "cli/drafts/publishing.py",
    }
    assert all("consent.py" in place for place in calls_of("_MADE_HERE"))


def test_a_persons_consent_needs_a_terminal(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(Refused, match="no terminal"):
        PersonalConsent.ask(repository(1, "them/vllm"))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(Refused, match="not in CI"):
        PersonalConsent.ask(repository(1, "them/vllm"))


def repository(number, name, *, fork=False, source=None):
    return SimpleNamespace(id=number, full_name=name, fork=fork, source=source)


UPSTREAM = repository(1, "them/vllm")


@pytest.mark.parametrize(
    "fork",
    [
        pytest.param(UPSTREAM, id="the-upstream-itself"),
        pytest.param(repository(1, "you/renamed"), id="the-upstream-by-another-name"),
        pytest.param(repository(2, "THEM/VLLM", fork=True), id="its-name-in-capitals"),
        pytest.param(repository(3, "you/vllm"), id="no-fork"),
        pytest.param(
            repository(3, "you/vllm", fork=True), id="a-fork-of-something-invisible"
        ),
        pytest.param(
            repository(3, "you/x", fork=True, source=repository(9, "x/x")),
            id="a-fork-of-something-else",
        ),
    ],
)
def test_no_consent_for_what_is_not_the_fork(fork):
    with pytest.raises(Refused) as caught:
        ForkConsent(fork, UPSTREAM)
    assert caught.value.exit_code == 3


def test_the_forks_consent_permits_the_fork_only():
    fork = repository(3, "you/vllm", fork=True, source=UPSTREAM)
    consent = ForkConsent(fork, UPSTREAM)
    assert consent.permits(fork)
    assert not consent.permits(UPSTREAM)
