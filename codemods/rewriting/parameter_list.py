"""A function's parameter list, rewritten in the layout that it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from vlmend.codemods.rewriting.change_signature import ChangeSignature
from vlmend.codemods.rewriting.file_view import FileView
from vlmend.codemods.rewriting.splices import MAX_COLUMNS, EditError, Splice


class ParameterList:
    """One list and the change that is wanted.

    Args:
        view: the untouched file.
        function: the function whose parameters they are.
        change: what to add.
    """

    def __init__(
        self, view: FileView, function: cst.FunctionDef, change: ChangeSignature
    ) -> None:
        self._view = view
        self._change = change
        self._ordered = _ordered(view, function.params)

    def splices(self) -> Sequence[Splice]:
        """Return the changes, or one rewriting of a list on a single line.

        Raises:
            EditError: the list is not as the change describes it.
        """
        if not self._ordered:
            raise EditError(f"{self._change.function} takes no parameters at all")
        new = {name: self._with_default(name) for name in self._change.defaults}
        first, last = self._ordered[0], self._ordered[-1]
        if first.line == last.line and not last.comma:
            return self._in_one_line(new)
        splices = [
            Splice(one.start, one.end, new[one.name])
            for one in self._ordered
            if one.name in new
        ]
        return [*splices, *self._in_many_lines()]

    def _with_default(self, name: str) -> str:
        one = next((one for one in self._ordered if one.name == name), None)
        if one is None or not isinstance(one.node, cst.Param):
            raise EditError(f"{self._change.function} has no parameter {name}")
        if one.node.default is not None:
            raise EditError(f"{name} has a default already")
        if one.node.annotation is None:
            return f"{one.text}=None"
        annotation = self._view.module.code_for_node(one.node.annotation.annotation)
        if "None" in annotation or "Optional" in annotation:
            return f"{one.text} = None"
        if self._change.optional:
            return f"{name}: Optional[{annotation}] = None"
        return f"{name}: {annotation} | None = None"

    def _in_one_line(self, new: dict[str, str]) -> Sequence[Splice]:
        view = self._view
        listed = list(self._listed(new))
        first, last = self._ordered[0], self._ordered[-1]
        before = view.utf8[view.line_start(first.line) : first.start].decode()
        rest = view.utf8[last.end : view.line_start(first.line + 1)].decode()
        whole = f"{before}{', '.join(listed)}{rest.rstrip()}"
        if len(whole.expandtabs(4)) <= MAX_COLUMNS:
            return (Splice(first.start, last.end, ", ".join(listed)),)
        if not before.lstrip().startswith(("def ", "async ")):
            # The list is on a line of its own between the brackets.
            indent = before
            body = f",{view.newline}{indent}".join(listed)
            return (Splice(first.start, last.end, f"{body},"),)
        indent = before[: len(before) - len(before.lstrip())]
        inner = indent + ("\t" if "\t" in indent else "    ")
        joined = f"{inner}{', '.join(listed)}"
        if len(joined.expandtabs(4)) <= MAX_COLUMNS:
            body = f"{view.newline}{joined}"
        else:
            body = "".join(f"{view.newline}{inner}{text}," for text in listed)
        return (Splice(first.start, last.end, f"{body}{view.newline}{indent}"),)

    def _listed(self, new: dict[str, str]) -> Iterator[str]:
        """Yield the parameters of the new list, new ones in their places."""
        places = self._places()
        for index, one in enumerate(self._ordered):
            yield from (text for place, text in places if place == index)
            yield new.get(one.name, one.text)
        end = len(self._ordered)
        yield from (text for place, text in places if place == end)

    def _places(self) -> list[tuple[int, str]]:
        """Return each new parameter with the index that it goes in front of."""
        names = [one.name for one in self._ordered]
        behind = max(
            (i + 1 for i, one in enumerate(self._ordered) if one.by_position), default=0
        )
        found: list[tuple[int, str]] = []
        for one in self._change.add:
            if one.text.startswith("**"):
                found.append((len(names), one.text))
            elif one.before in names:
                found.append((names.index(one.before), one.text))
            else:
                found.append((behind, one.text))
        return found

    def _in_many_lines(self) -> Iterator[Splice]:
        grouped: dict[int, list[str]] = {}
        for place, text in self._places():
            grouped.setdefault(place, []).append(text)
        for place, texts in grouped.items():
            if not place:
                raise EditError("a parameter cannot go in front of self")
            yield self._after(place - 1, texts)

    def _after(self, index: int, texts: Sequence[str]) -> Splice:
        """Add parameters behind another, on lines of their own."""
        view, anchor = self._view, self._ordered[index]
        column = self._column(anchor.line)
        indent = f"{view.newline}{column}"
        following = self._ordered[index + 1 : index + 2]
        if anchor.comma and following and following[0].line == anchor.last_line:
            # They share the line: what follows moves to a line of its own.
            comma = view.utf8.find(b",", anchor.end) + 1
            added = "".join(f"{indent}{text}," for text in texts)
            return Splice(comma, following[0].start, f"{added}{indent}")
        rest = view.utf8[anchor.end : view.line_start(anchor.last_line + 1)].strip()
        if anchor.comma and rest.lstrip(b",").strip()[:1] in (b"", b"#"):
            # Behind the line, with the comment that it may have.
            start = view.line_start(anchor.last_line + 1)
            added = "".join(f"{column}{text},{view.newline}" for text in texts)
            return Splice(start, start, added)
        if anchor.comma:
            comma = view.utf8.find(b",", anchor.end) + 1
            added = "".join(f"{indent}{text}," for text in texts)
            return Splice(comma, comma, added)
        if b"#" in rest:
            raise EditError(f"a comment stands behind the parameter {anchor.name}")
        added = "".join(f",{indent}{text}" for text in texts)
        return Splice(anchor.end, anchor.end, added)

    def _column(self, line: int) -> str:
        """Return the white space in front of a line's parameters.

        On the line of ``def``, it is what later lines have, or the width up to the
        first parameter.
        """
        text = self._view.line_text(line)
        if not text.lstrip().startswith(("def ", "async ")):
            return text[: len(text) - len(text.lstrip())]
        for one in self._ordered:
            if one.line > line:
                text = self._view.line_text(one.line)
                return text[: len(text) - len(text.lstrip())]
        return " " * self._view.column_of(self._ordered[0].node)


@dataclass(frozen=True, slots=True)
class _Listed:
    """One entry of a parameter list, in the order of the source."""

    name: str
    node: cst.Param | cst.ParamStar | cst.ParamSlash
    by_position: bool
    text: str
    start: int
    end: int
    line: int
    last_line: int

    @property
    def comma(self) -> bool:
        """A comma follows."""
        return isinstance(self.node.comma, cst.Comma)


def _ordered(view: FileView, parameters: cst.Parameters) -> list[_Listed]:
    found = [
        _entry(view, one.name.value, one, by_position=True)
        for one in parameters.posonly_params
    ]
    if isinstance(parameters.posonly_ind, cst.ParamSlash):
        found.append(_entry(view, "/", parameters.posonly_ind, by_position=True))
    found += [
        _entry(view, one.name.value, one, by_position=True) for one in parameters.params
    ]
    star = parameters.star_arg
    if isinstance(star, cst.Param):
        found.append(_entry(view, f"*{star.name.value}", star, by_position=False))
    elif isinstance(star, cst.ParamStar):
        found.append(_entry(view, "*", star, by_position=False))
    found += [
        _entry(view, one.name.value, one, by_position=False)
        for one in parameters.kwonly_params
    ]
    last = parameters.star_kwarg
    if last is not None:
        found.append(_entry(view, f"**{last.name.value}", last, by_position=False))
    return found


def _entry(
    view: FileView,
    name: str,
    node: cst.Param | cst.ParamStar | cst.ParamSlash,
    *,
    by_position: bool,
) -> _Listed:
    if isinstance(node, cst.Param):
        # LibCST's span of a parameter ends with its name.
        alone = node.with_changes(
            comma=cst.MaybeSentinel.DEFAULT,
            whitespace_after_param=cst.SimpleWhitespace(""),
        )
        text = view.module.code_for_node(alone)
        start = view.span_of(node)[0]
    else:
        text = name
        start = view.span_of(node)[0]
    first = view.lines_of(node)[0]
    end = start + len(text.encode())
    if view.utf8[start:end] != text.encode():
        raise EditError(f"the parameter {name} is written in a way that is not known")
    return _Listed(
        name, node, by_position, text, start, end, first, first + text.count("\n")
    )
