"""explicit-architectures: the view that an inner model gets has a name that fits.

Read :data:`RULES` first: it lists, in order, everything that can be said about one
view. The rules that take more than a glance are in ``analysis/named_views.py`` and
``analysis/unnamed_views.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, Final

from vlmend.codemods.analysis.architectures_contract import architectures_contract
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.named_views import (
    filled_by_the_mapping,
    given_by_the_call,
    keeps_the_whole_config,
    passes_names_on,
    unchecked_in_this_tree,
)
from vlmend.codemods.analysis.narrowing import narrowings
from vlmend.codemods.analysis.roles import abstract_base, dispatcher
from vlmend.codemods.analysis.text_configs import TextConfig, Unknown
from vlmend.codemods.analysis.unnamed_views import encoder, nameless
from vlmend.codemods.analysis.values import ClassRef, describe
from vlmend.codemods.analysis.view_cases import ViewCase
from vlmend.codemods.analysis.view_names import filled_name
from vlmend.codemods.analysis.view_verdicts import ViewVerdict, group_by_site, told
from vlmend.codemods.codemod import Finding, Status


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
        return [_judge_view(ViewCase(index, contract, ref, view)) for view in found]


def _judge_view(case: ViewCase) -> ViewVerdict:
    """Say what the first rule says that has something to say."""
    return next(said for rule in RULES if (said := rule(case)) is not None)


def _given_by_the_view_before(case: ViewCase) -> ViewVerdict | None:
    """A view of a view keeps the name that the first one was given."""
    if case.config.given is None:
        return None
    said = f"the view before it gives {describe(case.config.given)}"
    return case.says(Status.SATISFIED, said, (case.here,))


def _assigned_before(case: ViewCase) -> ViewVerdict | None:
    """A name is put on the config before the view is made, whatever happens."""
    assigned = case.assigned
    if assigned is None or not assigned.always:
        return None
    chain = (assigned.evidence, case.here)
    return case.says(Status.SATISFIED, assigned.evidence.statement, chain)


def _named_by_its_class(case: ViewCase) -> ViewVerdict | None:
    """The config class has a default for ``architectures`` (Step3-VL)."""
    pin = case.pin
    if not isinstance(pin, TextConfig):
        return None
    names = pin.default_architectures or pin.shadowed_architectures
    if not names:
        return None
    said = f"{pin.class_name} itself says {' or '.join(names)}"
    return case.says(Status.SATISFIED, said, case.chain)


def _chosen_by_the_checkpoint(case: ViewCase) -> ViewVerdict | None:
    """A name for a config that the checkpoint chooses would be a guess.

    An encoder that the tree checks is judged by the config that its class declares.
    """
    pin = case.pin
    is_default_judged = case.view.tower and not case.contract.guarded
    if isinstance(pin, TextConfig) and pin.dynamic and not is_default_judged:
        why = pin.reason.statement if pin.reason is not None else "it is dynamic"
    elif isinstance(pin, Unknown) and pin.open:
        why = pin.reason
    else:
        return None
    said = f"the checkpoint chooses the config: {why}"
    return case.says(Status.EXEMPT, said, case.chain)


def _of_an_unknown_config(case: ViewCase) -> ViewVerdict | None:
    """Without the config class nothing can be said about its names."""
    if not isinstance(case.pin, Unknown):
        return None
    said = f"which config the view is made of ({case.pin.reason})"
    return case.says(Status.UNPROVEN, said, case.chain)


def _of_an_encoder(case: ViewCase) -> ViewVerdict | None:
    """No language model; its view is checked like any other all the same."""
    if not case.view.tower:
        return None
    chain = (*case.chain, *case.contract.failures)
    return encoder(case, chain, case.contract.outcome())


def _assigned_under_a_condition(case: ViewCase) -> ViewVerdict | None:
    """A name that is only put there sometimes proves nothing either way."""
    if case.assigned is None:
        return None
    evidence = case.assigned.evidence
    said = f"{evidence.statement}, but only under a condition"
    return case.says(Status.UNPROVEN, said, (*case.chain, evidence))


def _lacks_a_name(case: ViewCase) -> ViewVerdict | None:
    """Nothing names the view: the defect, mended where every road agrees."""
    return nameless(case, case.config, filled_name(case.config), case.chain)


RULES: Final[tuple[Callable[[ViewCase], ViewVerdict | None], ...]] = (
    given_by_the_call,
    keeps_the_whole_config,
    _given_by_the_view_before,
    _assigned_before,
    _named_by_its_class,
    _chosen_by_the_checkpoint,
    unchecked_in_this_tree,
    _of_an_unknown_config,
    filled_by_the_mapping,
    _of_an_encoder,
    passes_names_on,
    _assigned_under_a_condition,
    _lacks_a_name,
)
"""What can be said about a view; the first rule that says something is the last."""
