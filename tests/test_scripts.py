"""Scripts: a whole program in native code, with all that it needs, for any prompt."""

from __future__ import annotations

import codeop
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.phrases import Phrases
from adapters.reproducer import Line, Reproducer
from adapters.source import UnclearError
from adapters.wording import pasteable
from adapters.worker import ADAPTERS
from cases import catalogue
from tests.somebody import FULL, OTHER, REF, books, code, step


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from books(tmp_path, monkeypatch)


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
