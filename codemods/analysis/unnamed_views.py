"""Views that lack a name: the defect itself, and which name would mend it."""

from __future__ import annotations

import ast

from vlmend.codemods.analysis.architecture_names import named_class
from vlmend.codemods.analysis.declared_vs_built import compare
from vlmend.codemods.analysis.moved_config import moved_config
from vlmend.codemods.analysis.name_roads import Road, RoadName, Roads, name_roads
from vlmend.codemods.analysis.narrowing import Narrowing
from vlmend.codemods.analysis.precedents import config_key, precedents
from vlmend.codemods.analysis.text_configs import TextConfig
from vlmend.codemods.analysis.view_cases import ViewCase
from vlmend.codemods.analysis.view_configs import ViewConfig
from vlmend.codemods.analysis.view_names import Filled
from vlmend.codemods.analysis.view_verdicts import ViewVerdict
from vlmend.codemods.analysis.whole_config import (
    narrowing_expression,
    tolerates_narrowing,
)
from vlmend.codemods.codemod import Evidence, Status
from vlmend.codemods.rewriting.add_architectures import AddArchitectures


def unregistered(
    case: ViewCase, filled: Filled, chain: tuple[Evidence, ...]
) -> ViewVerdict:
    """Judge a view whose filled-in name is none of vLLM's own."""
    what = (
        f"with_hf_config fills {filled.name} in, which is not registered: whether "
        "the Transformers backend can load it"
    )
    roads = _roads(case, case.config)
    chain = (*chain, *roads.evidence)
    agreed = roads.agreed
    if agreed is None or not case.view.by_registry:
        return case.says(Status.UNPROVEN, what, chain)
    compared = compare(case.index, agreed.name, None, case.ref)
    if compared.mismatch:
        return case.says(Status.UNPROVEN, f"{what}; {compared.mismatch}", chain)
    said = (
        f"with_hf_config fills {filled.name} in, which is not registered; "
        f"{roads.listed()}"
    )
    edit = _add(case.view, agreed.name)
    chain = (*chain, *compared.evidence)
    return case.says(Status.REVIEW, said, chain, name=agreed.name, edit=edit)


def named_by_some_releases(
    case: ViewCase, said: str, chain: tuple[Evidence, ...]
) -> ViewVerdict:
    """Judge a view that only some of the allowed releases fill a name in for."""
    view = case.view
    roads = _roads(case, case.config)
    agreed = roads.agreed
    chain = (*chain, *roads.evidence)
    if agreed is None or view.tower:
        return case.says(Status.REVIEW, said, chain)
    compared = compare(case.index, agreed.name, view.built, case.ref)
    chain = (*chain, *compared.evidence)
    said += f"; {roads.listed()}"
    if compared.mismatch:
        said += f"; {compared.mismatch}"
    edit = _add(view, agreed.name)
    return case.says(Status.REVIEW, said, chain, name=agreed.name, edit=edit)


def encoder(case: ViewCase, chain: tuple[Evidence, ...], outcome: str) -> ViewVerdict:
    """Judge an encoder's view, which runs through the same check as any other."""
    shown = [one for one in precedents(case.index) if one.tower and one.own]
    chain = (*chain, *(one.evidence for one in shown))
    names = case.index.architectures(case.ref)
    said = f"by the tree's own rules, {outcome}. No run is known to have shown it"
    if not (shown and names and case.view.tower):
        return case.says(Status.REVIEW, said, chain)
    sibling = shown[0].wrapper.name
    said += f"; {sibling} gives its encoder its own name, which passes the check"
    edit = _add(case.view, names[0])
    return case.says(Status.REVIEW, said, chain, name=names[0], edit=edit)


