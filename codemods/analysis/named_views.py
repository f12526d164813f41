"""Views that have a name, or need none: who gives it, and what it stands for."""

from __future__ import annotations

from vlmend.codemods.analysis.architecture_names import named_class
from vlmend.codemods.analysis.declared_vs_built import compare
from vlmend.codemods.analysis.inner_classes import given_names
from vlmend.codemods.analysis.name_roads import name_roads
from vlmend.codemods.analysis.text_configs import Unknown
from vlmend.codemods.analysis.unnamed_views import (
    encoder,
    named_by_some_releases,
    nameless,
    unregistered,
)
from vlmend.codemods.analysis.values import (
    Constant,
    Items,
    Member,
    Value,
    bare,
    describe,
    options,
)
from vlmend.codemods.analysis.view_cases import ViewCase
from vlmend.codemods.analysis.view_configs import ViewConfig, view_config
from vlmend.codemods.analysis.view_names import Filled, Mapping, filled_name
from vlmend.codemods.analysis.view_verdicts import ViewVerdict
from vlmend.codemods.analysis.whole_config import is_own_configuration, is_whole
from vlmend.codemods.codemod import Status


def given_by_the_call(case: ViewCase) -> ViewVerdict | None:
    """The call gives a name; say what it stands for."""
    given = case.view.architectures
    if given is None or _is_passed_on(given):
        return None
    index, view = case.index, case.view
    names = given_names(given)
    who = f"{view.inner.name} itself" if view.inner is not None else "the call"
    said = f"{who} gives {' or '.join(names) or describe(given)}"
    chain = [case.here]
    for name in names:
        named = named_class(index, name)
        chain += named.evidence
        if named.refs and view.built is not None and view.built not in named.refs:
            chain += compare(index, name, view.built, case.ref).evidence
    chain = list(dict.fromkeys(chain))
    return case.says(Status.SATISFIED, said, tuple(chain), given=bool(names))


def keeps_the_whole_config(case: ViewCase) -> ViewVerdict | None:
    """The model's own config stays, and with it the wrapper's own names."""
    view = case.view
    if view.config is not None and not is_whole(view.config):
        return None
    if not view.by_registry:
        said = "the view keeps the wrapper's own architecture names"
        return case.says(Status.SATISFIED, said, (case.here,))
    if view.config is None and not is_own_configuration(view.narrowed):
        said = (
            "the configuration that it is built with is made elsewhere: "
            f"{describe(view.narrowed) if view.narrowed is not None else '?'}"
        )
        return case.says(Status.EXEMPT, said, (case.here,))
    said = (
        "the registry looks the inner model up by the wrapper's own names, so that "
        f"{case.ref.name} builds itself"
    )
    whole = view.config or _own_config(view.narrowed)
    config = (
        view_config(case.index, case.ref, whole)
        if whole is not None
        else ViewConfig(Unknown("no config"), Unknown("no config"))
    )
    filled = Filled(Mapping.UNMAPPED, "", said)
    chain = (case.here, *config.pin.evidence)
    return nameless(case, config, filled, chain, certain=True)


def unchecked_in_this_tree(case: ViewCase) -> ViewVerdict | None:
    """Views are not checked in this tree; say which name it would have."""
    view = case.view
    if not case.contract.guarded or view.by_registry:
        return None
    said = "views are not checked in this tree, and the class is called directly"
    chain = (*case.contract.guard, *case.chain)
    if view.built is not None and not view.tower:
        roads = name_roads(case.index, view.built, case.config)
        if roads.agreed is not None:
            said += f" ({roads.listed()})"
            chain = (*chain, *roads.evidence)
    return case.says(Status.SATISFIED, said, chain)


def filled_by_the_mapping(case: ViewCase) -> ViewVerdict | None:
    """Transformers' mapping has a name for the view."""
    filled = filled_name(case.config)
    if filled.mapping is Mapping.UNMAPPED:
        return None
    index, ref, contract = case.index, case.ref, case.contract
    chain = case.chain
    if filled.mapping is Mapping.DISAGREES:
        chain = (*chain, *case.config.floor.evidence)
        said = f"{filled.why}: whether the view has a name depends on the release"
        return named_by_some_releases(case, said, chain)
    note = f" ({filled.note})" if filled.note else ""
    if contract.fills is None:
        said = (
            f"Transformers maps the view to {filled.name}{note}; this tree fills "
            "no name in, which its contract note says once for all"
        )
        return case.says(Status.EXEMPT, said, chain)
    named = named_class(index, filled.name)
    chain = (*chain, contract.fills, *named.evidence)
    known = f"with_hf_config fills {filled.name} in{note}"
    is_registry, pp = case.view.by_registry, index.is_pipeline_parallel(ref)
    if not is_registry and not pp:
        said = f"{known}, and {ref.name} does not run in pipeline parallel"
        return case.says(Status.SATISFIED, said, chain)
    if not named.refs or (is_registry and named.converted):
        return unregistered(case, filled, chain)
    if contract.guarded or not pp or named.pipeline_parallel(index):
        said = f"{known}, which is {named.refs[0].name}"
        return case.says(Status.SATISFIED, said, chain, name=filled.name)
    outcome = (
        f"{known}; that resolves to {named.refs[0].name}, which does not support "
        "pipeline parallelism: NotImplementedError at pipeline-parallel size 2 and "
        "above"
    )
    return encoder(case, (*chain, *contract.without_pp), outcome)


def passes_names_on(case: ViewCase) -> ViewVerdict | None:
    """The call hands on whatever names the config has (``config.architectures``)."""
    if case.view.architectures is None:
        return None
    said = f"whether {describe(case.view.architectures)} has a name to pass on"
    return case.says(Status.UNPROVEN, said, case.chain)


def _is_passed_on(value: Value) -> bool:
    return not any(
        isinstance(bare(option), Items | Constant) for option in options(bare(value))
    )


def _own_config(narrowed: Value | None) -> Value | None:
    if narrowed is None:
        return None
    return Member(Member(bare(narrowed), "model_config"), "hf_config")
