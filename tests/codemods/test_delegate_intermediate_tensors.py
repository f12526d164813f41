"""The delegation codemod on small trees: what is mended, and what is left alone."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent

import pytest

FORWARD = """
    def forward(self, input_ids, positions, intermediate_tensors=None):
        return self.language_model(input_ids, positions, intermediate_tensors)
"""


def wrap(
    body: str,
    *,
    bases: str = "nn.Module, SupportsMultiModal, SupportsPP",
    name: str = "WrapForConditionalGeneration",
    start: str = "super().__init__()",
    before: str = "",
    within: str = FORWARD,
    after: str = "",
) -> str:
    """Return a wrapper whose ``__init__`` has the given body."""
    head = (
        f"class {name}({bases}):\n"
        '    def __init__(self, *, vllm_config, prefix=""):\n'
        f"        {start}\n"
    )
    body = indent(dedent(body).strip(), " " * 8) + "\n"
    return dedent(before) + head + body + within + "\n\n" + dedent(after)


BUILD = "self.language_model = InnerForCausalLM(vllm_config=vllm_config)"
INIT_LLM = f"""
    def init_llm(self, vllm_config):
        {BUILD}
"""
WRAPPED = [
    "        self.make_empty_intermediate_tensors = (",
    "            self.language_model.make_empty_intermediate_tensors",
    "        )",
]
ON_ONE_LINE = (
    "        self.make_empty_intermediate_tensors = "
    "self.llm.make_empty_intermediate_tensors"
)


WRAP = "vllm/model_executor/models/wrap.py"
HEIR = "HeirForConditionalGeneration"
LACKING = "self.language_model = LackingForCausalLM(vllm_config=vllm_config)"
WIRED = f"""
{BUILD}
self.make_empty_intermediate_tensors = (
    self.language_model.make_empty_intermediate_tensors
)
"""


def inner(provides: str) -> str:
    """Return an inner model, and a wrapper around it."""
    given = indent(dedent(provides).strip(), "    ")
    return wrap(
        "self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
        before=f"class OwnForCausalLM(nn.Module):\n{given}\n\n\n",
    )


@dataclass(frozen=True)
class Changed:
    """A tree that gets one statement: behind which line, and how it looks."""

    source: str
    behind: str = BUILD
    lines: tuple[str, ...] = tuple(WRAPPED)
    class_name: str = "WrapForConditionalGeneration"
    heirs: tuple[str, ...] = ()


CHANGED = {
    "a direct call": Changed(wrap(BUILD)),
    "a short name fits on one line": Changed(
        wrap(
            "self.llm = InnerForCausalLM(vllm_config=vllm_config)",
            within=FORWARD.replace("language_model", "llm"),
        ),
        behind="self.llm = InnerForCausalLM(vllm_config=vllm_config)",
        lines=(ON_ONE_LINE,),
    ),
    "outside the with that marks the model": Changed(
        wrap(f"with self._mark_language_model(vllm_config):\n    {BUILD}"),
        behind=BUILD,
    ),
    "outside a with of several contexts": Changed(
        wrap(
            f"with timed(), self._mark_language_model(vllm_config) as m:\n    {BUILD}"
        ),
        behind=BUILD,
    ),
    "outside nested withs": Changed(
        wrap(
            f"""
            with timed():
                with self._mark_language_model(vllm_config):
                    {BUILD}
                self.ready = True
            """
        ),
        behind="self.ready = True",
    ),
    "at the end of __init__, not behind the model": Changed(
        wrap(f"{BUILD}\nself.scale = 2\nself.bias = None"),
        behind="self.bias = None",
    ),
    "a helper method builds the model": Changed(
        wrap(
            "self.init_llm(vllm_config)",
            within=INIT_LLM + FORWARD,
        ),
        behind="self.init_llm(vllm_config)",
    ),
    "a module's function builds the model": Changed(
        wrap(
            "build_on(self, vllm_config)",
            before=f"""\
            def build_on(model, vllm_config):
                {BUILD.replace("self", "model")}


            """,
        ),
        behind="build_on(self, vllm_config)",
    ),
    "a local function builds the model": Changed(
        wrap(f"def build():\n    {BUILD}\n\nbuild()"), behind="build()"
    ),
    "a helper method returns the model": Changed(
        wrap(
            "self.language_model = self.build(vllm_config)",
            within="""
    def build(self, vllm_config):
        if vllm_config is None:
            raise ValueError("no config")
        return InnerForCausalLM(vllm_config=vllm_config)
