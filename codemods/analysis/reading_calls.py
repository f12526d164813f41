"""What calls do to a reading: which function runs, and what it returns."""

from __future__ import annotations

import ast

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.facts import Module
from vlmend.codemods.analysis.parameters import annotated_name, bind, defaults_of
from vlmend.codemods.analysis.reading import MAX_DEPTH, Frame, Reading
from vlmend.codemods.analysis.trace import Event, Step
from vlmend.codemods.analysis.values import (
    Arguments,
    Built,
    Call,
    ClassObject,
    ClassRef,
    ConfigView,
    Constant,
    External,
    Function,
    Instance,
    Items,
    LocalFunction,
    Mapping,
    Member,
    Method,
    Parameter,
    SelfObject,
    Site,
    Super,
    Unknown,
    Value,
    bare,
    one_of,
    options,
)

UTILS_MODULE = "vllm.model_executor.models.utils"
LOADER_MODULE = "vllm.model_executor.model_loader.utils"


class Calls(Reading):
    """Follows calls the way Python would, as far as the trees go."""

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id not in frame.names:
            special = self._builtin(node.func.id, node, frame)
            if special is not None:
                return special
        function = self._value(node.func, frame)
        arguments = self._arguments(node, frame)
        found = one_of(
            *(self._called(f, arguments, node, frame) for f in options(function))
        )
        self.trace.events.append(
            Event(
                found,
                function,
                arguments,
                self._site(node, frame),
                tuple(self._guards),
                tuple(self._contexts),
                node,
            )
        )
        return found

    def _builtin(self, name: str, node: ast.Call, frame: Frame) -> Value | None:
        """Evaluate the few builtins that matter to the shape of an object."""
        match name, node.args:
            case "super", []:
                if frame.owner is not None:
                    return Super(frame.owner)
            case "super", [start, *_]:
                found = self._value(start, frame)
                if isinstance(found, ClassObject):
                    return Super(found.ref)
                return Unknown("super(...)")
            case "getattr", [inner, ast.Constant(str(attribute)), *rest]:
                found = self.member(self._value(inner, frame), attribute)
                if rest:
                    return one_of(found, self._value(rest[0], frame))
                return found
            case "setattr", [inner, ast.Constant(str(attribute)), value]:
                if isinstance(self._value(inner, frame), SelfObject):
                    self._write(attribute, self._value(value, frame), node, frame)
                    return Constant(None)
            case "cast", [_, value]:
                return self._value(value, frame)
            case "type", [ast.Name(inner)]:
                if isinstance(frame.names.get(inner), SelfObject):
                    return ClassObject(self.ref)
            case "dict", []:
                if all(keyword.arg for keyword in node.keywords):
                    return Mapping(
                        tuple(
                            (k.arg or "", self._value(k.value, frame))
                            for k in node.keywords
                        )
                    )
        return None

    def _arguments(self, node: ast.Call, frame: Frame) -> Arguments:
        positional: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        is_open = False
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self._value(argument.value, frame)
                if isinstance(value, Items):
                    positional += value.values
                else:
                    is_open = True
            else:
                positional.append(self._value(argument, frame))
        for keyword in node.keywords:
            value = self._value(keyword.value, frame)
            if keyword.arg:
                keywords.append((keyword.arg, value))
            elif isinstance(bare(value), Mapping):
                mapping = bare(value)
                assert isinstance(mapping, Mapping)
                keywords += mapping.values
                is_open |= mapping.open
            else:
                is_open = True
        return Arguments(tuple(positional), tuple(keywords), is_open)

    def _called(
        self, function: Value, arguments: Arguments, node: ast.Call, frame: Frame
    ) -> Value:
        site = self._site(node, frame)
        match bare(function):
            case ClassObject(ref):
                return Instance(ref, arguments, site)
            case Call(External("functools.partial"), held) if held.positional:
                more = Arguments(
                    (*held.positional[1:], *arguments.positional),
                    (*held.keywords, *arguments.keywords),
                    held.open or arguments.open,
                )
                return self._called(held.positional[0], more, node, frame)
            case External(name) if name in _BUILDERS:
                return self._built(arguments, site)
            case Function(module, name) if f"{module}.{name}" in _BUILDERS:
                return self._built(arguments, site)
            case Function(module, name):
                return self._function(module, name, arguments, site)
            case Method(owner, name, bound_to):
                return self._method(owner, name, bound_to, arguments, site)
            case Member(inner, "with_hf_config"):
                given = bind(("hf_config", "architectures"), arguments)
                return ConfigView(
                    inner, given.get("hf_config"), given.get("architectures"), site
                )
            case LocalFunction(_, _, node_) if isinstance(
                node_, ast.FunctionDef | ast.AsyncFunctionDef
            ):
                # A local function may write to self through its closure.
                result = self._walk_local(node_, arguments, frame)
                if result is not None:
                    return result
            case Member(SelfObject(), name) if not self.index.mro(self.ref).external:
                where = f"{site.file}:{site.line}"
                self.trace.gaps.append(f"self.{name}() is unknown ({where})")
        return Call(function, arguments, site)

    @staticmethod
    def _built(arguments: Arguments, site: Site) -> Value:
        """Evaluate ``init_vllm_registered_model`` or ``initialize_model``."""
        given = bind(("vllm_config",), arguments)
        vllm_config = given.get("vllm_config")
        model_class = arguments.keyword("model_class")
        if model_class is not None:
            built = [
                Instance(v.ref, arguments, site)
                for v in options(model_class)
                if isinstance(v, ClassObject)
            ]
            if len(built) == len(options(model_class)):
                return one_of(*built)
        hf_config = arguments.keyword("hf_config")
        architectures = arguments.keyword("architectures")
        view = bare(vllm_config) if vllm_config is not None else None
        if isinstance(view, ConfigView) and hf_config is None and architectures is None:
            return Built(view.vllm_config, view.hf_config, view.architectures, site)
        return Built(vllm_config, hf_config, architectures, site)

    def _function(
        self, module_name: str, name: str, arguments: Arguments, site: Site
    ) -> Value:
        """Follow a module-level function where that can matter.

        It can where it receives ``self`` (it may set attributes) or a class (it may
        build or choose one); everything else is only named.
        """
        result = Call(Function(module_name, name), arguments, site)
        given = (*arguments.positional, *(v for _, v in arguments.keywords))
        if not any(isinstance(bare(v), SelfObject | ClassObject) for v in given):
            return result
        module = self.index.module(module_name)
        if module is None or name not in module.functions:
            return result
        function = module.functions[name]
        if set(function.decorators) - {"staticmethod", "classmethod"}:
            return result
        found = self._enter(None, function, arguments, module=module, site=site)
        return result if found is None or isinstance(found, Unknown) else found

    def _method(
        self,
        owner: ClassRef,
        name: str,
        bound_to: Value | None,
        arguments: Arguments,
        site: Site,
    ) -> Value:
        result = Call(Method(owner, name, bound_to), arguments, site)
        function = self.index.class_of(owner).methods[name]
        if bound_to is not None:
            if "staticmethod" not in function.decorators:
                first: Value = bound_to
                if "classmethod" in function.decorators:
                    first = ClassObject(self.ref)
                arguments = Arguments(
                    (first, *arguments.positional), arguments.keywords, arguments.open
                )
        elif "classmethod" in function.decorators:
            arguments = Arguments(
                (ClassObject(owner), *arguments.positional),
                arguments.keywords,
                arguments.open,
            )
        elif not any(isinstance(v, SelfObject) for v in arguments.positional[:1]):
            return result
        found = self._enter(owner, function, arguments, site=site)
        return result if found is None or isinstance(found, Unknown) else found

    def _enter(
        self,
        owner: ClassRef | None,
        function: facts.Function,
        arguments: Arguments,
        *,
        module: Module | None = None,
        site: Site | None = None,
    ) -> Value | None:
        """Walk a called function; return what it returns (``None`` if not walked)."""
        if module is None:
            assert owner is not None
            module = self.index.module(owner.module)
            assert module is not None
        key = (module.name, function.line)
        if key in self._active or len(self._active) > MAX_DEPTH:
            self.trace.gaps.append(f"{function.name}() calls itself; not followed")
            return None
        node = self.index.function_node(module, function)
        qualified = f"{owner.name}.{function.name}" if owner else function.name
        if owner is not None:
            self.trace.steps.append(
                Step(owner, function.name, function.line, module.file, site)
            )
        frame = Frame(module, owner, qualified, {})
        self._bind_parameters(node.args, arguments, frame)
        self._active.append(key)
        depth = len(self._inits)
        if owner is not None and function.name == "__init__":
            self._inits.append(owner)
        try:
            self._body(node.body, frame)
        finally:
            self._active.pop()
            del self._inits[depth:]
        if self._is_generator(module, node):
            return None
        return _returned(frame)

    def _is_generator(self, module: Module, node: facts.FunctionNode) -> bool:
        text = self.index.lines(module)[node.lineno - 1 : node.end_lineno]
        if not any("yield" in line for line in text):
            return False
        return any(
            isinstance(n, ast.Yield | ast.YieldFrom) for n in facts.descend(node)
        )

    def _walk_local(
        self, node: facts.FunctionNode, arguments: Arguments, frame: Frame
    ) -> Value | None:
        key = (frame.module.name, node.lineno)
        if key in self._active or len(self._active) > MAX_DEPTH:
            return None
        inner = Frame(frame.module, frame.owner, frame.function, dict(frame.names))
        self._bind_parameters(node.args, arguments, inner)
        self._active.append(key)
        try:
            self._body(node.body, inner)
        finally:
            self._active.pop()
        return _returned(inner)

    def _bind_parameters(
        self, parameters: ast.arguments, arguments: Arguments, frame: Frame
    ) -> None:
        """Give a callee's parameters the values that a call passes."""
        ordered = [*parameters.posonlyargs, *parameters.args]
        passed = dict(arguments.keywords)
        for parameter, value in zip(ordered, arguments.positional, strict=False):
            frame.names[parameter.arg] = value
        defaults = defaults_of(parameters)
        for parameter in (*ordered, *parameters.kwonlyargs):
            name = parameter.arg
            if name in frame.names:
                continue
            if name in passed:
                frame.names[name] = passed.pop(name)
            elif arguments.open:
                # *args or **kwargs were handed on: the value is the outermost caller's.
                frame.names[name] = Parameter(
                    name, annotated_name(parameter.annotation), frame.module.name
                )
            elif name in defaults:
                frame.names[name] = self._value(defaults[name], frame)
            else:
                frame.names[name] = Unknown(name)
        if parameters.vararg:
            extra = arguments.positional[len(ordered) :]
            frame.names[parameters.vararg.arg] = (
                Parameter(f"*{parameters.vararg.arg}")
                if arguments.open
                else Items(tuple(extra))
            )
        if parameters.kwarg:
            known = {p.arg for p in (*ordered, *parameters.kwonlyargs)}
            rest = tuple((k, v) for k, v in passed.items() if k not in known)
            frame.names[parameters.kwarg.arg] = Mapping(rest, arguments.open)


_BUILDERS = {
    f"{UTILS_MODULE}.init_vllm_registered_model",
    f"{LOADER_MODULE}.initialize_model",
}


def _returned(frame: Frame) -> Value:
    values = [value for value, _ in frame.returns]
    return one_of(*values) if values else Constant(None)
