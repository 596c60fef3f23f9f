"""Phrases: native code read from an adapter's source says what the adapter does, and runs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adapters.lane import Settings
from adapters.phrases import Line, Phrases
from adapters.pool import Pool
from adapters.process import Process
from adapters.source import UnclearError, class_of, module
from adapters.targets import SelectorError, parse, plan
from adapters.wording import data
from adapters.worker import ADAPTERS
from cases import Case, catalogue
from cases.judge import applicable
from cases.reading import walk

ROOT = Path(__file__).parent.parent

ADAPTER = '''
from __future__ import annotations
import math
from .sibling import shared
from adapters.base import Adapter, NotOffered, NotModelled

_LIMIT = 3

class Base(Adapter):
    def inherited(self, x):
        return lib.base(x, self.kind)

class Mine(Base):
    """An adapter."""
    framework = "lib"
    imports = "import lib"
    dtypes = {**{name: f"lib.{name}" for name in ("float32", "bool")}, "int4": "lib.i4"}
    environments = {"wide-dtypes": {"LIB_WIDE": "1"}}
    computes = True

    def __init__(self, kind, roles):
        super().__init__(kind, roles)
        self.fake = kind.startswith("fake-")
        self.plain = kind.replace("fake-", "")
        self.session = lib.session()

    def spelling(self, name, spelled):
        text = self.roles[name]["expression"][len("lib.Device('") : -2]
        if spelled == "string":
            return repr(text)
        return super().spelling(name, spelled)

    def missing(self, name, spelled):
        here = _probe()
        return {"absent": f"lib.Device({here!r})", "misspelt": f"lib.Device({self.kind + 'u'!r})"}[name]

    def around(self):
        if not self.fake:
            yield
            return
        import lib.fake
        with lib.fake.Mode():
            yield

    def scope(self, name, *args):
        if name == "default-device":
            return self.default(*args)
        return super().scope(name, *args)

    def default(self, device):
        return lib.default(device)

    def barrier(self, values):
        if self.computes and "accelerator" in self.roles:
            for name in ("accelerator", "peer"):
                if name in self.roles:
                    lib.wait(self.device(name))
        lib.block(values)

    def identity_of(self, value):
        return value.address

    def full(self, shape, value, dtype, device):
        return lib.full(shape, value, dtype=dtype, device=device)

    def add(self, x, y):
        return x + y

    def power(self, x, n):
        """Raise."""
        return x ** n

    def attribute(self, x):
        return x.T

    def add_(self, x, y):
        x += y
        return x

    def set_tail(self, x, start, y):
        x[start:] = y
        return x

    def shortcut(self, x):
        if self.plain == "gpu":
            return x.gpu()
        raise NotOffered(f"no {self.plain}()")

    def guarded(self, x, kind):
        if kind != "pinned":
            raise NotOffered(f"no memory kind {kind}")
        if not lib.has_pinned():
            raise NotOffered("too old")
        return x.pin()

    def helped(self, x):
        return _helper(x, self.kind)

    def chosen(self, x):
        """Look at the value."""
        if x.ndim > _LIMIT:
            return _deep(x)
        return x.flat

    def chosen_by_name(self, x):
        if self.name_of(x) == "bool":
            return bool(x)
        return float(x)

    def name_of(self, x):
        return str(x.dtype).rpartition(".")[2]

    def looped(self, x):
        while True:
            self.session.step(x)

    def suppressed(self, x):
        with math.suppress(Exception):
            return x.fast
        return x.slow

    def entered(self, x, device):
        with lib.default(device):
            y = lib.copy(x)
            return y

    def undecided(self, x):
        if lib.ready() and self.computes:
            lib.go(x)
        return x

    def short_circuit(self, x):
        return x.far if self.kind == "far" and lib.unknown() else x.near

    def dynamic(self, device):
        getattr(lib, device.type).sync(*([device] if self.kind != "mps" else []))

    def cast(self, buffer):
        return lib.view(buffer.memory, self.dtype(buffer.dtype))

class _Before20:
    """What was written otherwise before 2.0."""
    def add(self, x, y):
        return lib.add(x, y)
    power = add

def _helper(x, kind):
    return lib.helped(x, kind)

def _deep(x):
    return math.prod(x.shape)
'''
ROLES = {
    "host": {"name": "cpu", "expression": "lib.Device('cpu')", "evidence": "measured"},
    "accelerator": {"name": "gpu:0", "expression": "lib.Device('gpu:0')", "evidence": "measured"},
}


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a way to make the phrase book of the adapter above."""
    (tmp_path / "somebodys").mkdir()
    (tmp_path / "somebodys" / "__init__.py").write_text("")
    (tmp_path / "somebodys" / "adapter.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(tmp_path)
    class_of.cache_clear()
    module.cache_clear()

    def make(kind: str = "gpu", version: str = "2.1", **more: Any) -> Phrases:
        target = {"target": f"lib:{kind}", "framework": "lib", "device": kind, "version": version, "roles": ROLES, "environment": {}}
        return Phrases({**target, "adapter": "somebodys.adapter:Mine", **more})

    yield make
    class_of.cache_clear()
    module.cache_clear()


def step(op: str, *args: Any, **kw: Any) -> dict[str, Any]:
    return {"id": "s9", "op": op, "args": list(args)} | ({"kw": kw} if kw else {})


def code(book: Phrases, *steps: dict[str, Any]) -> str:
    return "\n".join(line.code for line in book.lines({"steps": list(steps)}))


REF, OTHER = {"ref": "s1"}, {"ref": "s2"}
HOST = {"device": "host", "spelled": "object"}
FULL = step("full", [2, 2], 3.0, {"dtype": "float32"}, {"device": "device"})


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        (FULL, "s9 = lib.full([2, 2], 3.0, dtype=lib.float32, device=lib.Device('gpu:0'))"),
        (step("add", REF, OTHER), "s9 = s1 + s2"),
        (step("add", REF, 2), "s9 = s1 + 2"),
        (step("add", REF, -2.5), "s9 = s1 + (-2.5)"),
        (step("add", REF, {"data": [1.0] * 8}), "s9 = s1 + ([1.0] * 8)"),
        (step("power", x=REF, n=3), "s9 = s1 ** 3"),
        (step("attribute", {"data": 2.0}), "s9 = (2.0).T"),
        (step("attribute", REF), "s9 = s1.T"),
        (step("inherited", REF), "s9 = lib.base(s1, 'gpu')"),
        (step("helped", REF), "s9 = lib.helped(s1, 'gpu')"),
        (step("shortcut", REF), "s9 = s1.gpu()"),
        (step("guarded", REF, "pinned"), "s9 = s1.pin()"),
        (step("set_tail", REF, 1, OTHER), "s1[1:] = s2\ns9 = s1"),
        (step("add_", REF, OTHER), "s9 = s1\ns9 += s2"),
        (step("entered", REF, HOST), "with lib.default(lib.Device('cpu')):\n    s9_y = lib.copy(s1)\n    s9 = s9_y"),
        (step("add", {"device": "host", "spelled": "string"}, {"device": "misspelt"}), "s9 = 'cpu' + lib.Device('gpuu')"),
        (step("undecided", REF), "if lib.ready():\n    lib.go(s1)\ns9 = s1"),
        (step("short_circuit", REF), "s9 = s1.near"),
        (step("observe", REF), "print(s1)"),
        (step("drop", REF), "del s1"),
        (step("same", REF, OTHER), "print(s1 is s2, s1.address == s2.address)"),
        (step("compare", REF, OTHER), "print(s1 == s2, s2 == s1, hash(s1) == hash(s2))"),
        (step("name", HOST), "s9 = lib.Device('cpu')"),
        (step("buffer", {"data": [2.0, 3.0]}, "aligned"), "s9 = HostBuffer([2.0, 3.0], 'aligned')"),
        (step("write_buffer", REF, 9.0), "s1.write(9.0)"),
        (step("barrier"), "lib.wait(lib.Device('gpu:0'))\nlib.block([])"),
        (
            {"id": "s1", "scope": "default-device", "args": [HOST], "body": [step("add", REF, 1)]},
            "with lib.default(lib.Device('cpu')):\n    s9 = s1 + 1",
        ),
    ],
)  # fmt: skip
def test_a_step_is_the_adapters_expression_with_its_arguments(book: Any, asked: dict[str, Any], written: str) -> None:
    assert code(book(), asked) == written


