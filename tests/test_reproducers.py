"""Reproducers run: what `explain` prints, pasted into a fresh interpreter, gives the answer that the suite gave."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adapters.lane import Settings
from adapters.phrases import Phrases
from adapters.pool import Pool
from adapters.process import Process
from adapters.reproducer import Reproducer
from adapters.targets import SelectorError, parse, plan
from adapters.worker import ADAPTERS
from cases import Case, catalogue
from cases.judge import applicable, judge
from cases.reading import agrees, flatten, walk
from reports.cells import Cell, Target
from reports.verbs import explain

ROOT = Path(__file__).parent.parent
#: Framework -> targets that one process serves.
TARGETS = {
    "torch": ("torch:cpu", "torch:meta"), "jax": ("jax:cpu",), "numpy": ("numpy:cpu",),
    "array-api-strict": ("array-api-strict:device1",),
}  # fmt: skip
#: One in so many of the cases that a target can be asked, besides those in which much can go wrong.
EVERY = 24
#: Effects, helper functions, scopes, host memory, data written shortly, missing devices, aliases.
ALWAYS = (
    "placement/matmul/host-accelerator", "placement/mask/host-accelerator", "placement/set-tail/host-accelerator",
    "placement/add-in-place/device-device", "placement/add-out/device-device", "placement/where-condition/host-accelerator",
    "moving/default-device/zeros", "moving/buffer-waited/aligned/device", "moving/buffer-copy/misaligned/device",
    "moving/misspelt/create-object",
    "moving/absent/move-object", "moving/out-of-range/create-object", "moving/to-same/object", "moving/equality/device-alias",
    "moving/ordinal/handle-host", "moving/read/item/device", "moving/pinned/host", "moving/write-original/to-same",
    "scalars/zero-dim/host-accelerator/left", "dtypes/float64/create", "dtypes/complex64/add", "dtypes/int64/host-memory",
)  # fmt: skip
#: What a script prints of a value's facts that is no tensor.
SAYS = {"identity": ("object", "storage"), "comparison": ("equal", "mirrored", "hash"), "python": ("value",)}
#: Runs each script in a namespace of its own, and says what it printed, as objects, and which error ended it.
RUNNER = """
import json, os, sys, warnings
warnings.simplefilter("ignore")

def plain(value):
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)

def told(value):
    for convert in (lambda v: v.tolist(), lambda v: v._array.tolist()):
        try:
            return plain(convert(value))
        except Exception:
            pass
    return plain(value)

found = {}
for name, script in json.load(open(sys.argv[1])).items():
    before, said = dict(os.environ), []
    shown = lambda *values: said.append([told(value) for value in values])
    try:
        exec(compile(script, name, "exec"), {"__name__": "script", "print": shown})
        error = None
    except Exception as failure:
        error = type(failure).__name__
    found[name] = {"said": said, "error": error}
    os.environ.clear()
    os.environ.update(before)
json.dump(found, open(sys.argv[2], "w"))
"""


@cache
def here(framework: str) -> Mapping[str, Mapping[str, Any]]:
    """Return a framework's targets as its worker describes them, one worker for all."""
    try:
        pool = Pool(*plan([parse(f"{framework}:*")], dict.fromkeys(ADAPTERS)), Settings())
    except SelectorError as error:
        pytest.skip(str(error))
    try:
        return {target["target"]: target for target in pool.targets()}
    finally:
        pool.close()


def described(name: str) -> Mapping[str, Any]:
    """Return a target as its worker describes it, or skip."""
    target = here(name.partition(":")[0]).get(name, {"available": False, "why": "there is no such target"})
    if not target["available"]:
        pytest.skip(f"{name}: {target['why']}")
    return target


def answered(names: tuple[str, ...]) -> Iterator[tuple[Target, Case, Cell]]:
    """Ask one worker some of the cases that these targets can be asked, and judge; yield what is answered."""
    targets = [described(name) for name in names]
    process = Process(targets[0]["spec"])
    try:
        process.hello(120)
        for target in targets:
            can = [one for one in catalogue().values() if not applicable(one, target) and not one.alone and one.environment is None]
            for one in (one for n, one in enumerate(can) if n % EVERY == 0 or one.id in ALWAYS):
                seen = process.run(target["device"], json.loads(json.dumps(one.program.wire())), None, 60)
                cell = Cell.from_json(judge(one, target, {"observation": seen}))
                if cell.status == "answered":
                    facts = {key: value for key, value in target.items() if key != "spec"}
                    yield Target.from_json(target["target"], facts), one, cell
    finally:
        process.kill()


@dataclass(frozen=True)
class Recorded:
    """A record of a single cell."""

    targets: Mapping[str, Target]
    cells: Mapping[tuple[str, str], Cell]


