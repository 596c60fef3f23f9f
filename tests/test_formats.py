"""The gate's findings in each form: what a reader, a parser, a runner and a scanner must be able to take."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest
from jsonschema import Draft202012Validator

from cases import catalogue
from reports import accept
from reports.formats import FORMATS, render, text
from reports.gate import Report, Settings, gate
from reports.kinds import KINDS
from reports.style import Style
from reports.verbs import gate as verb
from reports.verbs import main
from tests.pairs import asked, failing, pair

ADD, SUB = "placement/add/device-device", "placement/sub/device-device"
MIXED = "placement/mul/host-accelerator"
NASTY = "<b>%0A::error::]]>&\x1b[31m\x00\u2028\uffffé\ud800 | `x` *y*"
#: The part of SARIF 2.1.0 that is used here: what a scanner refuses a file for.
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "$schema", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"type": "string", "pattern": "^https://.*sarif.*2\\.1\\.0"},
        "runs": {"type": "array", "minItems": 1, "items": {
            "type": "object",
            "required": ["tool", "results"],
            "additionalProperties": False,
            "properties": {
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
                    "type": "object", "required": ["name", "version", "rules"],
                    "properties": {"rules": {"type": "array", "uniqueItems": True, "items": {
                        "type": "object", "required": ["id", "shortDescription", "help", "defaultConfiguration"],
                        "properties": {
                            "id": {"type": "string"},
                            "shortDescription": {"$ref": "#/$defs/message"}, "help": {"$ref": "#/$defs/message"},
                            "defaultConfiguration": {"properties": {"level": {"$ref": "#/$defs/level"}}, "required": ["level"]},
                        },
                    }}},
                }}},
                "results": {"type": "array", "items": {
                    "type": "object",
                    "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
                    "additionalProperties": False,
                    "properties": {
                        "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": 0}, "level": {"$ref": "#/$defs/level"},
                        "message": {"$ref": "#/$defs/message"}, "properties": {"type": "object"},
                        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                        "locations": {"type": "array", "minItems": 1, "items": {
                            "type": "object", "required": ["physicalLocation"], "additionalProperties": False,
                            "properties": {
                                "physicalLocation": {
                                    "type": "object", "required": ["artifactLocation", "region"],
                                    "properties": {
                                        "artifactLocation": {"properties": {"uri": {"type": "string", "pattern": "^[^\\s\\\\]+$"}}},
                                        "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
                                    },
                                },
                                "logicalLocations": {"type": "array", "items": {"required": ["fullyQualifiedName"]}},
                            },
                        }},
                    },
                }},
            },
        }},
    },
    "$defs": {
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
    },
}  # fmt: skip


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Return a report with everything in it: alike changes, a listed one, a missing cell, a stale entry, uses, nasty texts."""
    source = tmp_path / "src" / "my code.py"
    source.parent.mkdir()
    source.write_text("import tests_of_dummy\n")
    path = tmp_path / "accepted.toml"
    path.write_text(
        '[[accept]]\ncase = "placement/mul/device-device"\nkind = "dtype"\nold = "*"\nnew = "*"\nreason = "gone"\nuntil = "9"\n'
        '[[accept]]\ncase = "placement/div/device-device"\nkind = "tightened"\nold = "*"\nnew = "*"\nreason = "a | b"\nuntil = "9"\n'
    )
    old = asked("accel", ADD, SUB, MIXED, "placement/mul/device-device", "placement/div/device-device", "placement/less/device-device")
    new = [
        *asked("garbles-computing", ADD, SUB), failing(MIXED, type="NastyError", text=NASTY),
        *asked("accel", "placement/mul/device-device"), *asked("refuses-computing", "placement/div/device-device"),
    ]  # fmt: skip
    found = gate(*pair(tmp_path, old, new), Settings(accept=path), accept.read(path))
    assert [f.change.kind for f in found.findings] == ["silent", "silent", "error-class", "missing", "stale"]
    from reports.uses import Use

    used = replace(found.findings[0], uses=(Use(source, 7, "y = a + b # 50 %, really", True), Use(source, 9, "z", False)))
    return replace(found, findings=(used, *found.findings[1:]), searched=True)


def test_the_verb_knows_the_forms_without_importing_them() -> None:
    assert verb.FORMATS == FORMATS


@pytest.mark.parametrize("form", FORMATS)
def test_every_form_names_every_finding_and_no_form_lets_a_text_steer(report: Report, form: str) -> None:
    made = render(form, report)
    for finding in report.findings:
        one = finding.change
        assert (one.case or one.detail.split(":")[0][:20]) in made
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u2028\ud800-\udfff]", made)
    made.encode("utf-8")


# --- text --------------------------------------------------------------------------------------------


def test_text_puts_alike_changes_together_and_tells_all_of_one(report: Report) -> None:
    made = render("text", replace(report, findings=report.findings[1:]))
    finding = report.findings[1]
    for said in (
        catalogue()[SUB].question, "works → garbage", f"look for: {finding.look_for[0]}", f"look at: {KINDS['silent'].advice}",
        f"dummy:accel {SUB}", "accepted: dummy:accel placement/div/device-device, tightened: a | b",
    ):  # fmt: skip
        assert said in " ".join(made.split())
    both = replace(report, findings=(replace(report.findings[0], uses=()), *report.findings[1:]))
    assert f"dummy:accel {ADD} (2 cases)" in render("text", both)
    assert f"likewise: {SUB}" in render("text", both)