def test_what_is_known_of_the_target_decides(book: Any) -> None:
    assert code(book("fake-gpu"), step("shortcut", REF)) == "s9 = s1.gpu()"
    (line,) = book("mps").lines({"steps": [step("shortcut", REF)]})
    assert (line.runs, line.code) == (False, "# shortcut: the framework offers no such thing: 'no mps()'")
    (line,) = book().lines({"steps": [step("guarded", REF, "unified")]})
    assert (line.runs, "no memory kind unified" in line.code) == (False, True)
    assert code(book(), step("dynamic", HOST)).startswith("getattr(lib, lib.Device('cpu').type).sync(lib.Device('cpu'))")
    assert ".sync()" in code(book("mps"), step("dynamic", HOST))


def test_what_older_versions_write_otherwise_is_taken_for_them(book: Any) -> None:
    assert code(book(version="1.26.4"), step("add", REF, OTHER)) == "s9 = lib.add(s1, s2)"
    assert code(book(version="1.26.4"), step("power", REF, 2)) == "s9 = lib.add(s1, 2)"
    assert code(book(version="2.0"), step("add", REF, OTHER)) == "s9 = s1 + s2"


def test_what_depends_on_values_is_given_as_a_function(book: Any) -> None:
    script = book().script({"steps": [FULL | {"id": "s1"}, step("chosen", REF)]})
    assert "s9 = chosen(s1)" in script
    assert "def chosen(x):" in script
    assert "import math" in script
    assert "_LIMIT = 3" in script
    assert "def _deep(x):" in script
    compile(script, "script", "exec")
    by_name = book().script({"steps": [step("chosen_by_name", REF)]})
    assert "str(x.dtype).rpartition('.')[2] == 'bool'" in by_name
    assert "self" not in by_name


