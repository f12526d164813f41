"""Delete each delegation of a real release: the same line comes back, or a reason."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

import pytest

from vlmend.codemods import DirectoryTree, FilePatch, Session
from vlmend.codemods.analysis.interpreter import read_init
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors

pytestmark = pytest.mark.restore

HAND_UP = "make_empty_intermediate_tensors"
VERSION = "0.33.0"
FLOOR = 0.90
DEFECTS = {"blocked", "unproven"}


@dataclass(frozen=True)
class Site:
    """One statement that sets the attribute on ``self``."""

    file: str
    line: int
    end_line: int
    class_name: str
    is_hand_up: bool


def statements(session: Session) -> list[Site]:
    """Return every such statement that the release's pipeline-parallel classes run."""
    found: dict[tuple[str, int], Site] = {}
    for ref in session.index.model_classes:
        if not session.index.is_pipeline_parallel(ref):
            continue
        trace = read_init(session.index, ref)
        for write in trace.writes_to(HAND_UP) if trace else ():
            site = write.site
            text = session.index.roots[0].tree.read(site.file).decode().splitlines()
            node = ast.parse("\n".join(text[site.line - 1 : site.end_line]).strip())
            value = node.body[0].value
            found[site.file, site.line] = Site(
                site.file,
                site.line,
                site.end_line,
                ref.name,
                isinstance(value, ast.Attribute) and value.attr == HAND_UP,
            )
    return [found[key] for key in sorted(found)]


def without(source: str, site: Site) -> tuple[str, str]:
    """Return the text without a statement, and the statement."""
    lines = source.splitlines(keepends=True)
    gone = lines[site.line - 1 : site.end_line]
    column = len(gone[0]) - len(gone[0].lstrip())
    rest = [" " * column + "pass\n", *lines[site.end_line :]]
    kept = [*lines[: site.line - 1], *rest]
    return "".join(kept), ast.unparse(ast.parse("".join(gone).strip()))


def holder(statement: str) -> str:
    """Return ``self.x`` of ``self.make_... = self.x.make_...``."""
    return ast.unparse(ast.parse(statement).body[0].value.value)


def marked(function: ast.FunctionDef) -> set[str]:
    """Return the attributes that are set under ``self._mark_language_model``."""
    return {
        ast.unparse(target)
        for node in ast.walk(function)
        if isinstance(node, ast.With)
        and "_mark_language_model" in ast.unparse(node.items[0].context_expr)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Assign)
        for target in inner.targets
    }


def is_equivalent(source: str, site: Site, old: str, new: str) -> str:
    """Say why two hand-ups mean the same, or nothing.

    They do where they are the same text; where the old one reads a local variable that
    the same function also stores in the attribute that the new one reads; where the old
    one reads ``get_language_model()`` and the new one what that method returns by
    default, the attribute that is marked; and where the old one reads one level deeper
    (``self.x.model``) what ``self.x`` hands up itself, as the proof of the new one has
    just shown.
    """
    was, now = holder(old), holder(new)
    if was == now:
        return "the same line"
    tree = ast.parse(source)
    function = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= site.line <= (node.end_lineno or 0)
    )
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            names = [ast.unparse(t) for t in node.targets]
            right = ast.unparse(node.value)
            if (now in names and right == was) or {was, now} <= set(names):
                return "a local variable that the attribute holds"
            got = right == "self.get_language_model()" and was in names
            if got and now in marked(function):
                return "get_language_model() returns what is marked as that model"
    if was == f"{now}.model":
        return "the backbone, one level deeper"
    return ""


def outcome(session: Session, site: Site) -> tuple[str, str]:
    """Delete one statement; return what happened and the words for it."""
    source = session.index.roots[0].tree.read(site.file).decode()
    text, old = without(source, site)
    fresh = session.overlaid(site.file, text.encode())
    before = {f.fingerprint for f in session.run().findings if f.edits}
    fixable = [
        f for f in fresh.run().findings if f.edits and f.fingerprint not in before
    ]
    if fixable:
        (patch,) = fresh.patches(fixable)
        assert isinstance(patch, FilePatch), (site, patch)
        assert patch.file == site.file
        new = f"{fixable[0].edits[0].target} = {fixable[0].edits[0].value}"
        if not site.is_hand_up:
            return "another line", f"{old} -> {new}"
        why = is_equivalent(source, site, old, new)
        return ("restored", why) if why else ("another line", f"{old} -> {new}")
    known = {f.fingerprint for f in session.run().findings}
    for finding in fresh.run().findings:
        if finding.status in DEFECTS and finding.fingerprint not in known:
            return finding.status.value, finding.message
    for finding in fresh.run().findings:
        if (finding.file, finding.class_name) == (site.file, site.class_name):
            return finding.status.value, finding.message
    return "silent", ""


def test_each_delegation_comes_back(release, record_property):
    session = Session(
        DirectoryTree(release(VERSION)), codemods=(DelegateIntermediateTensors(),)
    )
    sites = statements(session)
    hand_ups = [site for site in sites if site.is_hand_up]
    assert len(hand_ups) > 120

    counts: Counter[str] = Counter()
    misses: list[str] = []
    definitions: Counter[str] = Counter()
    for site in sites:
        what, words = outcome(session, site)
        assert what != "another line", (site, words)
        assert what != "silent", site
        if not site.is_hand_up:
            definitions[what] += 1
            continue
        counts[what] += 1
        if what != "restored":
            misses.append(f"{what}: {site.file}:{site.line} {site.class_name}: {words}")
        elif words != "the same line":
            misses.append(f"restored as {words}: {site.file}:{site.line}")

    judged = sum(counts.values()) - counts["exempt"]
    rate = counts["restored"] / judged
    restored = f"{counts['restored']} of {judged} hand-ups of {VERSION} ({rate:.1%})"
    record_property("restored", f"{restored}; drafts, exempt: {counts['exempt']}")
    record_property("definitions by the factory, never restored", dict(definitions))
    record_property("not by the same line", "\n".join(misses))
    assert rate >= FLOOR