"""
            + FORWARD,
        ),
        behind="self.language_model = self.build(vllm_config)",
    ),
    "a local variable holds the model": Changed(
        wrap(
            "built = InnerForCausalLM(vllm_config=vllm_config)\n"
            "self.language_model = built"
        ),
        behind="self.language_model = built",
    ),
    "a named expression holds the model": Changed(
        wrap(
            "if (built := InnerForCausalLM(vllm_config=vllm_config)):\n"
            "    pass\n"
            "self.language_model = built"
        ),
        behind="self.language_model = built",
    ),
    "the class is passed as a parameter": Changed(
        wrap(
            "self.language_model = self.make(InnerForCausalLM, vllm_config)",
            within="""
    def make(self, model_class, vllm_config):
        return model_class(vllm_config=vllm_config)
"""
            + FORWARD,
        ),
        behind="self.language_model = self.make(InnerForCausalLM, vllm_config)",
    ),
    "a class attribute holds the class": Changed(
        wrap(
            "self.language_model = self.inner_class(vllm_config=vllm_config)",
            within="\n    inner_class = InnerForCausalLM\n" + FORWARD,
        ),
        behind="self.language_model = self.inner_class(vllm_config=vllm_config)",
    ),
    "functools.partial of the class": Changed(
        wrap(
            "make = partial(InnerForCausalLM, vllm_config=vllm_config)\n"
            "self.language_model = make(prefix=prefix)",
            before="from functools import partial\n\n\n",
        ),
        behind="self.language_model = make(prefix=prefix)",
    ),
    "initialize_model with a class": Changed(
        wrap(
            "self.language_model = initialize_model(\n"
            "    vllm_config, model_class=InnerForCausalLM\n"
            ")",
            before="from vllm.model_executor.model_loader.utils import "
            "initialize_model\n\n\n",
        ),
        behind=")",
    ),
    "the registry builds the named architecture": Changed(
        wrap(
            "self.language_model = init_vllm_registered_model(\n"
            '    vllm_config, architectures=["InnerForCausalLM"]\n'
            ")"
        ),
        behind=")",
    ),
    "the registry builds whatever the config names": Changed(
        wrap(
            "self.language_model = init_vllm_registered_model(\n"
            "    vllm_config, hf_config=vllm_config.text_config\n"
            ")"
        ),
        behind=")",
    ),
    "both branches build a sound model": Changed(
        wrap(
            f"""
            if vllm_config.fast:
                {BUILD}
            else:
                self.language_model = OtherForCausalLM(vllm_config=vllm_config)
            """,
            before="class OtherForCausalLM(InnerForCausalLM):\n    pass\n\n\n",
        ),
        behind="self.language_model = OtherForCausalLM(vllm_config=vllm_config)",
    ),
    "both branches replace a first model": Changed(
        wrap(
            f"""
            {LACKING}
            if vllm_config.fast:
                {BUILD}
            else:
                {BUILD}
            self.holder = self.language_model
            """
        ),
        behind="self.holder = self.language_model",
    ),
    "a handler that raises is no way on": Changed(
        wrap(
            f"""
            try:
                {BUILD}
            except KeyError as error:
                raise ValueError("no such model") from error
            """
        ),
        behind='raise ValueError("no such model") from error',
    ),
    "an early return: right behind the model": Changed(
        wrap(
            f"""
            {BUILD}
            if not vllm_config.sees:
                return
            self.eye = nn.Identity()
            """
        )
    ),
    "a last bare return: right behind the model": Changed(
        wrap(f"{BUILD}\nself.scale = 2\nreturn")
    ),
    "a return of an inner function is none of __init__": Changed(
        wrap(f"{BUILD}\n\ndef scale():\n    return 2\n\nself.scale = scale"),
        behind="self.scale = scale",
    ),
    "behind a decorated inner function": Changed(
        wrap(f"{BUILD}\n\n@staticmethod\ndef scale():\n    return 2"),
        behind="return 2",
    ),
    "statements joined by a semicolon": Changed(
        wrap(f"self.scale = 2; {BUILD}"), behind=f"self.scale = 2; {BUILD}"
    ),
    "a semicolon behind a statement of several lines": Changed(
        wrap(f"self.scale = (\n    2\n); {BUILD}"), behind=f"); {BUILD}"
    ),
    "asynchronous methods do not matter": Changed(
        wrap(
            BUILD,
            within="\n    async def warm_up(self):\n        async with lock():\n"
            "            await self.later\n" + FORWARD,
        )
    ),
    "a mere annotation of the attribute is no attribute": Changed(
        wrap(
            BUILD,
            within="\n    make_empty_intermediate_tensors: object\n" + FORWARD,
        )
    ),
    "an attribute that is set on another object": Changed(
        wrap(
            f"{BUILD}\nother = nn.Identity()\nother.scale = 2",
        ),
        behind="other.scale = 2",
    ),
    "a __new__ that makes its own object": Changed(
        wrap(BUILD, before="from .interfaces import SupportsQuant\n\n\n").replace(
            "SupportsPP)", "SupportsPP, SupportsQuant)"
        )
    ),
    "the inner model sets it by setattr": Changed(
        inner(
            """
            def __init__(self, *, vllm_config):
                super().__init__()
                setattr(self, "make_empty_intermediate_tensors", print)
                self.make_empty_intermediate_tensors = lambda *shape: shape
            """
        ),
        behind="self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
    ),
    "the inner model sets a lambda": Changed(
        inner(
            """
            def __init__(self, *, vllm_config):
                super().__init__()
                self.make_empty_intermediate_tensors = lambda *shape: shape
            """
        ),
        behind="self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
    ),
    "the inner model sets a local function": Changed(
        inner(
            """
            def __init__(self, *, vllm_config):
                super().__init__()

                def make(*shape):
                    return shape

                self.make_empty_intermediate_tensors = make
            """
        ),
        behind="self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
    ),
    "the inner model has a method": Changed(
        inner(
            """
            def make_empty_intermediate_tensors(self, *shape):
                return shape
            """
        ),
        behind="self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
    ),
    "the inner model has a property": Changed(
        inner(
            """
            @property
            def make_empty_intermediate_tensors(self):
                return self.layers.make
            """
        ),
        behind="self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
    ),
    "the inner model has a class attribute": Changed(
        inner("make_empty_intermediate_tensors = staticmethod(print)"),
        behind="self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
    ),
    "the inner model sets it in both branches": Changed(
        inner(
            """
            def __init__(self, *, vllm_config):
                super().__init__()
                if vllm_config.wide:
                    self.make_empty_intermediate_tensors = lambda *shape: shape
                else:
                    self.make_empty_intermediate_tensors = lambda *shape: shape[:1]
            """
        ),
        behind="self.language_model = OwnForCausalLM(vllm_config=vllm_config)",
    ),
    "super(Base, self) skips the base that has the line": Changed(
        wrap(
            BUILD,
            bases="BaseForConditionalGeneration",
            start="super(BaseForConditionalGeneration, self).__init__()",
            before=wrap(WIRED, name="BaseForConditionalGeneration"),
        )
    ),
    "a subclass that runs the base's __init__ is an heir": Changed(
        wrap(
            BUILD,
            after="""\
            class HeirForConditionalGeneration(WrapForConditionalGeneration):
                def __init__(self, *, vllm_config, prefix=""):
                    super().__init__(vllm_config=vllm_config, prefix=prefix)
                    self.more = 1
            """,
        ),
        heirs=("HeirForConditionalGeneration",),
    ),
    "a subclass that inherits __init__ whole is an heir": Changed(
        wrap(
            BUILD,
            after=f"class {HEIR}(WrapForConditionalGeneration): ...\n",
        ),
        heirs=("HeirForConditionalGeneration",),
    ),
    "a helper of the base is mended in the base, once": Changed(
        wrap(
            "self.init_llm(vllm_config)",
            within=INIT_LLM + FORWARD,
            after="""\
            class HeirForConditionalGeneration(WrapForConditionalGeneration):
                def __init__(self, *, vllm_config, prefix=""):
                    super().__init__(vllm_config=vllm_config, prefix=prefix)
                    self.more = 1
            """,
        ),
        behind="self.init_llm(vllm_config)",
        heirs=("HeirForConditionalGeneration",),
    ),
    "both sides of a diamond are heirs": Changed(
        wrap(
            BUILD,
            after="""\
            class LeftForConditionalGeneration(WrapForConditionalGeneration):
                pass


            class RightForConditionalGeneration(WrapForConditionalGeneration):
                def __init__(self, *, vllm_config, prefix=""):
                    super().__init__(vllm_config=vllm_config)


            class TipForConditionalGeneration(
                LeftForConditionalGeneration, RightForConditionalGeneration
            ):
                pass
            """,
        ),
        heirs=(
            "LeftForConditionalGeneration",
            "RightForConditionalGeneration",
            "TipForConditionalGeneration",
        ),
    ),
    "an earlier class of the same name is dead": Changed(
        wrap(
            BUILD,
            before="class WrapForConditionalGeneration(nn.Module, SupportsPP):\n"
            "    pass\n\n\n",
        )
    ),
    "SupportsPP behind an alias of the module": Changed(
        wrap(BUILD, before="Pipelined = SupportsPP\n\n\n").replace(
            "SupportsMultiModal, SupportsPP)", "SupportsMultiModal, Pipelined)"
        )
    ),
    "SupportsPP imported under another name": Changed(
        wrap(
            BUILD, before="from .interfaces import SupportsPP as Pipelined\n\n\n"
        ).replace("SupportsMultiModal, SupportsPP)", "SupportsMultiModal, Pipelined)")
    ),
    "SupportsPP through its module": Changed(
        wrap(BUILD, before="from . import interfaces\n\n\n").replace(
            "SupportsMultiModal, SupportsPP)",
            "SupportsMultiModal, interfaces.SupportsPP)",
        )
    ),
    "SupportsPP from a base in between": Changed(
        wrap(
            BUILD,
            before="class Pipelined(SupportsMultiModal, SupportsPP):\n    pass\n\n\n",
        ).replace(
            "(nn.Module, SupportsMultiModal, SupportsPP)", "(nn.Module, Pipelined)"
        )
    ),
}


@pytest.mark.parametrize("row", CHANGED.values(), ids=CHANGED)
def test_changed(judge, row):
    tree = judge(row.source)

    finding = tree.finding(row.class_name)
    assert finding.status == "fixable", finding.message
    behind, *lines = tree.added()
    assert (behind.strip(), lines) == (row.behind, list(row.lines))
    assert [heir.split(":")[1] for heir in finding.heirs] == list(row.heirs)
    others = set(tree.statuses().items()) - {(row.class_name, "fixable")}
    assert {status for _, status in others} <= {"satisfied", "exempt"}
    assert not set(row.heirs) & set(tree.statuses())


def test_second_run_changes_nothing(judge):
    for row in CHANGED.values():
        mended = judge({"wrap.py": judge(row.source).patched()[WRAP]})
        assert mended.patched() == {}
        assert set(mended.statuses().values()) <= {"satisfied", "exempt"}, row


@dataclass(frozen=True)
class Unchanged:
    """A tree that nothing is written to: the status, and words of its reason."""

    status: str
    says: str
    source: str
    class_name: str = "WrapForConditionalGeneration"
    at: str = ""
    """The line of the finding, if it matters."""


UNCHANGED = {
    # -- satisfied: the line that keeps the contract is named -----------------------
    "the statement is there": Unchanged(
        "satisfied",
        "WrapForConditionalGeneration.__init__ sets make_empty_intermediate_tensors",
        wrap(WIRED),
        at="self.make_empty_intermediate_tensors = (",
    ),
    "handed up from the model's backbone": Unchanged(
        "satisfied",
        "sets make_empty_intermediate_tensors",
        wrap(
            f"{BUILD}\nself.make_empty_intermediate_tensors = "
            "self.language_model.model.make_empty_intermediate_tensors"
        ),
    ),
    "handed up from a local variable": Unchanged(
        "satisfied",
        "sets make_empty_intermediate_tensors",
        wrap(
            "built = InnerForCausalLM(vllm_config=vllm_config)\n"
            "self.language_model = built\n"
            "self.make_empty_intermediate_tensors = "
            "built.make_empty_intermediate_tensors"
        ),
    ),
    "made by the factory": Unchanged(
        "satisfied",
        "sets make_empty_intermediate_tensors",
        wrap(
            f"{LACKING}\nself.make_empty_intermediate_tensors = "
            'make_empty_intermediate_tensors_factory(["x"], 8)'
        ),
    ),
    "set by setattr": Unchanged(
        "satisfied",
        "sets make_empty_intermediate_tensors",
        wrap(
            f"{BUILD}\nsetattr(\n    self,\n"
            '    "make_empty_intermediate_tensors",\n'
            "    self.language_model.make_empty_intermediate_tensors,\n)"
        ),
    ),
    "set by a helper method": Unchanged(
        "satisfied",
        "WrapForConditionalGeneration.wire sets make_empty_intermediate_tensors",
        wrap(
            f"{BUILD}\nself.wire()",
            within="""
    def wire(self):
        self.make_empty_intermediate_tensors = (
            self.language_model.make_empty_intermediate_tensors
        )
