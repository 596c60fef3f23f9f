"""Phrases and scripts: native code that is read from an adapter's source says what the adapter does."""

from __future__ import annotations

import ast
import codeop
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.phrases import Phrases
from adapters.reproducer import Line, Reproducer
from adapters.source import UnclearError, class_of, module
from adapters.wording import data, pasteable
from adapters.worker import ADAPTERS
from cases import catalogue

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
    examples = {"flat": {"host": "lib.Device('flat')"}, "gpu": {"host": "lib.Device('cpu')", "accelerator": "lib.Device('gpu:0')"}}

    def __init__(self, kind, roles):
        super().__init__(kind, roles)
        self.fake = kind.startswith("fake-")
        self.plain = kind.replace("fake-", "")
        self.untimed = "nothing is computed" if kind == "lazy" else ""
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

    def metadata(self, x):
        return x.place, x.kind

    def corner(self, x):
        return x[0, 0]

    def item(self, x):
        return x.item()

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

    def make(kind: str = "gpu", version: str = "2.1", **more: Any) -> Reproducer:
        target = {"target": f"lib:{kind}", "framework": "lib", "device": kind, "version": version, "roles": ROLES, "environment": {}}
        return Reproducer.of({**target, "adapter": "somebodys.adapter:Mine", **more})

    yield make
    class_of.cache_clear()
    module.cache_clear()


def step(op: str, *args: Any, **kw: Any) -> dict[str, Any]:
    return {"id": "s9", "op": op, "args": list(args)} | ({"kw": kw} if kw else {})


def code(book: Reproducer, *steps: dict[str, Any]) -> str:
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
    assert (line.runs, line.code) == (False, "# shortcut: the framework offers no such thing: no mps()")
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
        "    # wait for everything that was queued\n    lib.wait(lib.Device('gpu:0'))\n    lib.block([s9])\n\n"
    )


def test_a_buffers_dtype_reaches_the_framework(book: Any) -> None:
    program = {"steps": [{"id": "s1", "op": "buffer", "args": [{"data": [True]}, "aligned", "bool"]}, step("cast", REF)]}
    script = book().script(program)
    assert "s9 = lib.view(s1.memory, lib.bool)" in script
    assert "class HostBuffer:" in script


def test_what_a_case_names_is_printed_by_its_name(book: Any) -> None:
    steps = [FULL, step("observe", {"ref": "s9"}) | {"id": "s2"}, step("observe", {"ref": "s9"}) | {"id": "s3"}, step("add", REF, OTHER)]
    program = {"steps": [s | {"id": f"s{n}"} for n, s in enumerate(steps, 1)]}
    program["steps"][1]["args"] = program["steps"][2]["args"] = [{"ref": "s1"}]
    lines = book().lines(program, marks={"result": "s1", "value": "s2", "before": "s3"})
    assert [(line.step, line.code) for line in lines[1:]] == [
        ("", "print('result:', s1.place, s1.kind)"),
        ("s2", "print('value:', s1)"),  # and not twice
        ("s4", "s4 = s1 + s2"),
    ]


def test_what_is_no_tensor_is_printed_as_it_is(book: Any) -> None:
    (_, shown) = book().lines({"steps": [step("item", REF)]}, marks={"result": "s9"})
    assert shown == Line("", "print('result:', s9)")


def test_an_observation_tells_how_a_missing_device_was_written_and_which_size_was_timed(book: Any) -> None:
    program = {"steps": [step("name", {"device": "absent"})]}
    told = book(spelled={"absent/object": "lib.Device('tpu')"})
    (line,) = told.lines(program, environment="wide-dtypes")
    assert not line.runs, "what is absent in another environment only a run can tell"
    (line,) = told.lines(program, environment="wide-dtypes", observation={"spelled": {"absent/object": "lib.Device('gpu')"}})
    assert line.code == "s9 = lib.Device('gpu')"
    asked = {
        "op": "add", "device": {"device": "device"}, "dtype": {"dtype": "float32"}, "chain": 3, "rounds": 1, "end": "read-other",
    }  # fmt: skip
    timed = {"steps": [{"id": "s9", "op": "time", "kw": asked}]}
    (line,) = book().lines(timed, observation={"steps": {"s9": {"value": {"size": 96}}}})
    assert "lib.full((96, 96), 0.5" in line.code
    assert line.code.index("other = left[0, 0]") < line.code.index("for _ in range(3):") < line.code.index("other.item()")
    (line,) = book("lazy").lines(timed)
    assert (line.runs, line.code) == (False, "# time: the simulation can't express it: nothing is computed")


def test_an_incomplete_script_says_why(book: Any) -> None:
    script = book().script({"steps": [step("looped", REF)]}, title="why")
    assert script.startswith("# why\n# incomplete: looped: see somebodys.adapter; it can't be written as plain code")


def test_without_a_target_the_adapters_example_with_the_roles_is_used(book: Any) -> None:
    book()
    path = "somebodys.adapter:Mine"
    for needs, kind, written in (({"host"}, "flat", "lib.Device('flat')"), ({"accelerator"}, "gpu", "lib.Device('gpu:0')")):
        phrases = Phrases.example("lib", path, needs)
        assert phrases.target["target"] == f"lib:{kind}"
        assert f"device={written}" in code(Reproducer(phrases), FULL)
    assert Phrases.example("lib", path, {"peer"}).target["target"] == "lib:gpu"


def test_without_examples_devices_are_called_by_their_roles(book: Any) -> None:
    book()
    phrases = Phrases.example("lib", "somebodys.adapter:Base")
    assert phrases.neutral
    assert phrases.device("peer") == "peer"
    with pytest.raises(UnclearError, match="host as string: it depends on the target"):
        phrases.device("host", "string")


def test_an_adapter_without_source_is_said() -> None:
    with pytest.raises(UnclearError, match="no adapter for nobodys is known here"):
        Phrases.example("nobodys")
    with pytest.raises(UnclearError, match=r"no (Python source of|module) math"):
        Phrases.example("mine", "math:Mine")
    with pytest.raises(UnclearError, match="no module"):
        Phrases.example("mine", "no.such.module:Mine")


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


# --- pasted at a prompt ------------------------------------------------------------------------------


def pasted(script: str) -> list[str]:
    """Take a script line by line, as a prompt does; return what it runs. Raises SyntaxError."""
    ran, waiting = [], ""
    for line in script.splitlines():
        waiting += line + "\n"
        if codeop.compile_command(waiting.rstrip("\n") if line else waiting, symbol="single") is not None:
            ran.append(waiting)
            waiting = ""
    assert not waiting.strip(), "a prompt still waits"
    return ran


@pytest.mark.parametrize("framework", ADAPTERS)
def test_every_script_can_be_pasted_at_a_prompt(framework: str) -> None:
    for one in [*catalogue().values()][::9]:
        book = Reproducer(Phrases.example(framework, needs=one.program.roles - {"device"}))
        lines = book.lines(one.program.wire(), marks=one.program.marks, environment=one.environment)
        pasted(book.script(one.program.wire(), environment=one.environment, lines=lines, title=one.id))


def test_an_empty_line_ends_a_block_and_nothing_else() -> None:
    text = "import a\nclass A:\n\n    x = 1\n\n    y = 2\nif a:\n    b()\nelse:\n    c()\nd()\n"
    assert pasteable(text) == "import a\n\nclass A:\n    x = 1\n    y = 2\n\nif a:\n    b()\nelse:\n    c()\n\nd()\n"
    with pytest.raises(SyntaxError):
        pasted(text)
    assert len(pasted(pasteable(text))) >= 4
