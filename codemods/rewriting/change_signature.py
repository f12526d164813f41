"""Adds parameters and defaults to the signature of a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.codemods.rewriting.splices import Splice

if TYPE_CHECKING:
    from vlmend.codemods.rewriting.file_view import FileView


@dataclass(frozen=True, slots=True)
class NewParameter:
    """A parameter to add.

    Attributes:
        text: as it is written, annotation and default included; ``**kwargs: object`` is
            put behind everything else.
        before: the parameter that it goes in front of; empty: behind the last one that
            can be given by position.
    """

    text: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSignature:
    """Add parameters, and give parameters that have none the default ``None``.

    Attributes:
        file: POSIX path of the file.
        function: name of the function.
        function_line: line of its ``def``.
        add: the new parameters, in order.
        defaults: parameters that get ``= None``, with ``None`` in their annotation.
        optional: write ``Optional[X]`` instead of ``X | None``.
    """

    file: str
    function: str
    function_line: int
    add: tuple[NewParameter, ...] = ()
    defaults: tuple[str, ...] = ()
    optional: bool = False

    @property
    def line(self) -> int:
        """The line that the change is anchored to."""
        return self.function_line

    def splices(self, view: FileView) -> Sequence[Splice]:
        """Return the changes, or one rewriting of the list where it gets too long."""
        from vlmend.codemods.rewriting.parameter_list import ParameterList

        function = view.find_function(self.function, self.function_line)
        # pyright knows this file by two names, its own and the installed one.
        wanted = ParameterList(view, function, self)  # pyright: ignore[reportArgumentType]
        return wanted.splices()
