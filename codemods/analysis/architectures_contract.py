"""What a config view without an architecture name leads to in this tree.

``vllm_config.with_hf_config(config)`` makes a view of the configuration for an inner
model. Making it runs ``VllmConfig.__post_init__`` again, and that looks at the view's
architecture names. What happens to a view that has none changed twice: since 0.20
``with_hf_config`` fills a missing name in from Transformers (upstream #38849), and
since 0.31 ``__post_init__`` leaves sub-model views alone. All of it is read from the
tree's own ``vllm/config``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.facts import FunctionNode, dotted
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.registry import REGISTRY_MODULE
from vlmend.codemods.analysis.tree_lines import TreeFile, open_file
from vlmend.codemods.codemod import ContractNote, Evidence

VLLM_CONFIG_FILES = (
    "vllm/config/vllm.py",
    "vllm/config/__init__.py",
    "vllm/config.py",
)
MODEL_CONFIG_FILES = (
    "vllm/config/model.py",
    "vllm/config/__init__.py",
    "vllm/config.py",
)
CPU_PLATFORM = "vllm/platforms/cpu.py"
REGISTRY_FILE = f"{REGISTRY_MODULE.replace('.', '/')}.py"
MAPPING = "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"


@dataclass(frozen=True, slots=True)
class ArchitecturesContract:
    """How this tree treats the architecture names of a config view.

    Attributes:
        view: the line of ``with_hf_config``; ``None`` where the tree has none.
        fills: the line that fills a missing name in, if there is one.
        guard: the lines that make a view without a name harmless for a class that is
            called directly; empty where the tree has no such guard.
        empty_on_cpu: how a view without a name fails on CPU, link by link.
        empty_on_pp: the same at pipeline-parallel size 2 and above, on any device.
        without_pp: what happens there to a name whose class is not pipeline parallel.
    """

    view: Evidence | None
    fills: Evidence | None = None
    guard: tuple[Evidence, ...] = ()
    empty_on_cpu: tuple[Evidence, ...] = ()
    empty_on_pp: tuple[Evidence, ...] = ()
    without_pp: tuple[Evidence, ...] = ()

    @property
    def guarded(self) -> bool:
        """A direct class call may be given a view without a name."""
        return bool(self.guard)

    @property
    def failures(self) -> tuple[Evidence, ...]:
        """Every link of both ways in which a view without a name fails."""
        return tuple(dict.fromkeys((*self.empty_on_cpu, *self.empty_on_pp)))

    def outcome(self) -> str:
        """Say in a clause what a view without a name does."""
        parts: list[str] = []
        if self.empty_on_cpu:
            parts.append("IndexError on CPU")
        if self.empty_on_pp:
            parts.append("ValueError at pipeline-parallel size 2 and above")
        return " and ".join(parts) or "no class can be looked up by it"


def architectures_contract(index: ModelIndex) -> ArchitecturesContract:
    """Read the contract from the tree's ``vllm/config``."""
    return index.remember(
        ("contract", "architectures"),
        lambda: _contract(index),
        on_cycle=ArchitecturesContract(None),
    )


def _contract(index: ModelIndex) -> ArchitecturesContract:
    file = open_file(index, VLLM_CONFIG_FILES, "def with_hf_config")
    node = file.function("with_hf_config") if file is not None else None
    if file is None or node is None:
        return ArchitecturesContract(None)
    view = file.cite(node.lineno, "with_hf_config makes the view of an inner model")
    models = open_file(index, MODEL_CONFIG_FILES, "def verify_with_parallel_config")
    empty_on_pp, without_pp = _at_pipeline_parallel(index, file, models)
    subscript, subscript_guard = _first_name(models)
    early = _early_return(file, node)
    guard: tuple[Evidence, ...] = ()
    if early is not None and (subscript_guard is not None or subscript is None):
        guard = tuple(line for line in (early, subscript_guard) if line is not None)
    return ArchitecturesContract(
        view,
        _fills(file, node),
        guard,
        () if guard else _on_cpu(index, models, subscript),
        () if guard else empty_on_pp,
        () if guard else without_pp,
    )