def test_what_cannot_be_written_is_said(book: Any) -> None:
    for op in ("looped", "no_such_operation"):
        (line,) = book().lines({"steps": [step(op, REF)]})
        assert not line.runs
        assert line.code.startswith(f"# {op}: see somebodys.adapter; it can't be written as plain code")
    (line,) = book().lines({"steps": [step("full", [2], 1, {"dtype": "int7"}, HOST)]})
    assert (line.runs, line.code) == (False, "# full: the framework offers no such thing: no dtype int7")
    (line,) = book().lines({"steps": [step("name", {"device": "absent"})]})
    assert not line.runs
    (line,) = book(spelled={"absent/object": "lib.Device('tpu')"}).lines({"steps": [step("name", {"device": "absent"})]})
    assert line == Line("s9", "s9 = lib.Device('tpu')")


def test_an_error_that_is_suppressed_is_not_written_away(book: Any) -> None:
    script = book().script({"steps": [step("suppressed", REF)]})
    assert "def suppressed(x):" in script
    assert "return x.slow" in script


def test_a_script_has_environment_imports_surroundings_and_a_wait(book: Any) -> None:
    program = {"steps": [FULL, {**step("observe", {"ref": "s9"}), "when": ["s9"]}]}
    script = book("fake-gpu", environment={"LIB_FAST": "0"}).script(program, title="what\nwhy", environment="wide-dtypes")
    assert script == (
        "# what\n# why\nimport os\nos.environ['LIB_FAST'] = '0'\nos.environ['LIB_WIDE'] = '1'\nimport lib\n\nimport lib.fake\n"
        "with lib.fake.Mode():\n    s9 = lib.full([2, 2], 3.0, dtype=lib.float32, device=lib.Device('gpu:0'))\n"
        "    # wait for everything that was queued\n    lib.wait(lib.Device('gpu:0'))\n    lib.block([s9])\n"
    )


def test_a_buffers_dtype_reaches_the_framework(book: Any) -> None:
    program = {"steps": [{"id": "s1", "op": "buffer", "args": [{"data": [True]}, "aligned", "bool"]}, step("cast", REF)]}
    script = book().script(program)
    assert "s9 = lib.view(s1.memory, lib.bool)" in script
    assert "class HostBuffer:" in script