def differences(one: Case, cell: Cell, ran: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a script printed otherwise than the suite observed, or raised otherwise than it answered."""
    steps: Mapping[str, Any] = (cell.observation or {})["steps"]
    refused = next((s["id"] for s in walk(one.program.steps) if "error" in steps.get(s["id"], {}) and "when" not in s), None)
    if refused is not None or ran["error"] is not None:
        wanted = steps[refused]["error"]["type"] if refused else None
        # Looking is done otherwise by a script, which prints, than by an adapter, which reads.
        looked = next((s.get("op") in ("observe", "same") for s in walk(one.program.steps) if s["id"] == refused), False)
        if ran["error"] != wanted and not (looked and ran["error"]):
            yield f"raised {ran['error']}, and the suite saw {wanted}"
    for line in ran["said"]:
        mark, shown = str(line[0]).rstrip(":"), line[1:]
        fact = steps.get(one.program.marks.get(mark, ""), {}).get("value")
        if fact is None:
            yield f"{mark} was printed as {shown}, and the suite has nothing of that name"
        elif fact["kind"] == "tensor" and mark == "result":
            device, dtype = (shown[0] if isinstance(shown[0], list) else [shown[0]]), str(shown[1]).rpartition(".")[2]
            if " ".join(device) != fact["device"] or not dtype.startswith(fact["dtype"]):
                yield f"result is on {device} as {dtype}, and for the suite on {fact['device']} as {fact['dtype']}"
        elif fact["kind"] == "tensor" and "elements" in fact and cell.answer != "garbage":  # which is other garbage each time
            flat, wanted = flatten(shown[0]), flatten(fact["elements"])
            got = [flat[i] for i in fact["at"]] if "at" in fact else flat
            if len(got) != len(wanted) or not all(agrees(g, w, 1e-6) for g, w in zip(got, wanted, strict=True)):
                yield f"{mark} is {got[:8]}, and for the suite {wanted[:8]}"
        elif fact["kind"] in SAYS and shown != [fact[key] for key in SAYS[fact["kind"]]][: len(shown) or None]:  # a module has no storage
            yield f"{mark} is {shown}, and for the suite {fact}"


@pytest.mark.slow
@pytest.mark.parametrize("framework", TARGETS)
def test_what_explain_prints_gives_the_suites_answer(framework: str, tmp_path: Path) -> None:
    asked = {f"{target.name} {one.id}": (target, one, cell) for target, one, cell in answered(TARGETS[framework])}
    scripts = {}
    for name, (target, one, cell) in asked.items():
        printed = list(explain._script(framework, None, one, target, Recorded({target.name: target}, {(target.name, one.id): cell})))
        assert printed[0].endswith(f"): {cell.answer}"), "the answer stands over the script"
        assert not [line for line in printed if line.startswith("# incomplete")], name
        scripts[name] = "\n".join(printed)
    assert len(scripts) >= 20
    (tmp_path / "scripts.json").write_text(json.dumps(scripts))
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(tmp_path / "scripts.json"), str(tmp_path / "found.json")], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ran = json.loads((tmp_path / "found.json").read_text())
    differ = {name: list(differences(one, cell, ran[name])) for name, (_, one, cell) in asked.items()}
    assert not {name: points for name, points in differ.items() if points}
    silent = [name for name, facts in ran.items() if not facts["said"] and not facts["error"]]
    assert not silent, "a script that prints nothing answers nothing"
    assert framework == "numpy" or any(facts["error"] for facts in ran.values())


@pytest.mark.slow
@pytest.mark.parametrize("framework", TARGETS)
def test_the_examples_of_an_adapter_are_targets_of_its_own(framework: str) -> None:
    for needs in (set(), {"accelerator"}, {"peer"}):
        phrases = Phrases.example(framework, needs=needs)
        assert not phrases.neutral
        real = described(phrases.target["target"])["roles"]
        assert {role: facts["expression"] for role, facts in real.items()} == {
            r: f["expression"] for r, f in phrases.target["roles"].items()
        }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "case", "says"),
    [
        ("torch:fake-cuda", "placement/add/host-accelerator", "Error: Expected all tensors to be on the same device"),
        ("numpy:cpu", "placement/add-in-place/device-device", "identity: True True"),
    ],
)  # fmt: skip
def test_a_script_is_a_file_that_runs_alone(name: str, case: str, says: str, tmp_path: Path) -> None:
    one = catalogue()[case]
    target = Target.from_json(name, {key: value for key, value in described(name).items() if key != "spec"})
    path = tmp_path / "ask.py"
    path.write_text("\n".join(explain._whole(one, target, None)), "utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert says in done.stdout + done.stderr
    assert (done.returncode == 1) == ("Error" in says)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch:cpu", "jax:cpu", "numpy:cpu"])
def test_a_timed_question_runs_too(name: str) -> None:
    book = Reproducer.of({key: value for key, value in described(name).items() if key != "spec"})
    one = catalogue()["time/read/other-value"]
    (step,) = (s["id"] for s in walk(one.program.steps) if s.get("op") == "time")
    lines = book.lines(one.program.wire(), observation={"steps": {step: {"value": {"size": 64}}}})
    done = subprocess.run([sys.executable, "-c", book.script(one.program.wire(), lines=lines)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("synchronised") >= 3
    assert done.stdout.count("read") == done.stdout.count("synchronised")


def test_reproducers_need_no_framework() -> None:
    code = (
        "import sys\nfrom adapters.phrases import Phrases\nfrom adapters.reproducer import Reproducer\n"
        "from adapters.worker import ADAPTERS\nfrom cases import catalogue\n"
        "for name in ADAPTERS:\n    book = Reproducer(Phrases.example(name))\n"
        "    for one in catalogue().values(): book.script(one.program.wire())\n"
        "loaded = {'torch', 'jax', 'numpy', 'array_api_strict'} & set(sys.modules)\nsys.exit(repr(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
