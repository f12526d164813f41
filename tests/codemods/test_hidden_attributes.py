"""A class that may have the attribute in a way that is not read is left alone."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

SELF = "self.language_model.make_empty_intermediate_tensors"
BUILD = "self.language_model = InnerForCausalLM(vllm_config=vllm_config)"
PLAIN = f"""\
class WrapForConditionalGeneration(nn.Module, SupportsMultiModal, SupportsPP):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        {BUILD}

    def forward(self, input_ids, positions, intermediate_tensors=None):
        return self.language_model(input_ids, positions, intermediate_tensors)
"""


def more(statements: str) -> str:
    """Return the plain wrapper with statements behind the language model."""
    return PLAIN.replace(BUILD, f"{BUILD}\n{indent(dedent(statements), ' ' * 8)}")


def member(text: str) -> str:
    """Return the plain wrapper with more in its class body."""
    return PLAIN + indent(dedent(text), "    ")


HIDDEN = {
    "setattr with a computed name": (
        more(
            """
            for name in self.delegated:
                setattr(self, name, getattr(self.language_model, name))
            """
        ),
        "wrap.py:19 sets an attribute whose name is computed",
    ),
    "setattr in a loop over names": (
        more(
            """
            for name in ("make_empty_intermediate_tensors", "embed"):
                setattr(self, name, getattr(self.language_model, name))
            """
        ),
        "WrapForConditionalGeneration mentions make_empty_intermediate_tensors in line",
    ),
    "object.__setattr__": (
        more(f'object.__setattr__(self, "make_empty_intermediate_tensors", {SELF})'),
        "WrapForConditionalGeneration mentions make_empty_intermediate_tensors in line",
    ),
    "its __dict__ by key": (
        more(f'self.__dict__["make_empty_intermediate_tensors"] = {SELF}'),
        "WrapForConditionalGeneration mentions make_empty_intermediate_tensors in line",
    ),
    "its __dict__ by keyword": (
        more(f"vars(self).update(make_empty_intermediate_tensors={SELF})"),
        "WrapForConditionalGeneration mentions make_empty_intermediate_tensors in line",
    ),
    "set on the inner model from outside": (
        more("self.language_model.make_empty_intermediate_tensors = print"),
        "WrapForConditionalGeneration mentions make_empty_intermediate_tensors in line",
    ),
    "a function of another package gets self": (
        "from vllm.wiring import wire\n\n\n" + more("wire(self)"),
        "vllm.wiring.wire gets self at ",
    ),
    "a decorated __init__": (
        "from vllm.wiring import wired\n\n\n"
        + PLAIN.replace("    def __init__", "    @wired(1)\n    def __init__"),
        "WrapForConditionalGeneration.__init__ is decorated with @wired",
    ),
    "a decorator of the class": (
        dedent(
            f"""\
            def wired(cls):
                cls.make_empty_intermediate_tensors = lambda self: {SELF}
                return cls


            @wired
            """
        )
        + PLAIN,
        "the decorator wired of WrapForConditionalGeneration speaks of",
    ),
    "patched onto the class below it": (
        PLAIN
        + "\n\nWrapForConditionalGeneration.make_empty_intermediate_tensors = print\n",
        "wrap.py:22 sets make_empty_intermediate_tensors of the class Wrap",
    ),
    "setattr on the class below it": (
        PLAIN
        + "\n\nsetattr(WrapForConditionalGeneration, "
        + '"make_empty_intermediate_tensors", print)\n',
        "wrap.py:22 sets make_empty_intermediate_tensors of the class Wrap",
    ),
    "__init_subclass__ of a base": (
        dedent(
            f"""\
            class Wiring:
                def __init_subclass__(cls, **kwargs):
                    cls.make_empty_intermediate_tensors = lambda self: {SELF}


            """
        )
        + PLAIN.replace("nn.Module, ", "nn.Module, Wiring, "),
        "Wiring mentions make_empty_intermediate_tensors in line",
    ),
    "a base outside the tree": (
        "from elsewhere import Wiring\n\n\n"
        + PLAIN.replace("nn.Module, ", "nn.Module, Wiring, "),
        "the base elsewhere.Wiring lies outside what is read",
    ),
    "a base in a package that is not read": (
        "from vllm.wiring import Wiring\n\n\n"
        + PLAIN.replace("nn.Module, ", "nn.Module, Wiring, "),
        "the base vllm.wiring.Wiring lies outside what is read",
    ),
    "a base that is the result of a call": (
        PLAIN.replace("nn.Module, ", "mixed(nn.Module), "),
        "the base mixed(nn.Module) of WrapForConditionalGeneration is no plain name",
    ),
    "a base that cannot be found": (
        PLAIN.replace("nn.Module, ", "nn.Module, Nowhere, "),
        "the base Nowhere of WrapForConditionalGeneration is unknown",
    ),
    "a base that depends on the platform": (
        dedent(
            """\
            if on_gpu():
                from .inner import InnerForCausalLM as Wiring
            else:
                from .inner import LackingForCausalLM as Wiring


            """
        )
        + PLAIN.replace("nn.Module, ", "Wiring, "),
        "the base Wiring of WrapForConditionalGeneration depends on a condition",
    ),
    "__getattr__": (
        member("\ndef __getattr__(self, name):\n    return self.inner[name]\n"),
        "WrapForConditionalGeneration forwards attributes by __getattr__",
    ),
    "__getattr__ as an alias": (
        member("\n__getattr__ = forward_to_inner\n"),
        "WrapForConditionalGeneration forwards attributes by __getattr__",
    ),
    "__getattribute__": (
        member("\ndef __getattribute__(self, name):\n    return self.inner[name]\n"),
        "WrapForConditionalGeneration intercepts attributes by __getattribute__",
    ),
    "__setattr__": (
        member("\ndef __setattr__(self, name, value):\n    self.inner[name] = value\n"),
        "WrapForConditionalGeneration intercepts attributes by __setattr__",
    ),
    "a call of itself": (
        more("self.again()").replace(
            "\n    def forward",
            "\n    def again(self):\n        self.again()\n\n    def forward",
        ),
        "again() calls itself; not followed",
    ),
    "an expression that Python cannot walk": (
        more(f"self.size = {' + '.join(['1'] * 900)}"),
        "__init__ holds an expression that is nested too deeply",
    ),
}


@pytest.mark.parametrize(("source", "reason"), HIDDEN.values(), ids=HIDDEN)
def test_missing_is_not_said_where_something_may_hide(judge, source, reason):
    finding = judge(source).finding("WrapForConditionalGeneration")

    assert finding.status == "unproven"
    assert reason in finding.message


NOT_HIDDEN = {
    "a comment": more(f"# inner.make_empty_intermediate_tensors = {SELF}"),
    "setattr in a loop over other names": more(
        """
        for name in ("start", "end"):
            setattr(self, name, nn.Parameter())
        """
    ),
    "a call of it": member(
        """
        def warm_up(self):
            return self.make_empty_intermediate_tensors(1, None, None)
        """
    ),
    "a function of torch gets self": "import torch\n\n\n" + more("torch.compile(self)"),
    "a decorator that does not speak of it": (
        f"def named(cls):\n    cls.name = 1\n    return cls\n\n\n@named\n{PLAIN}"
    ),
    "another class is patched": PLAIN
    + "\n\nInnerForCausalLM.make_empty_intermediate_tensors = print\n",
}


@pytest.mark.parametrize("source", NOT_HIDDEN.values(), ids=NOT_HIDDEN)
def test_harmless_code_hides_nothing(judge, source):
    assert judge(source).finding("WrapForConditionalGeneration").status == "fixable"


def test_a_base_whose_file_does_not_speak_of_it_hides_nothing(judge):
    tree = judge(
        "from vllm.wiring import Wiring\n\n\n"
        + PLAIN.replace("nn.Module, ", "nn.Module, Wiring, ")
    )
    assert tree.finding("WrapForConditionalGeneration").status == "unproven"

    header = tree.files["vllm/model_executor/models/wrap.py"].decode()
    tree = judge({"wrap.py": header, "vllm/wiring.py": "class Wiring:\n    pass\n"})
    assert tree.finding("WrapForConditionalGeneration").status == "fixable"


INNER = {
    "it sets the attribute only under a condition": (
        """
        def __init__(self, *, vllm_config):
            super().__init__()
            if vllm_config.parallel:
                self.make_empty_intermediate_tensors = print
        """,
        "OwnForCausalLM sets make_empty_intermediate_tensors only under a condition",
    ),
    "it sets None": (
        """
        def __init__(self, *, vllm_config):
            super().__init__()
            self.make_empty_intermediate_tensors = None
        """,
        "None is not followed",
    ),
    "its class sets None": (
        "make_empty_intermediate_tensors = None  # not yet",
        "OwnForCausalLM sets make_empty_intermediate_tensors to None",
    ),
    "it deletes the attribute": (
        """
        def __init__(self, *, vllm_config):
            super().__init__()
            self.make_empty_intermediate_tensors = print
            del self.make_empty_intermediate_tensors
        """,
        "a deleted attribute is not followed",
    ),
    "its method only raises": (
        """
        def make_empty_intermediate_tensors(self, *shape):
            '''Not here.'''
            raise NotImplementedError
        """,
        "OwnForCausalLM.make_empty_intermediate_tensors only raises",
    ),
    "its __new__ makes another object": (
        """
        def __new__(cls, *, vllm_config):
            return LackingForCausalLM(vllm_config=vllm_config)

        def make_empty_intermediate_tensors(self, *shape):
            return shape
        """,
        "OwnForCausalLM.__new__ returns an object of another class",
    ),
    "it forwards by __getattr__": (
        """
        def __getattr__(self, name):
            return getattr(self.inner, name)
        """,
        "OwnForCausalLM forwards attributes by __getattr__",
    ),
    "it contains itself": (
        """
        def __init__(self, *, vllm_config):
            super().__init__()
            self.twin = OwnForCausalLM(vllm_config=vllm_config)
            self.make_empty_intermediate_tensors = (
                self.twin.make_empty_intermediate_tensors
            )
        """,
        "OwnForCausalLM contains itself",
    ),
}


@pytest.mark.parametrize(("body", "reason"), INNER.values(), ids=INNER)
def test_an_inner_model_is_not_trusted_where(judge, body, reason):
    tree = judge(
        f"class OwnForCausalLM(nn.Module):\n{indent(dedent(body), '    ')}\n\n\n"
        + PLAIN.replace("InnerForCausalLM", "OwnForCausalLM")
    )

    finding = tree.finding("WrapForConditionalGeneration")
    assert finding.status == "unproven"
    assert f"whether self.language_model has it ({reason})" in finding.message