def nameless(
    case: ViewCase,
    config: ViewConfig,
    filled: Filled,
    chain: tuple[Evidence, ...],
    *,
    certain: bool = False,
) -> ViewVerdict:
    """Judge a view that nothing names: propose what every road agrees on.

    Args:
        case: the view.
        config: what it is made of.
        filled: why no name is filled in.
        chain: what is known so far.
        certain: a model that the registry looks up is known to lack a name.
    """
    index, contract, view = case.index, case.contract, case.view
    roads = _roads(case, config)
    chain = (*chain, *roads.evidence)
    if not view.by_registry:
        chain = (*chain, *contract.failures)
    cause = f"{filled.why}{f' ({filled.note})' if filled.note else ''}"
    agreed = roads.agreed
    if agreed is None:
        said = f"{cause}; {_without_agreement(roads, view, certain=certain)}"
        return case.says(Status.UNPROVEN, said, chain)
    compared = compare(index, agreed.name, view.built, case.ref)
    chain = tuple(dict.fromkeys((*chain, *compared.evidence)))
    chain += tuple(
        one.evidence
        for one in precedents(index)
        if one.name == agreed.name and one.evidence not in chain
    )
    edit: AddArchitectures | str = _add(view, agreed.name)
    doubts = [compared.mismatch] if compared.mismatch else []
    if view.rebinds and view.inner is not None:
        pin = config.pin
        assert isinstance(pin, TextConfig)
        moved = moved_config(index, view.inner, pin)
        chain = (*chain, *moved.evidence)
        if moved.missing:
            doubts.append(f"{pin.class_name} lacks {', '.join(moved.missing)}")
        if not tolerates_narrowing(view.config):
            doubts.append(f"{view.inner.name} cannot take a narrow configuration")
        edit = _narrow(case, agreed.name)
    if isinstance(edit, str):
        return case.says(Status.UNPROVEN, f"{cause}; {edit}", chain)
    if not _settled(roads, view, certain=certain):
        doubts.append(
            "no second road leads there"
            if not view.by_registry or certain
            else "a checkpoint's own config may name another"
        )
    outcome = "the registry finds no class" if view.by_registry else contract.outcome()
    said = f"{cause}: {outcome}. {_capital(roads.listed())}"
    if doubts:
        said += f"; {'; '.join(doubts)}"
    status = Status.REVIEW if doubts else Status.FIXABLE
    return case.says(status, said, chain, name=agreed.name, edit=edit)


def _without_agreement(roads: Roads, view: Narrowing, *, certain: bool) -> str:
    if roads.found:
        return f"the roads to its name disagree: {roads.listed()}"
    if view.by_registry and not certain:
        return "whether a checkpoint's config names the model"
    return f"which name it should have ({'; '.join(roads.tried)})"


def _roads(case: ViewCase, config: ViewConfig) -> Roads:
    """Try every road; siblings with the very config class count as one more."""
    index, view = case.index, case.view
    siblings: dict[str, RoadName] = {}
    pin = config.pin
    if view.by_registry and isinstance(pin, TextConfig) and not pin.dynamic:
        for one in precedents(index):
            if one.config == config_key(pin) and not one.tower:
                named = named_class(index, one.name)
                evidence = (one.evidence, *named.evidence)
                road = RoadName(Road.PRECEDENT, one.name, named.refs, evidence)
                siblings.setdefault(one.name, road)
    return name_roads(
        index, view.built, config, view.annotation, tuple(siblings.values())
    )


def _settled(roads: Roads, view: Narrowing, *, certain: bool) -> bool:
    """Say whether the roads prove a name, and not only suggest it.

    A class that is called says itself what it is. Every other road needs a second one;
    and a model that the registry looks up is only known to lack a name where it would
    be looked up by the wrapper's own.
    """
    if view.by_registry and not certain:
        return False
    if any(road.road is Road.CLASS for road in roads.found):
        return True
    return len({road.road for road in roads.found}) > 1


def _add(view: Narrowing, name: str) -> AddArchitectures:
    return AddArchitectures(
        view.site.file,
        ast.unparse(view.node.func),
        view.site.line,
        view.site.column,
        name,
    )


def _narrow(case: ViewCase, name: str) -> AddArchitectures | str:
    """Narrow the configuration where the wrapper hands it over, or say why not."""
    found = narrowing_expression(case.index, case.ref, case.view)
    if isinstance(found, str):
        return found
    argument, config = found
    assert case.view.handed is not None
    site = case.view.handed.site
    function = ast.unparse(case.view.handed.node.func)
    return AddArchitectures(
        site.file, function, site.line, site.column, name, config, argument
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