"""
            + FORWARD,
        ),
    ),
    "set in both branches": Unchanged(
        "satisfied",
        "sets make_empty_intermediate_tensors",
        wrap(
            f"""
            {BUILD}
            inner = self.language_model
            if vllm_config.deep:
                self.make_empty_intermediate_tensors = (
                    inner.model.make_empty_intermediate_tensors
                )
            else:
                self.make_empty_intermediate_tensors = (
                    inner.make_empty_intermediate_tensors
                )
            """
        ),
    ),
    "a method of its own": Unchanged(
        "satisfied",
        "WrapForConditionalGeneration defines make_empty_intermediate_tensors",
        wrap(
            BUILD,
            within="""
    def make_empty_intermediate_tensors(self, batch_size, dtype, device):
        return self.language_model.make_empty_intermediate_tensors(
            batch_size, dtype, device
        )
"""
            + FORWARD,
        ),
        at="def make_empty_intermediate_tensors(self, batch_size, dtype, device):",
    ),
    "a property of its own": Unchanged(
        "satisfied",
        "WrapForConditionalGeneration defines make_empty_intermediate_tensors",
        wrap(
            BUILD,
            within="""
    @property
    def make_empty_intermediate_tensors(self):
        return self.language_model.make_empty_intermediate_tensors
