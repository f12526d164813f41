"""forward-kwargs: runner calls bind, and what forward takes reaches the inner model.

Read :meth:`ForwardKwargs.judge` first: it lists, in order, everything that can be said
about a class. The rules themselves are in ``analysis/forward_rules.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import ClassVar

from vlmend.codemods.analysis.findings import exempt_because, finding_about
from vlmend.codemods.analysis.forward_contract import forward_notes
from vlmend.codemods.analysis.forward_groups import Outcome, Sound, group_by_forward
from vlmend.codemods.analysis.forward_repairs import edits_for
from vlmend.codemods.analysis.forward_rules import (
    breaches,
    requires,
    swallowed_because,
    unpacks_nothing,
)
from vlmend.codemods.analysis.forwards import (
    FORWARD,
    TENSORS,
    Forward,
    forward_of,
    inner_calls,
)
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.reach import binding, only_drafted, roles
from vlmend.codemods.analysis.roles import declined
from vlmend.codemods.analysis.runner_calls import Role
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import ContractNote, Evidence, Finding, Status


class ForwardKwargs:
    """Every runner call binds, and what `forward` takes reaches the inner model.

    ## The contract

    Runners call `model(...)` by keyword. Target runners pass `input_ids`, `positions`,
    `intermediate_tensors` and `inputs_embeds`, and to some models more. Draft runners
    pass no `intermediate_tensors` at all, and one passes only `input_ids` and
    `positions`. A wrapper has to take what it is passed and hand it to its inner model:

    ```python
    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: object,
    ) -> torch.Tensor | IntermediateTensors:
        return self.language_model.model(
            input_ids, positions, intermediate_tensors, inputs_embeds=inputs_embeds
        )
    ```

    Nothing in vLLM notices when it does not: `supports_pp()` is content with any
    `**kwargs`, and the missing default only fails for the runner that relies on it.

    ## What is judged

    For each registered or pipeline-parallel class, the `forward` that really runs:

    | rule | status |
    |---|---|
    | it *drops* `intermediate_tensors` that its inner call makes use of | `fixable` |
    | it *does not take* what target runners pass and its inner call does | `fixable` |
    | it *requires* `intermediate_tensors`, and a runner leaves them out | `fixable` |
    | it *requires* them, and every runner that reaches it passes them | `review` |
    | it *refuses* what a target runner passes to every model | `blocked` |
    | a multimodal forward has no `**kwargs`, and a runner passes more | `fixable` |
    | a multimodal forward has no `**kwargs` | `review` |
    | it *swallows* `**kwargs`, and nothing behind its inner call refuses | `review` |

    The runners' calls are read from the tree, with their keywords and the conditions
    these stand under, and bound to signatures as Python binds them; a finding carries
    the call and the text of the `TypeError`. `vlmend explain --runner-calls` prints
    them all: no runner passes `kv_caches` or `attn_metadata`, whatever a review says.

    ## What is left alone

    - `**kwargs` that end in a wrapper whose inner model would refuse them: most
      backbones do, and passing them on would break a working model.
    - Drafts of speculative decoding, unless no draft runner could call them.
    - Classes whose `__new__` returns an object of another class, and base classes that
      are neither registered nor built.
    - What cannot be followed is `unproven`, with the fact that is missing.

    A base class is fixed once; the classes that inherit its `forward` are its heirs.

    Upstream: #50777 (Gemma3Model), #23815 (GptOss).
    """

    id: ClassVar[str] = "forward-kwargs"
    summary: ClassVar[str] = (
        "every runner call binds to forward, and what it takes reaches the inner model"
    )

    def judge(self, index: ModelIndex) -> Iterator[Finding]:
        """Yield one finding for every registered or pipeline-parallel class."""
        yield from self.judge_classes(index, index.model_classes)

    def demands(self, index: ModelIndex) -> Iterator[ContractNote]:
        """Say what the runners of this tree pass, and how it writes parameters."""
        return forward_notes(index)

    def judge_classes(
        self, index: ModelIndex, refs: Iterable[ClassRef]
    ) -> Iterator[Finding]:
        """Yield the findings of some classes; those that share a forward together."""
        groups: dict[ClassRef, list[ClassRef]] = {}
        nothing: tuple[Finding, ...] = ()
        for ref in refs:
            found = index.find_method(ref, FORWARD)
            groups.setdefault(ref if found is None else found[0], []).append(ref)
        for owner, group in groups.items():
            yield from index.remember(
                ("forwards", tuple(group)),
                partial(self._judge_group, index, group),
                on_cycle=nothing,
                home=owner.module,
            )

    def _judge_group(
        self, index: ModelIndex, group: list[ClassRef]
    ) -> tuple[Finding, ...]:
        """Judge the classes that run one forward."""
        outcomes: list[Outcome | Sound] = []
        for ref in group:
            sound = index.remember(
                ("sound forward", ref),
                partial(self._sound, index, ref),
                on_cycle=None,
                home=ref.module,
            )
            # A breach goes into syntax trees, which are not kept between runs.
            outcomes.append(sound or self._at_fault(index, ref))
        return tuple(
            outcome.finding
            if isinstance(outcome, Sound)
            else self._breach(index, outcome)
            for outcome in group_by_forward(index, outcomes)
        )

    def _sound(self, index: ModelIndex, ref: ClassRef) -> Sound | None:
        outcome = self._judge_class(index, ref)
        return outcome if isinstance(outcome, Sound) else None

    def _at_fault(self, index: ModelIndex, ref: ClassRef) -> Outcome:
        outcome = self._judge_class(index, ref)
        assert isinstance(outcome, Outcome)
        return outcome

    def _judge_class(self, index: ModelIndex, ref: ClassRef) -> Outcome | Sound:
        forward = forward_of(index, ref)
        if forward is None:
            return Sound(ref, ref, self._unknown(index, ref))
        reason = declined(index, ref) or only_drafted(index, ref, forward)
        if reason is None:
            found = tuple(breaches(index, ref, forward))
            if not found:
                fine = self._satisfied(index, ref, forward)
                return Sound(ref, forward.owner, fine)
            return Outcome(ref, forward, found)
        # A draft is called by draft runners alone; what it may not do is to require
        # tensors that none of them passes.
        found = tuple(unpacks_nothing(index, ref, forward))
        if roles(index, ref) == frozenset({Role.DRAFT}):
            found = (*requires(index, ref, forward), *found)
        if not found:
            return Sound(
                ref, forward.owner, exempt_because(index, self.id, ref, reason)
            )
        return Outcome(ref, forward, found)

    def _breach(self, index: ModelIndex, outcome: Outcome) -> Finding:
        worst = outcome.breaches[0]
        edits = edits_for(index, outcome)
        return finding_about(
            index,
            self.id,
            outcome.ref,
            worst.status,
            worst.message,
            worst.evidence,
            (outcome.forward.file, worst.line),
            shape=worst.shape,
            heirs=tuple(outcome.heirs),
            edits=edits,
        )

    def _satisfied(self, index: ModelIndex, ref: ClassRef, forward: Forward) -> Finding:
        chain: list[Evidence] = [forward.cite()]
        bound = binding(index, ref, forward)
        said = [f"{bound} runner calls of this tree bind to it"]
        if bound == 1:
            said = ["1 runner call of this tree binds to it"]
        if not bound:
            said = [f"no runner of this tree calls {ref.name} itself"]
        for call in inner_calls(index, ref):
            if call.names(TENSORS):
                chain.append(call.cite(f"hands {TENSORS} to {call.text}"))
                said.append(f"it hands {TENSORS} on")
                break
        ended = swallowed_because(index, ref, forward)
        if ended is not None:
            said.append(ended[0])
            chain += ended[1]
        message = f"{ref.name}.forward: {'; '.join(said)}."
        return finding_about(
            index,
            self.id,
            ref,
            Status.SATISFIED,
            message,
            tuple(chain),
            (forward.file, forward.line),
        )

    def _unknown(self, index: ModelIndex, ref: ClassRef) -> Finding:
        line = index.class_of(ref).line
        said = f"no class of the tree in the MRO of {ref.name} has a forward"
        here = Evidence(index.source_kind(ref.module), index.file_of(ref), line, said)
        return exempt_because(index, self.id, ref, here)
