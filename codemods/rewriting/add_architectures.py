"""Gives an inner model's view of the configuration its architecture name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.codemods.rewriting.splices import Splice

if TYPE_CHECKING:
    from vlmend.codemods.rewriting.file_view import FileView


@dataclass(frozen=True, slots=True)
class AddArchitectures:
    """Pass ``architectures=["X"]`` where a view is made, or make the view there.

    Attributes:
        file: POSIX path of the file.
        function: what is called, as written without spaces.
        call_line: the line that the call starts at.
        call_column: the column that it starts at, in UTF-8 bytes.
        name: the architecture.
        config: the expression to narrow to, where the call is given the whole
            configuration: its ``argument`` becomes
            ``argument.with_hf_config(config, architectures=["X"])``. Empty where the
            call makes the view itself.
        argument: the local name of the whole configuration.
    """

    file: str
    function: str
    call_line: int
    call_column: int
    name: str
    config: str = ""
    argument: str = ""

    @property
    def line(self) -> int:
        """The line that the change is anchored to."""
        return self.call_line

    def splices(self, view: FileView) -> Sequence[Splice]:
        """Return the change of the call."""
        from vlmend.codemods.rewriting.call_layout import CallLayout

        layout = CallLayout(view, self.function, self.call_line, self.call_column)
        keyword = f'architectures=["{self.name}"]'
        if not self.config:
            return layout.add(keyword)
        return layout.narrow(self.argument, "with_hf_config", (self.config, keyword))