"""
            + FORWARD,
        ),
    ),
    "a class attribute of its own": Unchanged(
        "satisfied",
        "WrapForConditionalGeneration defines make_empty_intermediate_tensors",
        wrap(
            BUILD,
            within="\n    make_empty_intermediate_tensors = property(print)\n"
            + FORWARD,
        ),
    ),
    "a base that has the line": Unchanged(
        "satisfied",
        "WrapForConditionalGeneration.__init__ sets make_empty_intermediate_tensors",
        wrap(
            WIRED,
            after="""\
            class HeirForConditionalGeneration(WrapForConditionalGeneration):
                def __init__(self, *, vllm_config, prefix=""):
                    super().__init__(vllm_config=vllm_config)
                    self.more = 1
            """,
        ),
        class_name="HeirForConditionalGeneration",
        at="self.make_empty_intermediate_tensors = (",
    ),
    "a declining method that raises is a decision": Unchanged(
        "satisfied",
        "WrapForConditionalGeneration defines make_empty_intermediate_tensors",
        wrap(
            BUILD,
            within="""
    def make_empty_intermediate_tensors(self, batch_size, dtype, device):
        raise NotImplementedError("no pipelines here")
"""
            + FORWARD,
        ),
    ),
    # -- exempt: the contract does not apply ------------------------------------------
    "a draft of speculative decoding": Unchanged(
        "exempt",
        "is registered as a draft of speculative decoding",
        wrap(BUILD).replace("WrapForConditionalGeneration", "WrapMTP"),
        class_name="WrapMTP",
    ),
    "__new__ makes objects of another class": Unchanged(
        "exempt",
        "DoorForConditionalGeneration.__new__ returns an object of another class",
        wrap(
            WIRED,
            after="""\
            class DoorForConditionalGeneration(nn.Module, SupportsPP):
                def __new__(cls, *, vllm_config, prefix=""):
                    return WrapForConditionalGeneration(vllm_config=vllm_config)

                def __init__(self, *, vllm_config, prefix=""):
                    super().__init__()
            """,
        ),
        class_name="DoorForConditionalGeneration",
        at='def __new__(cls, *, vllm_config, prefix=""):',
    ),
    "a base that is neither registered nor built": Unchanged(
        "exempt",
        "BaseModel is neither registered nor built; its heirs are judged instead",
        wrap(
            WIRED,
            bases="BaseModel",
            before="""\
            class BaseModel(nn.Module, SupportsMultiModal, SupportsPP):
                def __init__(self, *, vllm_config, prefix=""):
                    super().__init__()


            """,
        ),
        class_name="BaseModel",
    ),
    # -- blocked: a real defect that the statement would not mend ---------------------
    "the inner model has no such attribute": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors: handing it up "
        "would fail at start-up even without pipeline parallelism. What would mend "
        "it: set make_empty_intermediate_tensors in the inner model first.",
        wrap(LACKING),
        at=LACKING,
    ),
    "the inner model misspells it": Unchanged(
        "blocked",
        "(TypoForCausalLM sets make_empty_intmd_tensors, which looks like a "
        "misspelling.)",
        wrap(LACKING.replace("Lacking", "Typo")),
    ),
    "the inner model only inherits the Protocol's stub": Unchanged(
        "blocked",
        "StubForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            LACKING.replace("Lacking", "Stub"),
            before="""\
            class StubForCausalLM(nn.Module, SupportsPP):
                def __init__(self, *, vllm_config):
                    super().__init__()
                    self.layers = []


            """,
        ),
    ),
    "the inner model only has a stub of its own": Unchanged(
        "blocked",
        "StubForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            LACKING.replace("Lacking", "Stub"),
            before='''\
            class StubForCausalLM(nn.Module):
                def make_empty_intermediate_tensors(self, batch_size, dtype, device):
                    """Make them."""
                    ...


            ''',
        ),
    ),
    "one of two branches builds a model without it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(f"if vllm_config.old:\n    {LACKING}\nelse:\n    {BUILD}"),
    ),
    "the class is chosen, and one choice lacks it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            "chosen = InnerForCausalLM if vllm_config.new else LackingForCausalLM\n"
            "self.language_model = chosen(vllm_config=vllm_config)"
        ),
    ),
    "a loop may choose a class without it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            """
            chosen = LackingForCausalLM
            for kind in vllm_config.kinds:
                chosen = InnerForCausalLM
            self.language_model = chosen(vllm_config=vllm_config)
            """
        ),
    ),
    "a case may leave the class without it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            """
            chosen = LackingForCausalLM
            match vllm_config.kind:
                case "new":
                    chosen = InnerForCausalLM
            self.language_model = chosen(vllm_config=vllm_config)
            """
        ),
    ),
    "a handler may choose a class without it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            """
            try:
                chosen = InnerForCausalLM
            except AttributeError:
                chosen = LackingForCausalLM
            self.language_model = chosen(vllm_config=vllm_config)
            """
        ),
    ),
    "a helper may return a class without it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            "chosen = pick(vllm_config.new, InnerForCausalLM, LackingForCausalLM)\n"
            "self.language_model = chosen(vllm_config=vllm_config)",
            before="""\
            def pick(flag, first, second):
                if flag:
                    return first
                return second


            """,
        ),
    ),
    "another rank has a placeholder": Unchanged(
        "blocked",
        "PPMissingLayer has no make_empty_intermediate_tensors",
        wrap(
            f"if vllm_config.first:\n    {BUILD}\n"
            "else:\n    self.language_model = PPMissingLayer()"
        ),
    ),
    "the named architecture lacks it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            "self.language_model = init_vllm_registered_model(\n"
            '    vllm_config, architectures=["LackingForCausalLM"]\n'
            ")"
        ),
    ),
    "one of several named architectures lacks it": Unchanged(
        "blocked",
        "LackingForCausalLM has no make_empty_intermediate_tensors",
        wrap(
            "self.language_model = init_vllm_registered_model(\n"
            "    vllm_config,\n"
            '    architectures=["InnerForCausalLM", "LackingForCausalLM"],\n'
            ")"
        ),
    ),
    "the model is put into another module": Unchanged(
        "blocked",
        "Shim has no make_empty_intermediate_tensors",
        wrap(
            "self.language_model = Shim(InnerForCausalLM(vllm_config=vllm_config))",
            before="""\
            class Shim(nn.Module):
                def __init__(self, inner):
                    super().__init__()
                    self.inner = inner


            """,
        ),
    ),
    "the statement hands up what does not exist": Unchanged(
        "blocked",
        "hands up make_empty_intermediate_tensors, but LackingForCausalLM has no "
        "make_empty_intermediate_tensors",
        wrap(WIRED.replace(BUILD, LACKING)),
        at="self.make_empty_intermediate_tensors = (",
    ),
    # -- unproven: the fact that is missing is named --------------------------------
    "the model is built only under a condition": Unchanged(
        "unproven",
        "self.language_model is set only under a condition",
        wrap(f"if vllm_config.text:\n    {BUILD}"),
    ),
    "the statement stands only under a condition": Unchanged(
        "unproven",
        "sets make_empty_intermediate_tensors only under a condition",
        wrap(
            f"{BUILD}\nif vllm_config.parallel:\n"
            "    self.make_empty_intermediate_tensors = (\n"
            "        self.language_model.make_empty_intermediate_tensors\n    )"
        ),
    ),
    "__init__ may return before the model is built": Unchanged(
        "unproven",
        "self.language_model is set only under a condition",
        wrap(f"if vllm_config.empty:\n    return\n{BUILD}"),
    ),
    "__init__ may return from a loop before the model is built": Unchanged(
        "unproven",
        "self.language_model is set only under a condition",
        wrap(f"for part in vllm_config:\n    if part:\n        return\n{BUILD}"),
    ),
    "one branch builds the model and returns": Unchanged(
        "unproven",
        "__init__ returns early",
        wrap(f"if vllm_config.fast:\n    {BUILD}\n    return\n{BUILD}"),
    ),
    "__init__ always raises": Unchanged(
        "unproven",
        "__init__ always raises",
        wrap(f"{BUILD}\nraise NotImplementedError"),
    ),
    "a handler swallows the failure": Unchanged(
        "unproven",
        "self.language_model is set only under a condition",
        wrap(f"try:\n    {BUILD}\nexcept KeyError:\n    pass"),
    ),
    "a context manager swallows the failure": Unchanged(
        "unproven",
        "self.language_model is set only under a condition",
        wrap(
            f"with suppress(KeyError):\n    {BUILD}",
            before="from contextlib import suppress\n\n\n",
        ),
    ),
    "a handler leaves what was bound halfway through": Unchanged(
        "unproven",
        "is not followed",
        wrap(
            "build = InnerForCausalLM\n"
            "try:\n"
            "    build = KINDS[vllm_config.kind]\n"
            "    vllm_config.check()\n"
            "    build = InnerForCausalLM\n"
            "except KeyError:\n"
            "    pass\n"
            "self.language_model = build(vllm_config=vllm_config)",
            before="KINDS = {}\n\n\n",
        ),
    ),
    "a loop is left before the name is bound again": Unchanged(
        "unproven",
        "is not followed",
        wrap(
            "build = InnerForCausalLM\n"
            "for kind in vllm_config.kinds:\n"
            "    build = KINDS[kind]\n"
            "    if kind:\n"
            "        break\n"
            "    build = InnerForCausalLM\n"
            "self.language_model = build(vllm_config=vllm_config)",
            before="KINDS = {}\n\n\n",
        ),
    ),
    "a context manager leaves what was bound halfway through": Unchanged(
        "unproven",
        "is not followed",
        wrap(
            "build = InnerForCausalLM\n"
            "with suppress(KeyError):\n"
            "    build = KINDS[vllm_config.kind]\n"
            "    vllm_config.check()\n"
            "    build = InnerForCausalLM\n"
            "self.language_model = build(vllm_config=vllm_config)",
            before="from contextlib import suppress\n\nKINDS = {}\n\n\n",
        ),
    ),
    "the model may be None": Unchanged(
        "unproven",
        "self.language_model may be None, and then has nothing to hand up",
        wrap(
            f"if vllm_config.text:\n    {BUILD}\nelse:\n    self.language_model = None"
        ),
    ),
    "the model may become None later": Unchanged(
        "unproven",
        "self.language_model may be None",
        wrap(f"{BUILD}\nif vllm_config.empty:\n    self.language_model = None"),
    ),
    "a helper may end without returning the model": Unchanged(
        "unproven",
        "self.language_model may be None",
        wrap(
            "self.language_model = self.build(vllm_config)",
            within="""
    def build(self, vllm_config):
        if vllm_config.text:
            return InnerForCausalLM(vllm_config=vllm_config)