def _fills(file: TreeFile, node: FunctionNode) -> Evidence | None:
    """Find where ``with_hf_config`` names a view by Transformers' mapping."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Subscript) and dotted(inner.value) == MAPPING:
            said = (
                "with_hf_config fills a name in where it is None and the model_type "
                f"is in {MAPPING}"
            )
            return file.cite(inner.lineno, said)
    return None


def _early_return(file: TreeFile, node: FunctionNode) -> Evidence | None:
    """Find the ``return`` by which ``__post_init__`` leaves a view alone.

    The mark is whatever ``with_hf_config`` sets to ``True`` on the view's model config.
    """
    marks = {
        target.attr
        for inner in ast.walk(node)
        if isinstance(inner, ast.Assign)
        and isinstance(inner.value, ast.Constant)
        and inner.value.value is True
        for target in inner.targets
        if isinstance(target, ast.Attribute)
    }
    check = file.function("__post_init__", "VllmConfig") if marks else None
    for statement in check.body if check is not None else ():
        if not isinstance(statement, ast.If):
            continue
        tested = {
            n.attr for n in ast.walk(statement.test) if isinstance(n, ast.Attribute)
        }
        if tested & marks and isinstance(statement.body[-1], ast.Return):
            said = "__post_init__ leaves a sub-model view before anything is looked up"
            return file.cite(statement.lineno, said)
    return None


def _first_name(models: TreeFile | None) -> tuple[Evidence | None, Evidence | None]:
    """Find ``self.architectures[0]`` and the condition that guards it, if any."""
    name = "_get_transformers_backend_cls"
    node = models.function(name) if models is not None else None
    if models is None or node is None:
        return None, None
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Subscript):
            continue
        if dotted(inner.value) != "self.architectures":
            continue
        said = f"{name} takes the first of the view's names"
        used = models.cite(inner.lineno, said)
        guard = _guard_of(node, inner)
        if guard is None:
            return used, None
        said = f"{name} looks at the list before it takes the first name"
        return used, models.cite(guard, said)
    return None, None


def _guard_of(function: FunctionNode, used: ast.Subscript) -> int | None:
    """Return the line of a test of ``self.architectures`` that comes before its use."""
    for node in ast.walk(function):
        held: list[ast.expr] = []
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for position, part in enumerate(node.values):
                if any(inner is used for inner in ast.walk(part)):
                    held = node.values[:position]
        elif isinstance(node, ast.If | ast.IfExp):
            body = node.body if isinstance(node.body, list) else [node.body]
            if any(inner is used for part in body for inner in ast.walk(part)):
                held = [node.test]
        for test in held:
            if any(dotted(n) == "self.architectures" for n in _expressions(test)):
                return test.lineno
    return None


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr):
            yield inner


def _on_cpu(
    index: ModelIndex, models: TreeFile | None, subscript: Evidence | None
) -> tuple[Evidence, ...]:
    """Follow ``use_mla`` on CPU to the name that is taken from an empty list."""
    if models is None or subscript is None:
        return ()
    property_ = models.function("use_mla")
    backend = models.function("using_transformers_backend")
    if property_ is None or backend is None:
        return ()
    if not any(
        dotted(n).endswith("using_transformers_backend") for n in _all(property_)
    ):
        return ()
    platform = open_file(index, (CPU_PLATFORM,), "use_mla")
    if platform is None:
        return ()
    asks = platform.find(
        r"model_config\.use_mla|model_config, \"use_mla\"",
        "the CPU platform asks a view whether it uses MLA",
    )
    if asks is None:
        return ()
    uses = models.cite(property_.lineno, "use_mla asks for the Transformers backend")
    calls = models.cite(
        backend.lineno, "using_transformers_backend asks for the backend's class"
    )
    return asks, uses, calls, subscript


def _all(node: FunctionNode) -> Iterator[ast.expr]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr):
            yield inner


def _at_pipeline_parallel(
    index: ModelIndex, file: TreeFile, models: TreeFile | None
) -> tuple[tuple[Evidence, ...], tuple[Evidence, ...]]:
    """Follow the check of a view at pipeline-parallel size 2 and above."""
    node = models.function("verify_with_parallel_config") if models else None
    if models is None or node is None:
        return (), ()
    lookup = next(
        (
            n.lineno
            for n in ast.walk(node)
            if isinstance(n, ast.Attribute) and n.attr == "is_pp_supported_model"
        ),
        0,
    )
    if not lookup:
        return (), ()
    chain: list[Evidence] = []
    check = file.function("__post_init__", "VllmConfig")
    for inner in ast.walk(check) if check is not None else ():
        if (
            isinstance(inner, ast.Attribute)
            and inner.attr == "verify_with_parallel_config"
        ):
            said = "VllmConfig.__post_init__ checks every view"
            chain.append(file.cite(inner.lineno, said))
            break
    said = "the view's names are looked up in the registry"
    chain.append(models.cite(lookup, said))
    registry = open_file(index, (REGISTRY_FILE,), "No model architectures")
    refuses: Evidence | None = None
    if registry is not None:
        said = "the registry refuses an empty list"
        refuses = registry.find("No model architectures are specified", said)
    refused: Evidence | None = None
    for inner in ast.walk(node):
        if isinstance(inner, ast.Raise) and inner.lineno > lookup:
            said = "a class without pipeline parallelism is a NotImplementedError"
            refused = models.cite(inner.lineno, said)
            break
    return (
        tuple(e for e in (*chain, refuses) if e is not None),
        tuple(e for e in (*chain, refused) if e is not None),
    )


def architectures_notes(index: ModelIndex) -> Iterator[ContractNote]:
    """Say in a sentence what a view without an architecture name means here."""
    contract = architectures_contract(index)
    if contract.view is None:
        return
    if contract.guarded:
        said = (
            "A config view without an architecture name is harmless for an inner class "
            "that is called directly; init_vllm_registered_model still looks the class "
            "up by it."
        )
        lines = contract.guard
    else:
        said = (
            f"A config view without an architecture name fails: {contract.outcome()}."
        )
        lines = contract.failures
    if contract.fills is None:
        said += (
            " with_hf_config never fills a name in, so this concerns every view "
            "without one; a class is reported only where Transformers' mapping could "
            "not have named it either."
        )
        lines = (contract.view, *lines)
    else:
        lines = (contract.fills, *lines)
    yield ContractNote("architectures", said, lines)