def test_without_a_target_devices_are_called_by_their_roles(book: Any) -> None:
    book()
    phrases = Phrases.of("lib", "somebodys.adapter:Mine")
    assert code(phrases, FULL) == "s9 = lib.full([2, 2], 3.0, dtype=lib.float32, device=accelerator)"
    (line,) = phrases.lines({"steps": [step("name", {"device": "host", "spelled": "string"})]})
    assert not line.runs


def test_an_adapter_without_source_is_said() -> None:
    with pytest.raises(UnclearError, match="no adapter for nobodys is known here"):
        Phrases.of("nobodys")
    with pytest.raises(UnclearError, match=r"no (Python source of|module) math"):
        Phrases.of("mine", "math:Mine")
    with pytest.raises(UnclearError, match="no module"):
        Phrases.of("mine", "no.such.module:Mine")


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([1.0, 2.0], "[1.0, 2.0]"),
        ([True, False] * 128, "[True, False] * 128"),
        ([[3] * 256, [1] * 256], "[[3] * 256, [1] * 256]"),
        ([0] * 5 + [1] + [0] * 30, "[0] * 5 + [1] + [0] * 30"),
        (["nan", "-inf"], "[float('nan'), float('-inf')]"),
        (2, "2"),
    ],
)  # fmt: skip
def test_data_is_written_shortly_and_means_the_same(values: Any, written: str) -> None:
    assert data(values) == written
    if "float(" not in written:
        assert ast.literal_eval(written) == values if "*" not in written else eval(written) == values  # noqa: S307  written above


def test_complex_data_has_both_parts() -> None:
    assert data([1.0, 2.0], [3.0, "inf"]) == "[complex(1.0, 3.0), complex(2.0, float('inf'))]"


# --- real frameworks ---------------------------------------------------------------------------------

TARGETS = ("torch:cpu", "torch:meta", "jax:cpu", "numpy:cpu")
#: One in so many of the cases that a target can be asked, besides those in which much can go wrong.
EVERY = 12
#: Effects, helper functions, scopes, host memory, data written shortly, missing devices, aliases.
ALWAYS = (
    "placement/matmul/host-accelerator", "placement/mask/host-accelerator", "placement/set-tail/host-accelerator",
    "placement/add-in-place/device-device", "placement/add-out/device-device", "placement/where-condition/host-accelerator",
    "moving/default-device/zeros", "moving/buffer/aligned/device", "moving/buffer-copy/misaligned/device", "moving/misspelt/create-object",
    "moving/out-of-range/create-object", "moving/to-same/object", "moving/equality/device-alias", "moving/pinned/host",
    "scalars/zero-dim/host-accelerator/left", "dtypes/float64/create", "dtypes/complex64/add", "dtypes/int64/host-memory",
)  # fmt: skip
#: Runs each script in a namespace of its own and says which error ended it.
RUNNER = """
import contextlib, io, json, os, sys, warnings
warnings.simplefilter("ignore")
found = {}
for name, script in json.load(open(sys.argv[1])).items():
    before = dict(os.environ)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(script, name, "exec"), {"__name__": "script"})
        found[name] = None
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
    os.environ.clear()
    os.environ.update(before)
json.dump(found, open(sys.argv[2], "w"))
"""


@cache
def described(name: str) -> Mapping[str, Any]:
    """Return a target as its worker describes it, or skip."""
    try:
        pool = Pool(*plan([parse(name)], dict.fromkeys(ADAPTERS)), Settings())
    except SelectorError as error:
        pytest.skip(str(error))
    try:
        (target,) = pool.targets()
    finally:
        pool.close()
    if not target["available"]:
        pytest.skip(f"{name}: {target['why']}")
    return target


def sampled(target: Mapping[str, Any]) -> list[Case]:
    """Return some of the cases that a target can be asked, in an ordinary process."""
    found = [one for one in catalogue().values() if not applicable(one, target) and not one.alone and one.environment is None]
    return [one for n, one in enumerate(found) if n % EVERY == 0 or one.id in ALWAYS]


