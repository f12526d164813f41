"""explicit-architectures: the view that an inner model gets has a name that fits.

Read :meth:`ExplicitArchitectures._judge_view` first: it lists, in order, everything
that can be said about one view.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from vlmend.codemods.analysis.architecture_names import named_class
from vlmend.codemods.analysis.architectures_contract import (
    ArchitecturesContract,
    architectures_contract,
)
from vlmend.codemods.analysis.declared_vs_built import compare
from vlmend.codemods.analysis.given_elsewhere import assigned_name
from vlmend.codemods.analysis.inner_classes import given_names
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.moved_config import moved_config
from vlmend.codemods.analysis.name_roads import Road, RoadName, Roads, name_roads
from vlmend.codemods.analysis.narrowing import Narrowing, narrowings
from vlmend.codemods.analysis.precedents import config_key, precedents
from vlmend.codemods.analysis.roles import abstract_base, dispatcher
from vlmend.codemods.analysis.text_configs import TextConfig, Unknown
from vlmend.codemods.analysis.values import (
    ClassRef,
    Constant,
    Items,
    Member,
    Value,
    bare,
    describe,
    options,
)
from vlmend.codemods.analysis.view_configs import ViewConfig, view_config
from vlmend.codemods.analysis.view_names import Filled, Mapping, filled_name
from vlmend.codemods.analysis.view_verdicts import ViewVerdict, group_by_site, told
from vlmend.codemods.analysis.whole_config import (
    is_own_configuration,
    is_whole,
    narrowing_expression,
    tolerates_narrowing,
)
from vlmend.codemods.codemod import Evidence, Finding, Status
from vlmend.codemods.rewriting.add_architectures import AddArchitectures


class ExplicitArchitectures:
    """The view that an inner model is built with names its architecture.

    ## The contract

    A wrapper builds its language model with a view of the configuration:

    ```python
    self.language_model = Qwen3LLMForCausalLM(
        vllm_config=vllm_config.with_hf_config(
            config.text_config, architectures=["Qwen3ForCausalLM"]
        ),
    )
    ```

    Making the view checks it, and the check looks at its architecture names. Text
    configs rarely have any. Since 0.20 `with_hf_config` fills a missing name in where
    Transformers maps the `model_type` to a causal language model; where it does not,
    the view has no name at all. Then the model fails to start on CPU (`IndexError`) and
    at pipeline-parallel size 2 and above (`ValueError`), while one GPU never notices. A
    name that resolves to a class without pipeline parallelism ends in
    `NotImplementedError` there. Since 0.31 views are not checked;
    `init_vllm_registered_model` needs a name in every release, because it looks the
    class up by it. vlmend reads from the tree which of this holds.

    ## What proves a fix

    1. The config class of the view is known and fixed: by the annotation, the
       processing info, Transformers' or vLLM's own config registry. The checkpoint
       cannot choose another one.
    2. Nothing names the view: not the call, not an assignment before it, not the config
       class, not Transformers' mapping, neither in the release that the tree is tested
       with nor in the oldest that it allows.
    3. Every road to the name is tried: the registration of the inner class or of its
       nearest ancestor, the registered model that builds its backbone, the `model_type`
       of an ancestor of its text config. Roads that end at different classes prove
       nothing. One indirect road alone is for `review`.
    4. Whoever looks a capability up by the name finds what the built class has.
    5. Where the fix narrows what an inner class used to get whole, every config field
       that the class and its backbone read is in the text config too.

    A wrapper that hands its whole configuration to an inner class which narrows it
    itself, without a name, is mended in the wrapper.

    ## What is left alone

    - A config that the checkpoint chooses (`AutoConfig`, `CONFIG_MAPPING`, code of its
      own): a name would be a guess. Upstream had to take such guesses out again
      (#23268, #39293, #28101).
    - Calls without a name that some line of the tree makes sound; the line is cited.
    - Encoders (`review`): the wrapper's own name is what a sibling gives its encoder,
      if the tree has one, but nobody's run has shown that it is needed.

    Classes that make no view get no finding.

    Upstream: #43272 (Qwen3-VL), #53699 (Cosmos3-Edge).
    """

    id: ClassVar[str] = "explicit-architectures"
    summary: ClassVar[str] = (
        "the config view that an inner model is built with names its architecture"
    )

    def judge(self, index: ModelIndex) -> Iterator[Finding]:
        """Yield a finding for every class of the target that makes a view."""
        if architectures_contract(index).view is None:
            return
        for outcome in group_by_site(self.verdicts(index)):
            yield told(index, self.id, outcome)

    def verdicts(self, index: ModelIndex) -> dict[ClassRef, list[ViewVerdict]]:
        """Return what is said of every view of every class, before it is summed up."""
        verdicts: dict[ClassRef, list[ViewVerdict]] = {}
        nothing: list[ViewVerdict] = []
        for ref in index.model_classes:
            found = index.remember(
                ("views", ref),
                partial(self._judge_class, index, ref),
                on_cycle=nothing,
                home=ref.module,
            )
            if found:
                verdicts[ref] = found
        return verdicts

    def _judge_class(self, index: ModelIndex, ref: ClassRef) -> list[ViewVerdict]:
        """Judge every view that a class makes."""
        found = narrowings(index, ref)
        if not found:
            return []
        reason = abstract_base(index, ref) or dispatcher(index, ref)
        if reason is not None:
            said = reason.statement
            return [ViewVerdict(ref, v, Status.EXEMPT, said, (reason,)) for v in found]
        contract = architectures_contract(index)
        return [self._judge_view(index, contract, ref, view) for view in found]

    def _judge_view(
        self,
        index: ModelIndex,
        contract: ArchitecturesContract,
        ref: ClassRef,
        view: Narrowing,
    ) -> ViewVerdict:
        """Say everything that can be said about one view, in this order."""
        here = _made_here(index, view)
        if view.architectures is not None and not _is_passed_on(view.architectures):
            return self._given(index, ref, view, here)
        if is_whole(view.config) or view.config is None:
            return self._whole(index, contract, ref, view, here)
        config = view_config(index, ref, view.config, view.built, tower=view.tower)
        if config.given is not None:
            said = f"the view before it gives {describe(config.given)}"
            return ViewVerdict(ref, view, Status.SATISFIED, said, (here,))
        assigned = assigned_name(index, ref, view)
        if assigned is not None and assigned.always:
            said = assigned.evidence.statement
            return ViewVerdict(
                ref, view, Status.SATISFIED, said, (assigned.evidence, here)
            )
        pin = config.pin
        chain: tuple[Evidence, ...] = (here, *pin.evidence)
        if isinstance(pin, TextConfig) and (
            names := (pin.default_architectures or pin.shadowed_architectures)
        ):
            said = f"{pin.class_name} itself says {' or '.join(names)}"
            return ViewVerdict(ref, view, Status.SATISFIED, said, chain)
        is_default_judged = view.tower and not contract.guarded
        if isinstance(pin, TextConfig) and pin.dynamic and not is_default_judged:
            reason = pin.reason.statement if pin.reason is not None else "it is dynamic"
            said = f"the checkpoint chooses the config: {reason}"
            return ViewVerdict(ref, view, Status.EXEMPT, said, chain)
        if isinstance(pin, Unknown) and pin.open:
            said = f"the checkpoint chooses the config: {pin.reason}"
            return ViewVerdict(ref, view, Status.EXEMPT, said, chain)
        if contract.guarded and not view.by_registry:
            return self._guarded(index, contract, ref, view, config, chain)
        if isinstance(pin, Unknown):
            said = f"which config the view is made of ({pin.reason})"
            return ViewVerdict(ref, view, Status.UNPROVEN, said, chain)
        filled = filled_name(config)
        if filled.mapping is not Mapping.UNMAPPED:
            return self._filled(index, contract, ref, view, config, filled, chain)
        if view.tower:
            return self._tower(
                index, ref, view, (*chain, *contract.failures), contract.outcome()
            )
        if view.architectures is not None and _is_passed_on(view.architectures):
            said = f"whether {describe(view.architectures)} has a name to pass on"
            return ViewVerdict(ref, view, Status.UNPROVEN, said, chain)
        if assigned is not None:
            said = f"{assigned.evidence.statement}, but only under a condition"
            chain = (*chain, assigned.evidence)
            return ViewVerdict(ref, view, Status.UNPROVEN, said, chain)
        return self._unnamed(index, contract, ref, view, config, filled, chain)

    # -- sound views ----------------------------------------------------------------

    def _given(
        self,
        index: ModelIndex,
        ref: ClassRef,
        view: Narrowing,
        here: Evidence,
    ) -> ViewVerdict:
        """The call gives a name; say what it stands for."""
        names = given_names(view.architectures)
        given = describe(view.architectures) if view.architectures else ""
        who = f"{view.inner.name} itself" if view.inner is not None else "the call"
        said = f"{who} gives {' or '.join(names) or given}"
        chain = [here]
        for name in names:
            named = named_class(index, name)
            chain += named.evidence
            if named.refs and view.built is not None and view.built not in named.refs:
                chain += compare(index, name, view.built, ref).evidence
        chain = list(dict.fromkeys(chain))
        return ViewVerdict(
            ref, view, Status.SATISFIED, said, tuple(chain), given=bool(names)
        )

    def _whole(
        self,
        index: ModelIndex,
        contract: ArchitecturesContract,
        ref: ClassRef,
        view: Narrowing,
        here: Evidence,
    ) -> ViewVerdict:
        """The model's own config stays, and with it the wrapper's own names."""
        if not view.by_registry:
            said = "the view keeps the wrapper's own architecture names"
            return ViewVerdict(ref, view, Status.SATISFIED, said, (here,))
        if view.config is None and not is_own_configuration(view.narrowed):
            said = (
                "the configuration that it is built with is made elsewhere: "
                f"{describe(view.narrowed) if view.narrowed is not None else '?'}"
            )
            return ViewVerdict(ref, view, Status.EXEMPT, said, (here,))
        said = (
            "the registry looks the inner model up by the wrapper's own names, so that "
            f"{ref.name} builds itself"
        )
        whole = view.config or _own_config(view.narrowed)
        config = (
            view_config(index, ref, whole)
            if whole is not None
            else ViewConfig(Unknown("no config"), Unknown("no config"))
        )
        filled = Filled(Mapping.UNMAPPED, "", said)
        chain = (here, *config.pin.evidence)
        return self._unnamed(
            index, contract, ref, view, config, filled, chain, certain=True
        )

    def _guarded(
        self,
        index: ModelIndex,
        contract: ArchitecturesContract,
        ref: ClassRef,
        view: Narrowing,
        config: ViewConfig,
        chain: tuple[Evidence, ...],
    ) -> ViewVerdict:
        """Views are not checked in this tree; say which name it would have."""
        said = "views are not checked in this tree, and the class is called directly"
        chain = (*contract.guard, *chain)
        if view.built is not None and not view.tower:
            roads = name_roads(index, view.built, config)
            if roads.agreed is not None:
                said += f" ({roads.listed()})"
                chain = (*chain, *roads.evidence)
        return ViewVerdict(ref, view, Status.SATISFIED, said, chain)

    def _filled(
        self,
        index: ModelIndex,
        contract: ArchitecturesContract,
        ref: ClassRef,
        view: Narrowing,
        config: ViewConfig,
        filled: Filled,
        chain: tuple[Evidence, ...],
    ) -> ViewVerdict:
        """Transformers' mapping has a name for the view."""
        if filled.mapping is Mapping.DISAGREES:
            chain = (*chain, *config.floor.evidence)
            said = f"{filled.why}: whether the view has a name depends on the release"
            return self._by_release(index, ref, view, config, said, chain)
        note = f" ({filled.note})" if filled.note else ""
        if contract.fills is None:
            said = (
                f"Transformers maps the view to {filled.name}{note}; this tree fills "
                "no name in, which its contract note says once for all"
            )
            return ViewVerdict(ref, view, Status.EXEMPT, said, chain)
        named = named_class(index, filled.name)
        chain = (*chain, contract.fills, *named.evidence)
        known = f"with_hf_config fills {filled.name} in{note}"
        pp = index.is_pipeline_parallel(ref)
        if not view.by_registry and not pp:
            said = f"{known}, and {ref.name} does not run in pipeline parallel"
            return ViewVerdict(ref, view, Status.SATISFIED, said, chain)
        if not named.refs or (view.by_registry and named.converted):
            return self._unregistered(index, ref, view, config, filled, chain)
        if contract.guarded or not pp or named.pipeline_parallel(index):
            said = f"{known}, which is {named.refs[0].name}"
            return ViewVerdict(
                ref, view, Status.SATISFIED, said, chain, name=filled.name
            )
        outcome = (
            f"{known}; that resolves to {named.refs[0].name}, which does not support "
            "pipeline parallelism: NotImplementedError at pipeline-parallel size 2 and "
            "above"
        )
        return self._tower(index, ref, view, (*chain, *contract.without_pp), outcome)

    # -- views that lack a name -----------------------------------------------------

    def _unregistered(
        self,
        index: ModelIndex,
        ref: ClassRef,
        view: Narrowing,
        config: ViewConfig,
        filled: Filled,
        chain: tuple[Evidence, ...],
    ) -> ViewVerdict:
        """The name that is filled in is none of vLLM's own."""
        what = (
            f"with_hf_config fills {filled.name} in, which is not registered: whether "
            "the Transformers backend can load it"
        )
        roads = self._roads(index, view, config)
        chain = (*chain, *roads.evidence)
        agreed = roads.agreed
        if agreed is None or not view.by_registry:
            return ViewVerdict(ref, view, Status.UNPROVEN, what, chain)
        compared = compare(index, agreed.name, None, ref)
        if compared.mismatch:
            said = f"{what}; {compared.mismatch}"
            return ViewVerdict(ref, view, Status.UNPROVEN, said, chain)
        said = (
            f"with_hf_config fills {filled.name} in, which is not registered; "
            f"{roads.listed()}"
        )
        return ViewVerdict(
            ref,
            view,
            Status.REVIEW,
            said,
            (*chain, *compared.evidence),
            name=agreed.name,
            edit=_add(view, agreed.name),
        )

    def _by_release(
        self,
        index: ModelIndex,
        ref: ClassRef,
        view: Narrowing,
        config: ViewConfig,
        said: str,
        chain: tuple[Evidence, ...],
    ) -> ViewVerdict:
        """Only some of the allowed releases fill a name in; one in the call settles."""
        roads = self._roads(index, view, config)
        agreed = roads.agreed
        chain = (*chain, *roads.evidence)
        if agreed is None or view.tower:
            return ViewVerdict(ref, view, Status.REVIEW, said, chain)
        compared = compare(index, agreed.name, view.built, ref)
        chain = (*chain, *compared.evidence)
        said += f"; {roads.listed()}"
        if compared.mismatch:
            said += f"; {compared.mismatch}"
        return ViewVerdict(
            ref,
            view,
            Status.REVIEW,
            said,
            chain,
            name=agreed.name,
            edit=_add(view, agreed.name),
        )

    def _tower(
        self,
        index: ModelIndex,
        ref: ClassRef,
        view: Narrowing,
        chain: tuple[Evidence, ...],
        outcome: str,
    ) -> ViewVerdict:
        """An encoder's view runs through the same check; nobody has shown it fail."""
        shown = [one for one in precedents(index) if one.tower and one.own]
        chain = (*chain, *(one.evidence for one in shown))
        names = index.architectures(ref)
        said = f"by the tree's own rules, {outcome}. No run is known to have shown it"
        edit: AddArchitectures | None = None
        if shown and names and view.tower:
            sibling = shown[0].wrapper.name
            said += (
                f"; {sibling} gives its encoder its own name, which passes the check"
            )
            edit = _add(view, names[0])
        return ViewVerdict(
            ref,
            view,
            Status.REVIEW,
            said,
            chain,
            name=names[0] if edit is not None else "",
            edit=edit,
        )

    def _unnamed(
        self,
        index: ModelIndex,
        contract: ArchitecturesContract,
        ref: ClassRef,
        view: Narrowing,
        config: ViewConfig,
        filled: Filled,
        chain: tuple[Evidence, ...],
        *,
        certain: bool = False,
    ) -> ViewVerdict:
        """Nothing in the tree names the view: propose what every road agrees on."""
        roads = self._roads(index, view, config)
        chain = (*chain, *roads.evidence)
        if not view.by_registry:
            chain = (*chain, *contract.failures)
        cause = f"{filled.why}{f' ({filled.note})' if filled.note else ''}"
        agreed = roads.agreed
        if agreed is None:
            if roads.found:
                said = f"{cause}; the roads to its name disagree: {roads.listed()}"
            elif view.by_registry and not certain:
                said = f"{cause}; whether a checkpoint's config names the model"
            else:
                said = f"{cause}; which name it should have ({'; '.join(roads.tried)})"
            return ViewVerdict(ref, view, Status.UNPROVEN, said, chain)
        compared = compare(index, agreed.name, view.built, ref)
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
            edit = _narrow(index, ref, view, agreed.name)
        if isinstance(edit, str):
            return ViewVerdict(ref, view, Status.UNPROVEN, f"{cause}; {edit}", chain)
        if not _settled(roads, view, certain=certain):
            doubts.append(
                "no second road leads there"
                if not view.by_registry or certain
                else "a checkpoint's own config may name another"
            )
        outcome = (
            "the registry finds no class" if view.by_registry else contract.outcome()
        )
        said = f"{cause}: {outcome}. {_capital(roads.listed())}"
        if doubts:
            said += f"; {'; '.join(doubts)}"
        return ViewVerdict(
            ref,
            view,
            Status.REVIEW if doubts else Status.FIXABLE,
            said,
            chain,
            name=agreed.name,
            edit=edit,
        )

    def _roads(self, index: ModelIndex, view: Narrowing, config: ViewConfig) -> Roads:
        """Try every road; siblings with the very config class count as one more."""
        siblings: dict[str, RoadName] = {}
        pin = config.pin
        if view.by_registry and isinstance(pin, TextConfig) and not pin.dynamic:
            for one in precedents(index):
                if one.config == config_key(pin) and not one.tower:
                    named = named_class(index, one.name)
                    siblings.setdefault(
                        one.name,
                        RoadName(
                            Road.PRECEDENT,
                            one.name,
                            named.refs,
                            (one.evidence, *named.evidence),
                        ),
                    )
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


def _is_passed_on(value: Value) -> bool:
    """Say whether names are passed on from the config (``config.architectures``)."""
    return not any(
        isinstance(bare(option), Items | Constant) for option in options(bare(value))
    )


def _own_config(narrowed: Value | None) -> Value | None:
    if narrowed is None:
        return None
    return Member(Member(bare(narrowed), "model_config"), "hf_config")


def _made_here(index: ModelIndex, view: Narrowing) -> Evidence:
    site = view.site
    kind = index.source_kind(site.module)
    what = "the model that the registry finds" if view.by_registry else "it"
    if view.built is not None:
        what = view.built.name
    said = f"the view that {what} is built with is made here"
    return Evidence(kind, site.file, site.line, said)


def _add(view: Narrowing, name: str) -> AddArchitectures:
    return AddArchitectures(
        view.site.file,
        ast.unparse(view.node.func),
        view.site.line,
        view.site.column,
        name,
    )


def _narrow(
    index: ModelIndex, ref: ClassRef, view: Narrowing, name: str
) -> AddArchitectures | str:
    found = narrowing_expression(index, ref, view)
    if isinstance(found, str):
        return found
    argument, config = found
    assert view.handed is not None
    site = view.handed.site
    function = ast.unparse(view.handed.node.func)
    return AddArchitectures(
        site.file, function, site.line, site.column, name, config, argument
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