"""
            + FORWARD,
        ),
    ),
    "the model is deleted again": Unchanged(
        "unproven",
        "a deleted attribute is not followed",
        wrap(f"{BUILD}\ndel self.language_model"),
    ),
    "the model is compiled by code outside the tree": Unchanged(
        "unproven",
        "torch.compile(...) is not followed",
        wrap(
            "self.language_model = torch.compile(\n"
            "    InnerForCausalLM(vllm_config=vllm_config)\n)",
            before="import torch\n\n\n",
        ),
    ),
    "the class comes from a table": Unchanged(
        "unproven",
        "is not followed",
        wrap(
            "self.language_model = KINDS[vllm_config.kind](vllm_config=vllm_config)",
            before='KINDS = {"a": InnerForCausalLM, "b": InnerForCausalLM}\n\n\n',
        ),
    ),
    "the signs name two attributes": Unchanged(
        "unproven",
        "the signs disagree on what holds the language model",
        wrap(
            f"with self._mark_language_model(vllm_config):\n    {BUILD}\n"
            "self.other = InnerForCausalLM(vllm_config=vllm_config)",
            within="""
    def get_language_model(self):
        return self.other
"""
            + FORWARD,
        ),
    ),
    "the signs name no attribute": Unchanged(
        "unproven",
        "no attribute could be told to hold the language model",
        wrap("self.scale = 2", within="\n    scale_by = 2\n"),
    ),
    "no architecture of that name is registered": Unchanged(
        "unproven",
        "no class of the tree is registered as NobodyForCausalLM",
        wrap(
            "self.language_model = init_vllm_registered_model(\n"
            '    vllm_config, architectures=["NobodyForCausalLM"]\n'
            ")"
        ),
    ),
    "a subclass has a method of its own": Unchanged(
        "unproven",
        "HeirForConditionalGeneration runs it too and has a "
        "make_empty_intermediate_tensors of its own",
        wrap(
            BUILD,
            after="""\
            class HeirForConditionalGeneration(WrapForConditionalGeneration):
                @property
                def make_empty_intermediate_tensors(self):
                    return self.language_model.make_empty_intermediate_tensors
            """,
        ),
    ),
    "a subclass builds a model without it": Unchanged(
        "unproven",
        "HeirForConditionalGeneration runs it too and LackingForCausalLM has no "
        "make_empty_intermediate_tensors",
        wrap(
            "self.language_model = self.build(vllm_config)",
            within="""
    def build(self, vllm_config):
        return InnerForCausalLM(vllm_config=vllm_config)
