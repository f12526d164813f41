"""What is new: the findings that a base, or a baseline, does not have already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vlmend.cli.select import Selection

if TYPE_CHECKING:
    from vlmend.cli.changed import Compared
    from vlmend.cli.judge import Judged
    from vlmend.codemods.codemod import Finding, ScanResult, Status


@dataclass(frozen=True, slots=True)
class Guard:
    """How a scan is narrowed to what is new.

    Attributes:
        selection: what was asked for, without what is known.
        compared: the change, where one was asked about.
        baseline: where the known findings are listed; empty where they are not.
        listed: the findings of the baseline.
    """

    selection: Selection
    compared: Compared | None = None
    baseline: str = ""
    listed: Mapping[str, Status] = field(default_factory=dict[str, "Status"])

    def gone(self, judged: Judged) -> int:
        """Count what the baseline lists and the tree no longer has."""
        from vlmend.codemods.suppressions import SUPPRESSIBLE

        found = {
            f.fingerprint for f in judged.result.findings if f.status in SUPPRESSIBLE
        }
        return len(self.listed.keys() - found)


def guard(judged: Judged, baseline: Path | None) -> Guard:
    """Narrow a judgement to what is new.

    Raises:
        UserError: the baseline is no use.
    """
    place, listed = _baseline(judged, baseline)
    known = dict(listed)
    compared = judged.compared
    touched = None
    if compared is not None:
        touched = compared.touched
        for finding in compared.before.findings:
            if finding.fingerprint not in listed:
                known[finding.fingerprint] = finding.status
        known |= _moved(compared.before, judged.result, known)
    selection = replace(judged.selection, touched=touched, known=known)
    return Guard(selection, compared, place, listed)


def _moved(
    before: ScanResult, after: ScanResult, known: Mapping[str, Status]
) -> Mapping[str, Status]:
    """Return the findings whose class is in another file now, by fingerprint.

    The same defect of a class of the same name that is gone from where it was: moving a
    file, as vLLM does when a model gets a package of its own, breaks nothing.
    """
    here = {finding.fingerprint for finding in after.findings}
    stays = {model.key for model in after.models} | {f.key for f in after.findings}
    gone: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in before.findings:
        if finding.fingerprint not in here and finding.key not in stays:
            gone.setdefault(_moving(finding), []).append(finding)
    moved: dict[str, Status] = {}
    for finding in after.findings:
        was = gone.get(_moving(finding))
        if was and finding.fingerprint not in known:
            one = was.pop()
            moved[finding.fingerprint] = known.get(one.fingerprint, one.status)
    return moved


def _moving(finding: Finding) -> tuple[str, str, str]:
    """Return what a finding is, wherever its class stands."""
    return finding.codemod, finding.class_name, finding.shape


def _baseline(judged: Judged, typed: Path | None) -> tuple[str, Mapping[str, Status]]:
    from vlmend.cli.baseline import parse_baseline, read_baseline

    if typed is not None:
        return str(typed), read_baseline(typed)
    settings = judged.settings
    if settings is None or settings.baseline is None:
        return "", {}
    if settings.folder is not None:
        place = settings.folder / settings.baseline
        return str(place), read_baseline(place)
    from vlmend.cli.errors import UserError
    from vlmend.codemods.analysis.tree import TreeError

    try:
        content = judged.target.tree.read(settings.baseline)
    except TreeError as error:
        raise UserError(
            f"{settings.place}: baseline {error}",
            hint=f"vlmend scan --write-baseline {settings.baseline} writes one",
        ) from None
    return settings.baseline, parse_baseline(settings.baseline, content)
