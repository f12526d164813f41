"""Adds keyword arguments to a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.codemods.rewriting.splices import Splice

if TYPE_CHECKING:
    from vlmend.codemods.rewriting.file_view import FileView


@dataclass(frozen=True, slots=True)
class CallArguments:
    """Pass further keywords in a call.

    Attributes:
        file: POSIX path of the file.
        function: what is called, as written without spaces.
        call_line: the line that the call starts at.
        add: names to pass, each from the local name of the same spelling.
        before: keywords of the call that the new ones go in front of, if one is there.
        unpack: the dict to pass as ``**name`` behind everything else; empty for none.
    """

    file: str
    function: str
    call_line: int
    add: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    unpack: str = ""

    @property
    def line(self) -> int:
        """The line that the change is anchored to."""
        return self.call_line

    def splices(self, view: FileView) -> Sequence[Splice]:
        """Return the change of the argument list."""
        from vlmend.codemods.rewriting.argument_list import ArgumentList

        # pyright knows this file by two names, its own and the installed one.
        wanted = ArgumentList(view, self)  # pyright: ignore[reportArgumentType]
        return wanted.splices()