"""
            + FORWARD,
            after="""\
            class HeirForConditionalGeneration(WrapForConditionalGeneration):
                def build(self, vllm_config):
                    return LackingForCausalLM(vllm_config=vllm_config)
            """,
        ),
    ),
    "the body of __init__ stands behind its colon": Unchanged(
        "unproven",
        "the body of __init__ has no lines of its own",
        "class WrapForConditionalGeneration(nn.Module, SupportsPP):\n"
        f"    def __init__(self, *, vllm_config): super().__init__(); {BUILD}\n"
        + FORWARD,
    ),
    "self has another name": Unchanged(
        "unproven",
        "__init__ does not keep its object under the name self",
        wrap(BUILD)
        .replace("self, *, vllm_config", "this, *, vllm_config")
        .replace("self.language_model = ", "this.language_model = "),
    ),
    "__init__ is another function": Unchanged(
        "unproven",
        "no __init__ of WrapForConditionalGeneration can be read",
        wrap(
            WIRED,
            name="BaseForConditionalGeneration",
            after="""\
            class WrapForConditionalGeneration(BaseForConditionalGeneration):
                __init__ = shared
            """,
        ),
    ),
}


@pytest.mark.parametrize("row", UNCHANGED.values(), ids=UNCHANGED)
def test_unchanged(judge, row):
    tree = judge(row.source)

    finding = tree.finding(row.class_name)
    assert (finding.status, row.says in finding.message) == (row.status, True), finding
    assert finding.edits == ()
    assert WRAP not in {e.file for f in tree.result.findings for e in f.edits}
    if row.at:
        assert tree.text_at(finding.file, finding.line) == row.at


def test_a_right_name_is_no_misspelling(judge):
    tree = judge(UNCHANGED["another rank has a placeholder"].source)
    assert "misspelling" not in tree.finding("WrapForConditionalGeneration").message


def test_about_as_many_trees_are_left_alone_as_are_mended():
    assert len(UNCHANGED) >= len(CHANGED)


SILENT = {
    "no SupportsPP at all": wrap(BUILD).replace(", SupportsPP)", ")"),
    "SupportsPP for type checkers only": wrap(
        BUILD,
        before="""\
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from .interfaces import SupportsPP as Pipelined
        else:
            Pipelined = object


        """,
    ).replace("SupportsMultiModal, SupportsPP)", "SupportsMultiModal, Pipelined)"),
    "SupportsPP imported over a stand-in, for type checkers": wrap(
        BUILD,
        bases="nn.Module, SupportsMultiModal, Pipelined",
        before="""\
        import typing

        Pipelined = object
        if typing.TYPE_CHECKING:
            from .interfaces import SupportsPP as Pipelined


        """,
    ),
    "another class of that name": wrap(
        BUILD, before="class SupportsPP:\n    pass\n\n\n"
    ),
    "SupportsPP as a word in a string": wrap(BUILD).replace(
        ", SupportsPP)", ', metaclass=named("SupportsPP"))'
    ),
}


@pytest.mark.parametrize("source", SILENT.values(), ids=SILENT)
def test_no_finding_where_no_promise_is_made(judge, source):
    assert set(judge(source).statuses()) == {"InnerForCausalLM"}