def observed(target: Mapping[str, Any], asked: list[Case]) -> dict[str, tuple[str, str | None]]:
    """Ask a worker; return for each case that can be answered the step and type of its first error."""
    process = Process(target["spec"])
    found: dict[str, tuple[str, str | None]] = {}
    try:
        process.hello(120)
        for one in asked:
            seen = process.run(target["device"], json.loads(json.dumps(one.program.wire())), None, 60)
            facts = [(step["id"], seen["steps"].get(step["id"], {})) for step in walk(one.program.steps) if "when" not in step]
            if not any(key in fact for _, fact in facts for key in ("not_offered", "not_modelled")):
                late = seen.get("drain", {}).get("error")
                errors = [(at, fact["error"]["type"]) for at, fact in facts if "error" in fact]
                errors += [("drain", late["type"])] if late else []
                found[one.id] = errors[0] if errors else ("", None)
    finally:
        process.kill()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_scripts_raise_exactly_where_the_interpreter_saw_an_error(name: str, tmp_path: Path) -> None:
    target = described(name)
    book = Phrases({key: value for key, value in target.items() if key != "spec"})
    asked = sampled(target)
    seen = observed(target, asked)
    lines = {one.id: book.lines(one.program.wire()) for one in asked if one.id in seen}
    strange = {case for case, found in lines.items() if not all(line.runs for line in found)}
    assert {case.rpartition("/")[0] for case in strange} <= {"moving/absent"}, "only what the framework alone can tell may be left out"
    scripts = {one.id: book.script(one.program.wire()) for one in asked if one.id in seen and one.id not in strange}
    assert len(scripts) >= 15
    (tmp_path / "scripts.json").write_text(json.dumps(scripts))
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(tmp_path / "scripts.json"), str(tmp_path / "found.json")], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ran = json.loads((tmp_path / "found.json").read_text())
    differ = {case: (seen[case], ran[case]) for case in scripts if (seen[case][1] is None) != (ran[case] is None)}
    assert not differ
    # The same error too, unless it comes of looking: a script prints, an adapter reads.
    looks = {case: {line.step for line in lines[case] if line.code.startswith("print(")} for case in scripts}
    other = {
        case: (seen[case], ran[case]) for case in scripts
        if ran[case] and seen[case][0] not in looks[case] and ran[case].partition(":")[0] != seen[case][1]
    }  # fmt: skip
    assert not other
    assert any(ran.values())
    assert not all(ran.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "case", "says"),
    [
        ("torch:cpu", "placement/create/device", "tensor([[2., 3.],"),
        ("torch:fake-cuda", "placement/add/host-accelerator", "Error: Expected all tensors to be on the same device"),
        ("jax:cpu", "placement/add/host-accelerator", "ValueError"),
        ("numpy:cpu", "placement/add-in-place/device-device", "True True"),
        ("array-api-strict:device1", "placement/add/host-accelerator", "Error"),
    ],
)  # fmt: skip
def test_a_script_is_a_file_that_runs_alone(name: str, case: str, says: str, tmp_path: Path) -> None:
    target = described(name)
    script = Phrases({key: value for key, value in target.items() if key != "spec"}).script(catalogue()[case].program.wire(), title=case)
    path = tmp_path / "ask.py"
    path.write_text(script, "utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert says in done.stdout + done.stderr
    assert (done.returncode == 1) == ("Error" in says)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_timed_question_runs_too(name: str) -> None:
    target = described(name)
    timed = next((one for one in catalogue().values() if one.alone and not applicable(one, target)), None)
    if timed is None or name == "torch:meta":
        pytest.skip(f"{name} times nothing")
    steps = [s["id"] for s in walk(timed.program.steps) if s.get("op") == "time"]
    book = Phrases({key: value for key, value in target.items() if key != "spec"})
    script = book.script(timed.program.wire(), sizes=dict.fromkeys(steps, 64))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("synchronised") >= 3


def test_phrases_need_no_framework() -> None:
    code = (
        "import sys\nfrom adapters.phrases import Phrases\nfrom adapters.worker import ADAPTERS\nfrom cases import catalogue\n"
        "for name in ADAPTERS:\n    book = Phrases.of(name)\n    for one in catalogue().values(): book.script(one.program.wire())\n"
        "loaded = {'torch', 'jax', 'numpy', 'array_api_strict'} & set(sys.modules)\nsys.exit(repr(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
