"""One view of one class, with what every rule about it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vlmend.codemods.analysis.architectures_contract import ArchitecturesContract
from vlmend.codemods.analysis.given_elsewhere import Assigned, assigned_name
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.narrowing import Narrowing
from vlmend.codemods.analysis.text_configs import TextConfig, Unknown
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.analysis.view_configs import ViewConfig, view_config
from vlmend.codemods.analysis.view_verdicts import ViewVerdict
from vlmend.codemods.codemod import Evidence, Status
from vlmend.codemods.rewriting.add_architectures import AddArchitectures


@dataclass(frozen=True)
class ViewCase:
    """A view to judge.

    Attributes:
        index: the tree.
        contract: what the tree demands of views.
        ref: the class that makes the view.
        view: the call that makes it.
    """

    index: ModelIndex
    contract: ArchitecturesContract
    ref: ClassRef
    view: Narrowing

    @cached_property
    def here(self) -> Evidence:
        """The call, as the first link of every chain."""
        site = self.view.site
        kind = self.index.source_kind(site.module)
        what = "the model that the registry finds" if self.view.by_registry else "it"
        if self.view.built is not None:
            what = self.view.built.name
        said = f"the view that {what} is built with is made here"
        return Evidence(kind, site.file, site.line, said)

    @cached_property
    def config(self) -> ViewConfig:
        """What the view is made of, under the releases that the tree allows."""
        view = self.view
        assert view.config is not None, "a whole view is judged before"
        return view_config(
            self.index, self.ref, view.config, view.built, tower=view.tower
        )

    @property
    def pin(self) -> TextConfig | Unknown:
        """The config class in the release that the tree is tested with."""
        return self.config.pin

    @cached_property
    def chain(self) -> tuple[Evidence, ...]:
        """The call, and how the config class is known."""
        return (self.here, *self.pin.evidence)

    @cached_property
    def assigned(self) -> Assigned | None:
        """An assignment that names the view before it is made."""
        return assigned_name(self.index, self.ref, self.view)

    def says(
        self,
        status: Status,
        said: str,
        chain: tuple[Evidence, ...],
        *,
        name: str = "",
        edit: AddArchitectures | None = None,
        given: bool = False,
    ) -> ViewVerdict:
        """Return the verdict that is said of this view; see :class:`ViewVerdict`."""
        return ViewVerdict(
            self.ref, self.view, status, said, chain, name=name, edit=edit, given=given
        )
