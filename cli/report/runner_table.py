"""The table of ``vlmend explain --runner-calls``: who calls a model, with what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vlmend.cli.console import printable
from vlmend.cli.report.words import counted, strong, wrapped
from vlmend.codemods.analysis.runner_calls import RunnerCall

ASKED_FOR = ("kv_caches", "attn_metadata")
"""What reviews ask for, from the days when every model was passed them."""


def runner_table(calls: Iterable[RunnerCall], width: int) -> Iterator[str]:
    """Yield the table's lines: place, role, and keywords with their conditions.

    Args:
        calls: every call of the tree.
        width: of the terminal, in columns.
    """
    found = tuple(calls)
    number = counted(len(found), "call", "calls")
    yield f"{number} of a model's forward by the runners of this tree"
    for call in found:
        place = call.place
        yield ""
        where = strong(f"{printable(place.file)}:{place.line}")
        yield f"{where}  {place.function}  ({call.role})"
        for one in call.via:
            yield f"    called from {printable(one.file)}:{one.line}  {one.function}"
        by_position = f"{call.positional} by position" if call.positional else ""
        passed = ", ".join(filter(None, [by_position, *call.names]))
        lines = [f"passes {passed or 'nothing that is always there'}"]
        lines += [f"passes {k.name} if {k.condition}" for k in call.conditional]
        for more in call.keywords.more:
            when = f" if {more.condition}" if more.condition else ""
            lines.append(f"may pass more: {more.what}{when}")
        for line in lines:
            yield wrapped(line, width, " " * 4, " " * 6)
    passed_names = {key.name for call in found for key in call.keywords.keys}
    absent = [name for name in ASKED_FOR if name not in passed_names]
    if found and absent:
        yield ""
        yield f"No call passes {' or '.join(absent)}."
