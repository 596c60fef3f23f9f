"""`python -m reports`, run as a user runs it: output, exit status, and one sentence for what can't be done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from packaging.specifiers import SpecifierSet

from cases import catalogue
from cases.contract import Contract, Entry
from reports.style import Style
from reports.verbs import VERBS, explain
from tests import sample

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "reports" / "record.schema.json").read_text("utf-8"))
CELL = Draft202012Validator({"$ref": "#/$defs/cell", "$defs": SCHEMA["$defs"]})


def ask(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reports", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100", **environment},
    )  # fmt: skip


def said(*arguments: object, **environment: str) -> str:
    """Return the output of what must work."""
    done = ask(*arguments, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.record(tmp_path_factory.mktemp("cli") / "r.jsonl")


@pytest.fixture(scope="module")
def cut(record: Path) -> Path:
    path = record.with_name("cut.jsonl")
    path.write_text("".join(record.read_text("utf-8").splitlines(keepends=True)[:9]))
    return path


# --- help ------------------------------------------------------------------------------------------


def test_help_lists_the_verbs_with_examples() -> None:
    text = said("--help")
    assert all(f"    {verb} " in text for verb in VERBS)
    assert "examples:\n  python -m reports" in text


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb: str) -> None:
    text = said(verb, "--help")
    assert f"examples:\n  python -m reports {verb}" in text


def test_help_imports_neither_cases_nor_tables() -> None:
    code = (
        "import sys; sys.argv = ['reports', 'matrix', '--help']\nfrom reports.verbs import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'cases', 'adapters', 'tabulate', 'json', 'packaging', 'torch', 'jax', 'numpy'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# --- verbs -----------------------------------------------------------------------------------------


def test_cases_lists_ids_and_questions_by_area() -> None:
    text = said("cases")
    for one in catalogue().values():
        assert f"{one.id} " in text
    assert said("cases", "placement/create/*").splitlines() == [
        "placement (1): What happens when operands are on different devices?",
        "  placement/create/device  Does a value made on the device hold what was written?",
    ]


def test_cases_takes_areas_and_globs_and_gives_json() -> None:
    found = json.loads(said("cases", "*/host-accelerator", "--area", "placement", "--json"))
    assert found
    assert all(one["area"] == "placement" and one["id"].endswith("/host-accelerator") for one in found)
    assert {"id", "question", "why", "answers", "control", "claims", "program"} <= found[0].keys()


def test_explain_tells_question_answers_code_and_contracts(record: Path) -> None:
    text = said("explain", "placement/matmul/host-accelerator", "--record", record)
    one = catalogue()["placement/matmul/host-accelerator"]
    flat = " ".join(text.split())
    assert one.question in flat
    assert one.why in flat
    for word, (kind, says) in one.answers.words.items():
        assert word in text
        assert f"{kind}: {says}" in flat
    assert "control: placement/matmul/device-device" in text
    assert "claims: D1.11" in text
    assert "D1.11: What comes of a matrix product between host and accelerator, in both orders?" in flat
    assert "\n# placement/matmul/host-accelerator on torch:meta\n# " in text, "a target that every machine has"
    assert "\nimport torch\n" in text
    assert "\ns1 = torch.full([256, 256], 2.0, dtype=torch.float32, device=torch.device('cpu'))\n" in text
    assert "\nprint('result:', s7.device, s7.dtype)\nprint('value:', s7)\n" in text
    assert "\ns1 = xp.full(tuple([256, 256]), 2.0, dtype=xp.float32, device=xp.Device('CPU_DEVICE'))\n" in text
    assert "\n# this can't be asked: numpy:cpu has no accelerator\n" in text
    assert "https://data-apis.org/" in text


def test_explain_writes_devices_as_a_recorded_target_does(record: Path) -> None:
    expression = sample.target("accel")["roles"]["accelerator"]["expression"]
    case = "moving/equality/host-accelerator"
    arguments = ("explain", case, "--record", record, "--target", "dummy:accel", "--adapter", "dummy=tests.dummy:Dummy")
    text = said(*arguments)
    assert f"\n# {case} on dummy:accel (dummy 1.0): unequal\n# " in text, "the record's answer stands over the script"
    assert expression in text
    assert "torch" not in text
    script = said(*arguments, "--script")
    assert script.startswith(f"# {case} on dummy:accel (dummy 1.0): unequal\n# ")
    compile(script, "script", "exec")
    both = said(*arguments, "--target", "dummy:no-peer", "--target", "dummy:ac*")
    assert [both.count(f"# {case} on dummy:{kind} ") for kind in ("accel", "no-peer")] == [1, 1]


def test_explain_chooses_a_recorded_target_that_can_be_asked(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl", kinds=("host-only", "accel"))
    for case, kind in (("moving/equality/host-accelerator", "accel"), ("moving/to-same/object", "host-only")):
        text = said("explain", case, "--record", path, "--adapter", "dummy=tests.dummy:Dummy")
        assert f"\n# {case} on dummy:{kind} (dummy 1.0)" in text


def test_explain_says_why_a_script_is_not_complete(record: Path) -> None:
    for case, why in (
        ("moving/absent/create-object", "name: see adapters.torch; it can't be written as plain code (only the framework"),
        ("moving/absent/create-string", "name: the framework offers no such thing: array-api-strict has no string spelling"),
    ):
        assert f"\n# incomplete: {why}" in said("explain", case, "--record", record), case
    done = ask("explain", "moving/equality/accelerator-peer", "--record", record, "--target", "dummy:no-peer", "--script")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no script of moving/equality/accelerator-peer for dummy:no-peer: dummy:no-peer has no peer" in done.stderr


def test_show_gives_cells_that_fit_the_schema(record: Path) -> None:
    cells = json.loads(said("show", record, "--json"))
    assert len(cells) == len(sample.KINDS) * len(sample.CASES)
    for cell in cells:
        assert {"target", "case", "status", "answer", "facets", "evidence", "verdict"} <= cell.keys()
        error = cell.pop("error", None)
        assert (error is not None) == (cell["class"] == "refuses")
        CELL.validate({"type": "cell", **cell} | ({"observation": {"steps": {}}} if cell["status"] == "answered" else {}))


def test_show_gives_the_error_of_what_was_refused(record: Path) -> None:
    arguments = ("show", record, "--target", "dummy:accel", "--case", "scalars/one-element/host-accelerator/left")
    (cell,) = json.loads(said(*arguments, "--json"))
    assert cell["error"]["type"] == cell["facets"]["error.type"]
    heads, row = said(*arguments).splitlines()
    assert heads.split() == ["target", "case", "answer", "evidence", "verdict", "reason"]
    assert row[heads.index("verdict") : heads.index("reason")].strip() == cell["verdict"]
    assert row[heads.index("reason") :] == f"{cell['error']['type']}: {cell['error']['text'].splitlines()[0]}"


def test_explain_leaves_out_what_an_earlier_promise_overrules(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(says: str, *targets: str, versions: str = "", answers: tuple[str, ...] = ("raises",)) -> Entry:
        return Entry(("*",), targets, answers, "guaranteed", "https://example.org", says, SpecifierSet(versions))

    promises = (
        entry("old", "*", versions="<2"), entry("fakes", "fake-*"), entry("one-fake", "fake-cuda"), entry("some", "cuda", "fake-mps"),
        entry("letters", "fake-?"), entry("rest", "*", answers=("raises", "no-word-of-it")), entry("never", "*"),
    )  # fmt: skip
    monkeypatch.setattr("cases.contract.contract_for", lambda framework: Contract(framework, promises, ()))
    lines = list(explain._promises("any", catalogue()["placement/matmul/host-accelerator"], Style(200)))
    assert [line.rpartition(" ")[2] for line in lines[::2]] == ["old", "fakes", "some", "rest"]
    assert not any("no-word-of-it" in line for line in lines)
    assert explain._covers("fake-*", "fake-?")
    assert not explain._covers("fake-?", "fake-*")


def test_show_takes_globs(record: Path) -> None:
    cells = json.loads(said("show", record, "--json", "--target", "*:no-*", "--case", "moving/equality/*"))
    assert [(cell["target"], cell["case"]) for cell in cells] == [
        ("dummy:no-peer", "moving/equality/host-accelerator"), ("dummy:no-peer", "moving/equality/accelerator-peer"),
    ]  # fmt: skip
    text = said("show", record, "--target", "*:no-*", "--case", "moving/equality/accelerator-peer")
    assert text.splitlines()[1].split(maxsplit=4) == [
        "dummy:no-peer", "moving/equality/accelerator-peer", "not-applicable", "simulated", "dummy:no-peer has no peer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "sign"), [("terminal", "✓  works"), ("markdown", "| ✓ works"), ("html", "<!doctype html>"), ("json", '"rows"')]
)
def test_matrix_has_four_formats_on_standard_output_and_in_files(record: Path, tmp_path: Path, form: str, sign: str) -> None:
    text = said("matrix", record, "--format", form)
    assert sign in text
    path = tmp_path / "new" / "out"
    assert said("matrix", record, "--format", form, "--output", path) == f"{path}\n"
    written = path.read_text("utf-8")
    assert written == text or form == "html"  # the page says when it was made


def test_matrix_is_compact_unless_all_is_wanted(record: Path) -> None:
    assert " 1  dummy:accel 1.0: " in said("matrix", record)
    full = said("matrix", record, "--full")
    assert " 1  dummy:accel" not in full
    assert "✓ works" in full


def test_matrix_chooses_and_merges(record: Path, tmp_path: Path) -> None:
    other = sample.record(tmp_path / "other.jsonl", version="2.0")
    found = json.loads(said("matrix", record, other, "--format", "json", "--target", "dummy:accel", "--case", "moving/*"))
    assert [column["key"] for column in found["columns"]] == ["dummy:accel (1.0)", "dummy:accel (2.0)"]
    assert {row["area"] for row in found["rows"]} == {"moving"}
    assert found["rows"][0]["cells"].keys() == {"dummy:accel (1.0)", "dummy:accel (2.0)"}


@pytest.mark.parametrize("width", [80, 160])
def test_matrix_keeps_to_a_width(record: Path, width: int) -> None:
    for arguments in (("--width", width), ("--width", width, "--full", "--deviations-first")):
        assert max(map(len, said("matrix", record, *arguments).splitlines())) <= width
    assert max(map(len, said("matrix", record, COLUMNS=str(width)).splitlines())) <= width


def test_a_locale_without_the_marks_gets_others(record: Path) -> None:
    done = ask("matrix", record, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "+  works" in done.stdout
    assert ask("explain", "placement/add/host-accelerator", PYTHONIOENCODING="ascii").returncode == 0


def test_an_incomplete_record_is_shown_and_said(cut: Path) -> None:
    for verb in ("show", "matrix"):
        done = ask(verb, cut)
        assert done.returncode == 0
        assert done.stderr == (
            "cut.jsonl is incomplete, 13 cells are missing: it has no footer, the run that wrote it was ended from outside\n"
        )


def test_targets_says_what_is_here_and_what_is_not() -> None:
    arguments = ("targets", "dummy:*", "dummy:nothing", "--adapter", "dummy=tests.dummy:Dummy")
    done = ask(*arguments)
    sentence = "python -m reports targets: nothing that dummy:nothing names is here; what is not here stands in the list with its reason\n"
    assert (done.returncode, done.stderr) == (2, sentence)
    here, missing = done.stdout.split("\nnot here\n")
    assert "dummy:accel " in here
    assert "dummy:nothing  no device 'nothing' in dummy; there are " in missing
    assert "\nnot here\n" not in said("targets", "dummy:*", "--adapter", "dummy=tests.dummy:Dummy")
    done = ask(*arguments, "--json")
    assert (done.returncode, done.stderr) == (2, sentence)
    found = {target["target"]: target for target in json.loads(done.stdout)}
    assert found["dummy:accel"]["available"]
    assert not found["dummy:nothing"]["available"]


def test_a_record_that_is_named_twice_is_read_once(record: Path) -> None:
    done = ask("matrix", record, record)
    assert (done.returncode, done.stderr) == (0, f"{record} is named more than once, and read once\n")
    assert done.stdout == said("matrix", record)


@pytest.mark.parametrize("form", ["markdown", "json", "html", "terminal"])
def test_every_format_can_show_what_differs_and_leave_the_rest_out(record: Path, form: str) -> None:
    alike, other = "scalars/zero-dim/device-device/left", "moving/to-same/object"
    whole, part = (said("matrix", record, "--format", form, "--full", *more) for more in ((), ("--differing",)))
    for case, shown in ((alike, False), (other, True)):
        name = case if form == "json" else case.partition("/")[2]
        found = [text.replace("<span>", "").replace("</span>", "").replace("<wbr>", "") for text in (whole, part)]
        assert name in found[0]
        assert (name in found[1]) == shown


def test_a_last_record_that_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("reports.record.LATEST", tmp_path / "latest.jsonl")
    chosen = Namespace(record=None)
    assert explain._record(chosen) is None
    assert capsys.readouterr().err == "", "nobody has asked anything yet"
    (tmp_path / "latest.jsonl").write_text("junk")
    assert explain._record(chosen) is None
    assert capsys.readouterr().err.startswith(f"the last record is not used: {tmp_path / 'latest.jsonl'} is no record of this suite")
