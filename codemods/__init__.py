"""vlmend as a library: judge a vLLM tree and get proven patches.

Example:
    >>> from pathlib import Path
    >>> from vlmend.codemods import DirectoryTree, Session
    >>> session = Session(DirectoryTree(Path("vllm-checkout")))
    >>> fixable = [f for f in session.run().findings if f.status == "fixable"]
    >>> for patch in session.patches(fixable):
    ...     print(patch.diff())
"""

from vlmend.codemods.analysis.memory import FactsCache
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.tree import (
    DirectoryTree,
    MemoryTree,
    OverlayTree,
    SourceTree,
    TreeError,
)
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import (
    Codemod,
    ContractNote,
    Edit,
    Evidence,
    Finding,
    ModelInfo,
    ScanError,
    ScanResult,
    Source,
    Status,
    Suppression,
    UnusedSuppression,
)
from vlmend.codemods.engine import (
    FilePatch,
    PatchFailure,
    Session,
    scan,
    unified_diff,
)
from vlmend.codemods.installed import installed_codemods
from vlmend.codemods.registered import all_codemods
from vlmend.codemods.rewriting.insert_assignment import InsertAssignment

__all__ = [
    "ClassRef",
    "Codemod",
    "ContractNote",
    "DirectoryTree",
    "Edit",
    "Evidence",
    "FactsCache",
    "FilePatch",
    "Finding",
    "InsertAssignment",
    "MemoryTree",
    "ModelIndex",
    "ModelInfo",
    "OverlayTree",
    "PatchFailure",
    "ScanError",
    "ScanResult",
    "Session",
    "Source",
    "SourceTree",
    "Status",
    "Suppression",
    "TreeError",
    "UnusedSuppression",
    "all_codemods",
    "installed_codemods",
    "scan",
    "unified_diff",
]
