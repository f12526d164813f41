"""delegate-intermediate-tensors: a wrapper hands up its language model's tensors.

Read :meth:`DelegateIntermediateTensors.judge` first: it lists, in order, everything
that can be said about a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from vlmend.codemods.analysis.contract import (
    HAND_UP,
    DelegationContract,
    ProtocolForm,
    delegation_contract,
)
from vlmend.codemods.analysis.delegation import (
    Missing,
    Plan,
    Refusal,
    group_by_place,
    plan_hand_up,
)
from vlmend.codemods.analysis.findings import exempt_because, finding_about
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.provision import Provision, Verdict, provision
from vlmend.codemods.analysis.roles import declined
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Finding, Status
from vlmend.codemods.rewriting.insert_assignment import InsertAssignment


class DelegateIntermediateTensors:
    """A pipeline-parallel wrapper hands up `make_empty_intermediate_tensors`.

    ## The contract

    Pipeline-parallel ranks after the first call
    `model.make_empty_intermediate_tensors`. A class with `SupportsPP` among its bases
    promises to have it. A multimodal wrapper keeps the promise with one statement in
    `__init__`, once its language model is built:

    ```python
    self.make_empty_intermediate_tensors = (
        self.language_model.make_empty_intermediate_tensors
    )
    ```

    Nothing in vLLM notices when the statement is missing: `supports_pp()` looks for
    the Protocol among the bases and at the signature of `forward`, never at the
    attribute. The model starts at pipeline-parallel size 1 and fails on rank 1. How it
    fails depends on the tree: through 0.27 the class inherits an empty method that
    returns `None`, from 0.28 on there is no attribute at all. vlmend reads from the
    tree which one it is.

    ## What proves a fix

    1. `SupportsPP` stands in the class's method resolution order.
    2. No `__init__` that really runs, no class attribute and no method provides the
       attribute. `super(X, self)` skips, conditions are followed on both sides.
    3. One attribute holds the language model; all signs that speak agree on it.
    4. Every class that this inner model can be has the attribute itself, followed to
       its definition. Where the config decides at run time, these are all text models
       that are registered as pipeline parallel; one that is broken by itself has a
       finding of its own and is named.
    5. Every other class that runs the same `__init__` can take the statement too.

    If the `__init__` belongs to a base class, the base is fixed once and the classes it
    heals are listed as heirs.

    ## What is left alone

    - Drafts of speculative decoding: their runners never call it.
    - Classes whose `__new__` returns an object of another class.
    - Base classes that are neither registered nor built.
    - A wrapper whose inner model lacks the attribute is `blocked`: there this statement
      would break start-up even without pipeline parallelism.

    Upstream: #42819 (Cohere2Vision), #28705 (DotsOCR).
    """

    id: ClassVar[str] = "delegate-intermediate-tensors"
    summary: ClassVar[str] = (
        "a wrapper hands up its language model's make_empty_intermediate_tensors"
    )

    def judge(self, index: ModelIndex) -> Iterator[Finding]:
        """Yield one finding for every pipeline-parallel class of the target."""
        contract = delegation_contract(index)
        if contract.form is ProtocolForm.ABSENT:
            return
        missing: list[Missing] = []
        for ref in index.model_classes:
            if not index.is_pipeline_parallel(ref):
                continue
            found = provision(index, ref, HAND_UP)
            if found.origin and found.verdict is not Verdict.NO:
                yield self._satisfied(index, ref, found)
            elif (reason := declined(index, ref)) is not None:
                yield exempt_because(index, self.id, ref, reason)
            elif found.origin:
                yield self._hollow(index, ref, found, contract)
            else:
                missing.append(plan_hand_up(index, ref, HAND_UP))
        for outcome in group_by_place(index, missing, HAND_UP):
            if isinstance(outcome, Plan):
                yield self._fixable(index, outcome, contract)
            else:
                yield self._refused(index, outcome, contract)

    def doubt(self, index: ModelIndex, finding: Finding) -> str:
        """Ask whether what a mended class and its heirs hand up can be followed."""
        # A base may leave it to its heirs which model they build.
        names = finding.heirs or (f"{finding.module}:{finding.class_name}",)
        for ref in index.model_classes:
            if ref.key in names and declined(index, ref) is None:
                found = provision(index, ref, HAND_UP)
                if found.verdict is not Verdict.YES:
                    return found.reason
        return ""

    def _satisfied(self, index: ModelIndex, ref: ClassRef, found: Provision) -> Finding:
        keeper = found.evidence[0]
        message = f"{keeper.statement} ({keeper.file}:{keeper.line})."
        return finding_about(
            index,
            self.id,
            ref,
            Status.SATISFIED,
            message,
            found.evidence,
            keeper.place,
        )

    def _hollow(
        self,
        index: ModelIndex,
        ref: ClassRef,
        found: Provision,
        contract: DelegationContract,
    ) -> Finding:
        """The statement is there, and hands up something that does not exist."""
        message = (
            f"{ref.name} hands up {HAND_UP}, but {found.reason}: building the model "
            f"fails or yields nothing. What would mend it: set {HAND_UP} in the inner "
            "model."
        )
        chain = (*found.evidence, *contract.evidence)
        return finding_about(
            index,
            self.id,
            ref,
            Status.BLOCKED,
            message,
            chain,
            chain[0].place,
            shape="hollow hand-up",
        )

    def _fixable(
        self, index: ModelIndex, plan: Plan, contract: DelegationContract
    ) -> Finding:
        edit = InsertAssignment(
            file=index.file_of(plan.ref),
            function="__init__",
            function_line=plan.function_line,
            after_line=plan.after_line,
            target=f"self.{HAND_UP}",
            value=f"self.{plan.attribute}.{HAND_UP}",
        )
        message = (
            f"{plan.ref.name} supports pipeline parallel but does not hand up "
            f"{HAND_UP} of self.{plan.attribute}: {contract.failure}."
        )
        return finding_about(
            index,
            self.id,
            plan.ref,
            Status.FIXABLE,
            message,
            (*plan.evidence, *contract.evidence),
            (edit.file, plan.line),
            shape=f"no hand-up from self.{plan.attribute}",
            heirs=tuple(plan.heirs),
            edits=(edit,),
        )

    def _refused(
        self, index: ModelIndex, refusal: Refusal, contract: DelegationContract
    ) -> Finding:
        opening = f"{refusal.ref.name} supports pipeline parallel but has no {HAND_UP}"
        if refusal.status is Status.BLOCKED:
            message = f"{opening}: {contract.failure}. {refusal.reason}"
        else:
            message = f"{opening} that could be found. Missing proof: {refusal.reason}"
        return finding_about(
            index,
            self.id,
            refusal.ref,
            refusal.status,
            message,
            (*refusal.evidence, *contract.evidence),
            (index.file_of(refusal.ref), refusal.line),
            shape="no hand-up",
            heirs=tuple(refusal.heirs),
        )
