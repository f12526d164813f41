"""A proof for people (text, Markdown) and for tools (JSON)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.console import printable
from vlmend.cli.report.markdown import escaped
from vlmend.cli.report.words import faint, place, strong, wrapped
from vlmend.cli.version import version

if TYPE_CHECKING:
    from vlmend.cli.proof.prove import Proof
    from vlmend.cli.proof.regression import RegressionTest

SCHEMA_VERSION: Final = 1
LIMITS_OF_IT: Final = (
    "Not shown by this: numerics, sending and receiving between real ranks, weight"
    " loading, attention kernels, torch.compile, CUDA-only classes, quantised paths,"
    " and serving. The models were built on the meta device, without weights, under"
    " pretended ranks."
)


def text(
    proofs: Sequence[Proof], tests: Sequence[RegressionTest], width: int
) -> Iterator[str]:
    """Yield the verdicts with what each rests on."""
    for proof in proofs:
        finding, verdict = proof.finding, proof.verdict
        yield f"{strong(verdict.outcome)}  {strong(printable(finding.class_name))}"
        where = place(finding.file, finding.line, finding.source)
        yield f"  {where}  {faint(f'{finding.codemod} {finding.fingerprint}')}"
        yield wrapped(f"{verdict.reason} (stage: {verdict.stage})", width, "  ")
        for at, before, after in verdict.shown:
            yield wrapped(f"{at}, before: {before}", width, "    ", "      ")
            yield wrapped(f"{at}, after:  {after}", width, "    ", "      ")
        config = describe_config(proof)
        if config:
            yield wrapped(config, width, "    ", "      ")
        yield ""
    for test in tests:
        yield f"{strong('test')}  {test.file}: {describe_test(test)}"
        if test.is_shown:
            yield ""
            yield from (f"    {line}".rstrip() for line in test.text.splitlines())
            yield ""
    yield strong(tally(proofs))
    if proofs:
        yield faint(describe_versions(proofs[0]))
        yield wrapped(LIMITS_OF_IT, width, "")


def tally(proofs: Sequence[Proof]) -> str:
    """Return the counts in one line."""
    counts = Counter(proof.verdict.outcome for proof in proofs)
    if not counts:
        return "Nothing to prove."
    return ", ".join(f"{counts[o]} {o}" for o in counts)


def describe_versions(proof: Proof) -> str:
    """Return what the trees ran with."""
    return ", ".join(f"{name} {v}" for name, v in proof.versions.items())


def describe_config(proof: Proof) -> str:
    """Return which configuration was used and what was filled in."""
    config = proof.config
    if not config:
        return ""
    origin = f"from {config['origin']}" if config.get("origin") else ""
    named = config.get("read_as") or config.get("class") or "as given"
    text_ = f"config: {named} {origin}".rstrip()
    if config.get("values"):
        values = ", ".join(f"{k}={v!r}" for k, v in config["values"].items())
        text_ += f", with {values}"
    if config.get("filled_in"):
        text_ += f"; defaults for {', '.join(config['filled_in'])}"
    return printable(text_)


def describe_test(test: RegressionTest) -> str:
    """Say what a regression test has shown."""
    if test.is_shown:
        return f"fails before, passes after ({', '.join(test.classes)})"
    last = (test.after.strip().splitlines() or ["no answer"])[-1]
    return f"not offered: it does not fail before and pass after ({last})"


def document(
    proofs: Sequence[Proof], tests: Sequence[RegressionTest], target: dict[str, Any]
) -> dict[str, Any]:
    """Return the document of ``verify --format json``."""
    return {
        "schema_version": SCHEMA_VERSION,
        "vlmend": version(),
        "target": target,
        "proofs": [_proof(proof) for proof in proofs],
        "tests": [
            {
                "file": test.file,
                "text": test.text,
                "classes": list(test.classes),
                "offered": test.is_shown,
                "selected_by": test.selected,
                "before": test.before,
                "after": test.after,
            }
            for test in tests
        ],
        "summary": dict(Counter(str(p.verdict.outcome) for p in proofs)),
        "not_shown": LIMITS_OF_IT,
    }


def _proof(proof: Proof) -> dict[str, Any]:
    finding, verdict = proof.finding, proof.verdict
    return {
        "fingerprint": finding.fingerprint,
        "codemod": finding.codemod,
        "module": finding.module,
        "class": finding.class_name,
        "file": finding.file,
        "line": finding.line,
        "verdict": str(verdict.outcome),
        "stage": verdict.stage,
        "reason": verdict.reason,
        "versions": dict(proof.versions),
        "config": dict(proof.config),
        "seconds": proof.seconds,
        "runs": [
            {
                "pipeline_parallel_size": run.size,
                "rank": run.rank,
                "before": dict(run.before),
                "after": dict(run.after),
            }
            for run in proof.scenarios
        ],
    }


def markdown(
    proofs: Sequence[Proof], tests: Sequence[RegressionTest] = ()
) -> Iterator[str]:
    """Yield the block that goes into the text of a pull request.

    Only what was proven is claimed; the rest is named with its reason.
    """
    if not proofs:
        return
    yield "| class | run | before | after |"
    yield "| --- | --- | --- | --- |"
    for proof in proofs:
        for at, before, after in verdict_rows(proof):
            name = f"**{escaped(proof.finding.class_name)}**"
            yield f"| {name} | {escaped(at)} | {_cell(before)} | {_cell(after)} |"
    yield ""
    for proof in proofs:
        yield (
            f"- {escaped(proof.finding.class_name)}: {proof.verdict.outcome}."
            f" {escaped(proof.verdict.reason)}."
        )
        config = describe_config(proof)
        if config:
            yield f"  {escaped(config)}."
    yield ""
    yield f"Run with {escaped(describe_versions(proofs[0]))}. {LIMITS_OF_IT}"
    for test in tests:
        if test.is_shown:
            yield ""
            yield f"`{test.file}` before the change:"
            yield from _fenced(test.before)
            yield "and after it:"
            yield from _fenced(test.after)


def _fenced(output: str) -> Iterator[str]:
    fence = "`" * (3 + output.count("```"))
    yield ""
    yield f"{fence}text"
    yield from (printable(line) for line in output.strip().splitlines())
    yield fence
    yield ""


def verdict_rows(proof: Proof) -> tuple[tuple[str, str, str], ...]:
    """Return the rows of a proof: where, before, after."""
    return proof.verdict.shown


def _cell(words: str) -> str:
    """Return words for a table cell; code spans stay code."""
    parts = printable(" ".join(words.split())).split("`")
    return "".join(
        _code(part) if at % 2 else escaped(part) for at, part in enumerate(parts)
    )


def _code(words: str) -> str:
    return "`" + words.replace("|", r"\|") + "`"
