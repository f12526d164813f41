"""Reads what a method does to its object, without running anything.

``Reader`` walks the statements of an ``__init__`` (or another method) in order, follows
``super()``, helper methods and local variables the way Python would, and notes every
attribute that is set on ``self``, every object that is built and every call that is
made. Conditions are not evaluated: both sides are walked, and what they note carries
the condition as a guard.
"""

from __future__ import annotations

import ast

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.parameters import annotated_name, defaults_of
from vlmend.codemods.analysis.reading import Frame
from vlmend.codemods.analysis.reading_expressions import Expressions
from vlmend.codemods.analysis.reading_statements import Statements
from vlmend.codemods.analysis.trace import Step, Trace
from vlmend.codemods.analysis.values import (
    ClassRef,
    Mapping,
    Parameter,
    SelfObject,
    Value,
)


class Reader(Statements, Expressions):
    """Reads methods of one class; see :class:`~.reading.Reading` for its arguments."""

    def read(
        self, owner: ClassRef, function: facts.Function, given: dict[str, Value]
    ) -> Trace:
        """Read a method from its first line, with symbolic parameters.

        Args:
            owner: the class that the method stands in.
            function: the method.
            given: values for some of its parameters.
        """
        module = self.index.module(owner.module)
        assert module is not None
        node = self.index.function_node(module, function)
        names: dict[str, Value] = {}
        arguments = node.args
        frame = Frame(module, owner, f"{owner.name}.{function.name}", names)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for position, parameter in enumerate(every):
            name = parameter.arg
            if position == 0 and "staticmethod" not in function.decorators:
                names[name] = SelfObject()
            elif name in given:
                names[name] = given[name]
            else:
                names[name] = Parameter(
                    name, annotated_name(parameter.annotation), owner.module
                )
        if function.name == "__init__":
            # vLLM's loader passes vllm_config and prefix alone (initialize_model in
            # model_loader/utils.py); whatever else there is keeps its default.
            for name, default in defaults_of(arguments).items():
                if name not in given and isinstance(default, ast.Name | ast.Attribute):
                    names[name] = self._value(default, frame)
        if arguments.vararg:
            names[arguments.vararg.arg] = Parameter(f"*{arguments.vararg.arg}")
        if arguments.kwarg:
            names[arguments.kwarg.arg] = Mapping((), open=True)
        self.trace.steps.append(
            Step(owner, function.name, function.line, module.file, None)
        )
        self._active.append((module.name, function.line))
        self._inits = [owner] if function.name == "__init__" else []
        try:
            self._body(node.body, frame)
        except RecursionError:
            gap = f"{frame.function} holds an expression that is nested too deeply"
            self.trace.gaps.append(gap)
        self._active.pop()
        self.trace.returns = frame.returns
        return self.trace


def read_init(index: ModelIndex, ref: ClassRef) -> Trace | None:
    """Read the ``__init__`` chain that building ``ref`` runs.

    Returns ``None`` where no class of the trees in its MRO has an ``__init__``.
    """

    def compute() -> Trace | None:
        found = index.find_method(ref, "__init__")
        if found is None:
            return None
        return Reader(index, ref).read(*found, {})

    return index.remember(("init", ref), compute, on_cycle=None)
