"""What a tree says about the environment that it runs in."""

from __future__ import annotations

import re
import tomllib
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from vlmend.cli.errors import UserError
from vlmend.codemods.analysis.tree import SourceTree, TreeError

PIN_FILES: Final = (
    "requirements/test/cuda.in",
    "requirements/test/cpu.txt",
    "requirements/test/cuda.txt",
    "requirements/test/nightly-torch.txt",
    "requirements/test.in",
    "requirements/test.txt",
    "requirements/nightly_torch_test.txt",
)
"""Where trees of all eras pin the Transformers that they are tested with."""

_PIN: Final = re.compile(r"^transformers\s*==\s*([\w.]+)", re.MULTILINE)


def transformers_pin(tree: SourceTree) -> tuple[str, str]:
    """Return the Transformers version that a tree is tested with, and the file.

    Raises:
        UserError: the tree pins none.
    """
    for name in PIN_FILES:
        try:
            found = _PIN.search(tree.read(name).decode("utf-8", "replace"))
        except TreeError:
            continue
        if found is not None:
            return found[1], name
    raise UserError(
        "the tree does not pin the Transformers that it is tested with: looked in"
        " requirements/test",
        hint="reuse an environment that fits it: --python PATH",
    )


def python_range(tree: SourceTree) -> SpecifierSet:
    """Return the Python versions that a tree takes; everything where it is silent."""
    try:
        project = tomllib.loads(tree.read("pyproject.toml").decode("utf-8"))
        return SpecifierSet(project["project"]["requires-python"])
    except (TreeError, ValueError, KeyError, TypeError, InvalidSpecifier):
        return SpecifierSet()