def test_text_lists_what_is_in_somebody_s_code_first_with_file_and_line(report: Report) -> None:
    made = render("text", report)
    assert "6 changes, 1 of them in your code: 5 denied, 1 accepted" in " ".join(made.split())
    assert made.index("in your code, denied: silent") < made.index("\ndenied: silent")
    assert f"{report.findings[0].uses[0].path}:7: y = a + b # 50 %, really" in made
    assert f"{report.findings[0].uses[0].path}:9: z (perhaps)" in made


def test_text_keeps_to_the_width_and_can_be_brief(report: Report) -> None:
    made = text.render(report, Style(90), full=False)
    assert "ask it yourself" not in made
    assert max(len(one) for one in made.splitlines() if "/" not in one) <= 90
    whole = text.render(report, Style(90))
    assert "ask it yourself" in whole
    old, new = (record.path for record in report.records)
    assert f"python -m reports gate {old} {new} --format markdown" in " ".join(whole.split())
    assert "--format markdown" not in made
    assert "\x1b[" not in made
    assert "\x1b[" in text.render(report, Style(90, colour=True))


# --- machines -----------------------------------------------------------------------------------------


def test_json_holds_everything(report: Report) -> None:
    data = json.loads(render("json", report))
    assert (data["status"], data["compared"], data["answered"], len(data["accepted"])) == (1, 5, 5, 1)
    first, *_, stale = data["findings"]
    assert (first["kind"], first["old"], first["new"], first["level"]) == ("silent", "works", "garbage", "deny")
    assert first["uses"][0] == {"path": str(report.findings[0].uses[0].path), "line": 7, "text": "y = a + b # 50 %, really", "sure": True}
    assert first["look_for"]
    compile(first["script"], "script", "exec")
    assert stale["kind"] == "stale"


def test_junit_is_xml_with_a_case_for_each_cell_and_a_failure_for_what_is_denied(report: Report) -> None:
    root = Tree.fromstring(render("junit", report))  # noqa: S314  our own
    assert root.tag == "testsuites"
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"dummy:accel", "records"}
    for suite in suites.values():
        tests = suite.findall("testcase")
        assert suite.get("tests") == str(len(tests))
        assert suite.get("failures") == str(sum(test.find("failure") is not None for test in tests))
        assert all(test.get("classname") == suite.get("name") and test.get("name") for test in tests)
    cells = {test.get("name"): test.find("failure") for test in suites["dummy:accel"]}
    assert {name for name, failure in cells.items() if failure is not None} == {ADD, SUB, MIXED}
    failure = cells[ADD]
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("silent", "silent: works → garbage")
    assert root.get("tests") == str(sum(int(suite.get("tests", "0")) for suite in suites.values()))
    listed = replace(report, findings=(replace(report.findings[0], level="warn"),))
    quiet = Tree.fromstring(render("junit", listed))  # noqa: S314  likewise
    assert quiet.get("failures") == "0"
    assert quiet.find(".//system-out") is not None


def test_sarif_is_what_scanners_take(report: Report) -> None:
    data = json.loads(render("sarif", report))
    Draft202012Validator(SARIF).validate(data)
    (run,) = data["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == list(KINDS)
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    first = run["results"][0]["locations"]
    assert len(first) == 1  # what is only perhaps a use is no place of a finding
    assert first[0]["physicalLocation"]["artifactLocation"]["uri"].endswith("/src/my%20code.py")
    assert first[0]["physicalLocation"]["region"] == {"startLine": 7}
    stale = run["results"][-1]["locations"][0]["physicalLocation"]
    assert (stale["artifactLocation"]["uri"].endswith("accepted.toml"), stale["region"]["startLine"]) == (True, 1)
    prints = [result["partialFingerprints"]["change/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)
    assert json.loads(render("sarif", report)) == data


COMMAND = re.compile(r"::(error|warning) ((?:file|line|title)=[^:,]*(?:,(?:file|line|title)=[^:,]*)*)::(.+)")


def test_github_gets_a_line_for_each_annotation_with_everything_escaped(report: Report) -> None:
    *commands, last = render("github", report).splitlines()
    found = [COMMAND.fullmatch(command) for command in commands]
    assert all(found)
    assert last == report.headline
    made = [(one[1], dict(pair.split("=", 1) for pair in one[2].split(",")), one[3]) for one in found if one]
    level, properties, message = made[0]
    assert (level, properties["line"]) == ("error", "7")
    assert properties["file"].endswith("my code.py")
    assert properties["title"] == "silent on dummy%3Aaccel"
    assert f"{ADD}: works → garbage" in message
    assert made[-1][1]["file"].endswith("accepted.toml")
    nasty = next(message for _, _, message in made if "NastyError" in message)
    assert "%250A::error::" in nasty


def test_github_adds_the_findings_to_the_step_s_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair(tmp_path, asked("accel", ADD), asked("garbles-computing", ADD))
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    command = ["gate", str(tmp_path / "old.jsonl"), str(tmp_path / "new.jsonl"), "--format", "github"]
    assert main(command) == 1
    assert capsys.readouterr().out.startswith("::error title=silent")
    said = summary.read_text("utf-8")
    assert said.startswith("before\n# Upgrade gate")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "folder"))
    assert main(command) == 2
    assert "GITHUB_STEP_SUMMARY names" in capsys.readouterr().err


def test_markdown_is_a_table_with_details_and_no_markup_of_others(report: Report) -> None:
    made = render("markdown", report)
    rows = [row for row in made.splitlines() if row.startswith("| ") and "kind" not in row]
    assert len(rows) == 5
    assert all(row.count(" | ") == 5 for row in rows)
    assert f"`{ADD}`" in rows[0]
    assert "my code.py:7`" in rows[0]
    assert "<b>" not in made
    assert made.count("<details>") == made.count("</details>") == 3
    assert made.count("```") % 2 == 0
