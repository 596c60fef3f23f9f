"""Workers that are programs of their own: found or missed, started as they are, and their code as they write it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adapters import compiled
from adapters.hello import misfit
from adapters.process import NotStarted, Process
from adapters.source import UnclearError
from adapters.targets import Selector, Spec, adapters, parse, plan
from adapters.templates import Templates, book_of
from cases import catalogue
from cases.judge import applicable

SCHEMA = json.loads((Path(__file__).parent.parent / "adapters" / "protocol.schema.json").read_text("utf-8"))
#: A worker that is asked at once, and answers what it was told to.
PROGRAM = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "bye":
        break
    print(json.dumps({**json.loads(sys.argv[1]), "id": request["id"]}), flush=True)
"""
HOST = {"name": "Cpu", "expression": "Device::Cpu", "evidence": "measured"}
HELLO = {
    "type": "hello", "protocol": 1, "framework": "candle", "version": "1.0", "build": {}, "machine": {}, "environment": {},
    "environments": {}, "operations": [], "dtypes": [], "devices": {"cpu": {"available": True, "roles": {"host": HOST}}},
}  # fmt: skip
PHRASES = {
    "let": "let {0} = {1};", "observe": "println!(\"{1}{}\", {0});", "metadata": "println!(\"{1}{:?}\", {0}.dtype());",
    "drop": "drop({0});", "comment": "// {0}",
    "list": "({0})", "list/1": "{0}", "repeat": "[{0}; {1}]", "barrier": "{0}.synchronize()?;",
    "script": "fn main() {\n    {0}\n}", "float32": "F32", "number/float32": "{0}f32",
    "tensor": "Tensor::new(&{0 as 1}, &{2})?", "full": "Tensor::full({1 as 2}, {0}, &{3})?",
    "add": "(&{0} + &{1})?", "add/1": "(&{0} + {1})?", "matmul": "{0}.matmul(&{1})?", "to": "{0}.to_device(&{1})?",
}  # fmt: skip
GPU = {
    "framework": "candle", "device": "gpu", "phrases": PHRASES, "spelled": {"absent/object": "Device::new_tpu(0)?"},
    "roles": {"host": {"expression": "Device::Cpu"}, "accelerator": {"expression": "Device::new_gpu(0)?"}},
}  # fmt: skip
F32 = {"dtype": "float32"}


@contextmanager
def program(tmp_path: Path, reply: dict[str, Any]) -> Iterator[Process]:
    path = tmp_path / "worker.py"
    path.write_text(PROGRAM)
    process = Process(Spec("candle", None, (sys.executable, str(path), json.dumps(reply))))
    try:
        yield process
    finally:
        process.kill()


# --- where it is ---------------------------------------------------------------------------------


def test_a_program_is_where_cargo_puts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    assert compiled.program("candle").parts[-6:] == ("adapters", "rust", "candle", "target", "release", "candle-worker")
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    assert compiled.program("candle") == tmp_path / "release" / "candle-worker"


@pytest.mark.parametrize(("cargo", "says"), [("/usr/bin/cargo", "not built: cargo build"), (None, "cargo is not here: install Rust, then")])
def test_a_program_that_is_not_built_is_one_line_with_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cargo: str | None, says: str
) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: cargo)
    wanted, absent = plan([Selector("candle", "*")], adapters())
    assert not wanted
    assert [(one.name, one.explicit) for one in absent] == [("candle:*", False)]
    assert says in absent[0].why
    assert absent[0].why.endswith("cargo build --release --manifest-path adapters/rust/candle/Cargo.toml")


def test_a_program_that_is_built_is_a_target_like_any_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    built = compiled.program("candle")
    built.parent.mkdir()
    built.touch()
    wanted, absent = plan([parse("candle:cpu")], adapters())
    assert not absent
    assert wanted[0].spec.argv == (str(built),)
    assert wanted[0].spec.compiled
    outside, _ = plan([parse("candle:cpu")], adapters(["candle=mine.adapter:Candle"]))
    assert not outside[0].spec.compiled, "an adapter from outside is Python"


# --- how it is started ---------------------------------------------------------------------------


def test_nothing_is_handed_over_to_a_program(tmp_path: Path) -> None:
    with program(tmp_path, HELLO) as process:
        assert process.hello(30)["version"] == "1.0"


def test_a_program_that_cannot_use_its_framework_says_why(tmp_path: Path) -> None:
    reply = {"type": "unavailable", "missing": False, "why": "no driver"}
    with program(tmp_path, reply) as process, pytest.raises(NotStarted, match=r"candle can't be used in .*: no driver$"):
        process.hello(30)


@pytest.mark.parametrize("phrases", [["add"], {"add": 1}, "add"])
def test_phrases_of_another_form_are_a_hello_of_another_form(phrases: Any) -> None:
    assert misfit({**HELLO, "phrases": phrases}).startswith("phrases is ")
    assert misfit({**HELLO, "phrases": PHRASES}) == ""


# --- its code ------------------------------------------------------------------------------------


def lines(*steps: dict[str, Any]) -> list[str]:
    return [line.code for line in Templates(GPU).lines({"steps": list(steps)})]


def step(number: int, op: str, *args: Any, **more: Any) -> dict[str, Any]:
    return {"id": f"s{number}", "op": op, "args": list(args), **more}


def test_arguments_are_written_as_the_worker_says() -> None:
    device = {"device": "device", "spelled": "object"}
    assert lines(
        step(1, "tensor", {"data": [[2, -3.5]]}, F32, device), step(2, "full", [256, 256], 2, F32, {"device": "host"}),
        step(3, "full", [4], 2.0, F32, {"device": "absent"}), step(4, "add", {"ref": "s1"}, {"ref": "s2"}),
        step(5, "add", {"ref": "s1"}, 2.5), step(6, "observe", {"ref": "s5"}), step(7, "drop", {"ref": "s5"}),
        step(8, "tensor", {"data": [2] * 9}, F32, device), step(9, "barrier"),
        step(10, "observe", {"ref": "s1"}, when=["s4"]), step(11, "name", device),
    ) == [
        "let s1 = Tensor::new(&[[2.0f32, -3.5f32]], &accelerator)?;", "let s2 = Tensor::full(2.0f32, (256, 256), &host)?;",
        "let s3 = Tensor::full(2.0f32, 4, &Device::new_tpu(0)?)?;", "let s4 = (&s1 + &s2)?;", "let s5 = (&s1 + 2.5)?;",
        'println!("{}", s5);', "drop(s5);", "let s8 = Tensor::new(&[2.0f32; 9], &accelerator)?;", "accelerator.synchronize()?;",
        "let s11 = Device::new_gpu(0)?;",
    ]  # fmt: skip


def test_arguments_of_another_form_have_phrases_of_their_own() -> None:
    phrases = {
        **PHRASES, "tensor/0-dim": "Tensor::new({0 as 1}, &{2})?", "cast": "{0}.to({1})", "cast/bool": "{0}.truth()", "bool": "BOOL",
        "add/0": "{plain 0} + &{1}", "number/int": "{0}i64", "number/float": "{0}f64", "show": "println!(\"{1}{:?}\", {0});",
        "buffer": "vec!{0 as 2}", "write_buffer": "{0}.fill({1});", "from_buffer": "Tensor::<{kind 0}>::of({0}, {dtype 0}, &{1})",
        "kind/float32": "Float", "kind/int64": "Int", "int64": "I64", "to_list": "{0}.to_vec()",
    }  # fmt: skip
    host, s1 = {"device": "host", "spelled": "object"}, {"ref": "s1"}
    steps = [
        step(1, "tensor", {"data": 2.5}, F32, host), step(2, "tensor", {"data": []}, F32, host), step(3, "cast", s1, {"dtype": "bool"}),
        step(4, "add", 3, s1), step(5, "add", 2.5, s1), step(6, "add", True, s1), step(7, "buffer", {"data": [2.0, 3]}, "aligned"),
        step(8, "write_buffer", {"ref": "s7"}, 9.0), step(9, "from_buffer", {"ref": "s7"}, host), step(10, "barrier"),
        step(11, "buffer", {"data": [2]}, "misaligned", "int64"), step(12, "from_buffer", {"ref": "s11"}, host),
        step(13, "to_list", s1), step(14, "observe", {"ref": "s13"}),
    ]  # fmt: skip
    assert [line.code for line in Templates({**GPU, "phrases": phrases}).lines({"steps": steps})] == [
        "let s1 = Tensor::new(2.5f32, &host)?;", "let s2 = Tensor::new(&[0.0f32; 0], &host)?;", "let s3 = s1.truth();",
        "let s4 = 3i64 + &s1;", "let s5 = 2.5f64 + &s1;", "let s6 = true + &s1;", "let s7 = vec![2.0f32, 3.0f32];", "s7.fill(9.0);",
        "let s9 = Tensor::<Float>::of(s7, F32, &host);", "// nothing to wait for", "let s11 = vec![2];",
        "let s12 = Tensor::<Int>::of(s11, I64, &host);", "let s13 = s1.to_vec();", 'println!("{:?}", s13);',
    ]  # fmt: skip


def test_results_and_what_is_looked_at_are_printed_by_the_names_of_their_marks() -> None:
    steps = [step(1, "full", [2], 3, F32, {"device": "host"}), step(2, "observe", {"ref": "s1"}), step(3, "observe", {"ref": "s1"})]
    assert [line.code for line in Templates(GPU).lines({"steps": steps}, marks={"result": "s1", "value": "s2"})] == [
        "let s1 = Tensor::full(3.0f32, 2, &host)?;", 'println!("result: {:?}", s1.dtype());', 'println!("value: {}", s1);',
        'println!("{}", s1);',
    ]  # fmt: skip


def test_a_device_that_was_written_otherwise_in_an_environment_is_shown_as_it_was() -> None:
    steps = [step(1, "name", {"device": "absent"})]
    assert lines(*steps) == ["let s1 = Device::new_tpu(0)?;"]
    (line,) = Templates(GPU).lines(
        {"steps": steps}, environment="no-accelerator", observation={"spelled": {"absent/object": "Device::new_gpu(0)?"}}
    )
    assert line.code == "let s1 = Device::new_gpu(0)?;"


def test_what_has_no_phrase_is_a_comment_that_does_not_run() -> None:
    scope = {"id": "s3", "scope": "inference", "body": []}
    found = Templates(GPU).lines({"steps": [step(1, "gather", {"ref": "s0"}), step(2, "to", {"ref": "s1"}, {"device": "peer"}), scope]})
    assert [line.runs for line in found] == [False] * 3
    assert [line.code for line in found] == [
        "// gather: there is no phrase for it", "// to: peer as object can't be written here",
        "// scope inference: there is no phrase for it",
    ]  # fmt: skip


def test_a_timed_loop_is_code() -> None:
    phrases = {
        **PHRASES, "corner": "{0}.i((0, 0))?", "item": "{0}.to_scalar()?", "value": "{0}.clone()",
        "timed": "{0} | {1} times {3}, {2} rounds | {4}", "timed/read": "{0} | {1} times {3}, {2} rounds | {5} | {4}",
        "timed/moved": "{0} | {1} moves {3}, {2} rounds | {4}", "to_async": "{0}.to_device(&{1})?", "to_memory": "{0}.pin()?",
    }  # fmt: skip
    asked = {"op": "matmul", "chain": 20, "rounds": 3, "device": {"device": "device"}, "dtype": F32, "end": "barrier"}
    seen = {"steps": {"s1": {"value": {"size": 384}}}}

    def timed(**more: Any) -> str:
        program = {"steps": [{"id": "s1", "op": "time", "kw": asked | more}]}
        (line,) = Templates({**GPU, "phrases": phrases}).lines(program, observation=seen)
        assert line.runs
        return line.code

    operands = (
        f"let left = Tensor::full({2 / 384}f32, (384, 384), &accelerator)?;\nlet right = Tensor::full(3.0f32, (384, 384), &accelerator)?;"
    )
    loop = "20 times left.clone().matmul(&value.clone())?, 4 rounds"
    assert timed() == f"{operands} | {loop} | accelerator.synchronize()?;"
    assert timed(end="read") == f"{operands} | {loop} | value.clone().i((0, 0))?.to_scalar()? | accelerator.synchronize()?;"
    other = f"{operands}\nlet other = left.clone().i((0, 0))?; | {loop} | other.clone().to_scalar()? | accelerator.synchronize()?;"
    assert timed(end="read-other") == other
    moves = {"op": "to_async", "source": {"device": "host"}, "device": {"device": "accelerator"}}
    left = "let left = Tensor::full(0.5f32, (384, 384), &host)?;"
    loop = "20 moves left.clone().to_device(&accelerator)?, 4 rounds | accelerator.synchronize()?;"
    assert timed(**moves, memory="device") == f"{left} | {loop}"
    assert timed(**moves, memory="pinned-host") == f"{left}\nlet left = left.clone().pin()?; | {loop}"
    (line,) = Templates(GPU).lines({"steps": [{"id": "s1", "op": "time", "kw": asked}]})
    assert (line.runs, line.code) == (False, "// time: there is no phrase for it")


def test_a_script_names_each_device_once_and_waits_at_the_end() -> None:
    phrases = {**PHRASES, "environment/no-accelerator": "CUDA_VISIBLE_DEVICES="}
    target = {**GPU, "environment": {"CUDA_VISIBLE_DEVICES": "0"}, "phrases": phrases}
    steps = [step(1, "full", [2], 3, F32, {"device": "accelerator"}), step(2, "to", {"ref": "s1"}, {"device": "host"})]
    assert Templates(target).script({"steps": steps}, title="a question", environment="no-accelerator").splitlines() == [
        "// a question", "// CUDA_VISIBLE_DEVICES=0", "// CUDA_VISIBLE_DEVICES=", "fn main() {", "    let host = Device::Cpu;",
        "    let accelerator = Device::new_gpu(0)?;", "    let s1 = Tensor::full(3.0f32, 2, &accelerator)?;",
        "    let s2 = s1.to_device(&host)?;", "    accelerator.synchronize()?;", "}",
    ]  # fmt: skip


def test_a_record_without_phrases_has_no_code_to_show() -> None:
    with pytest.raises(UnclearError, match="keeps none of its phrases"):
        book_of({"framework": "candle", "device": "cpu", "roles": {}})


def test_phrases_are_asked_of_a_program_only_where_it_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    with pytest.raises(UnclearError, match=r"not built.* cargo build --release"):
        Templates.example("candle")


# --- the real ones -------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", compiled.CRATES)
def test_what_a_built_worker_says_fits_the_schema_and_every_question_has_code(framework: str) -> None:
    if compiled.missing(framework):
        pytest.skip(f"{framework}'s worker is not built: tox run -e rust")

    def check(line: dict[str, Any], part: str) -> None:
        jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]}).validate(line)

    process = Process(Spec(framework, None, (str(compiled.program(framework)),)))
    try:
        hello = process.hello(60)
        check(hello, "hello")
        device, facts = next((name, facts) for name, facts in hello["devices"].items() if facts["available"])
        book = book_of({**hello, "device": device, "roles": facts["roles"], "spelled": facts["spelled"]})
        for case in catalogue().values():
            program = case.program.wire()
            assert all(line.code for line in book.lines(program, marks=case.program.marks))
            # What no memory could hold ends a program in Rust.
            if not (case.alone or case.environment or case.id.startswith("moving/too-large/")):
                check({"type": "observation", "id": 0, "observation": process.run(device, program, None, 30)}, "observation-reply")
    finally:
        process.end()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "case", "printed"),
    [("candle:cpu", "placement/matmul/device-device", "1536"), ("burn:flex", "moving/write-original/to-same", "[12.0, 23.0, 35.0, 47.0]")],
)
def test_a_script_is_a_program(target: str, case: str, printed: str, tmp_path: Path) -> None:
    """Compile what is shown, and see the numbers that the suite expects."""
    framework = target.partition(":")[0]
    buildable(framework)
    explain = [sys.executable, "-m", "reports", "explain", case, "--target", target, "--script"]
    script = subprocess.run(explain, capture_output=True, text=True, check=True).stdout
    assert printed in built(framework, tmp_path, {"shown.rs": script})


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "kind"), [("candle", "cpu"), ("burn", "ndarray")])
def test_every_script_of_a_question_that_is_answered_compiles(framework: str, kind: str, tmp_path: Path) -> None:
    buildable(framework)
    scripts: dict[str, str] = {}
    process = Process(Spec(framework, None, (str(compiled.program(framework)),)))
    try:
        hello = process.hello(60)
        facts = hello["devices"][kind]
        environments = sorted({**hello["environments"], **facts["environments"]})
        target = {**hello, "target": f"{framework}:{kind}", "device": kind, **facts, "environments": environments}
        for case in catalogue().values():
            program = case.program.wire()
            # What is timed is not worth its time here, and what ends the process asks no more; it may lack a word all the same.
            asked = not (case.alone or case.environment or case.id.startswith("moving/too-large/"))
            if applicable(case, target) or (asked and not offered(process.run(kind, program, None, 30))):
                continue
            lines = book_of(target).lines(program, marks=case.program.marks)
            if not asked and not all(line.runs for line in lines):
                continue
            assert all(line.runs for line in lines), case.id
            scripts[f"m{len(scripts)}"] = book_of(target).script(program, title=case.id, lines=lines)
    finally:
        process.end()
    assert len(scripts) > 100
    attribute = re.compile(r"^#!\[.*\]\n", re.M)
    modules = {f"{name}.rs": attribute.sub("", text).replace("fn main()", "pub fn main()") for name, text in scripts.items()}
    calls = "".join(f"if wanted == \"{name}\" {{ let _ = {name}::main(); }}\n" for name in scripts)
    head = "#![recursion_limit = \"256\"]\n#![allow(unused_imports, unused_mut, deprecated)]\n"
    named = "".join(f"#[path = \"shown/{name}.rs\"] mod {name};\n" for name in scripts)
    main = f"{head}{named}fn main() {{ let wanted = std::env::args().nth(1).unwrap_or_default();\n{calls}}}\n"
    built(framework, tmp_path, {"shown.rs": main, **{f"shown/{name}": text for name, text in modules.items()}})


def offered(observation: dict[str, Any]) -> bool:
    return not any("not_offered" in fact for fact in observation["steps"].values())


def buildable(framework: str) -> None:
    if compiled.missing(framework) or not shutil.which("cargo"):
        pytest.skip(f"{framework}'s worker is not built: tox run -e rust")


def built(framework: str, folder: Path, sources: dict[str, str]) -> str:
    """Return what a program prints that is compiled as an example of a worker's crate: where that was built its dependencies are too."""
    crate = Path(compiled.__file__).parent / "rust" / framework
    shutil.copytree(crate, folder / framework, ignore=shutil.ignore_patterns("target"))
    shutil.copytree(crate.parent / "worker", folder / "worker", ignore=shutil.ignore_patterns("target"))
    for name, text in sources.items():
        path = folder / framework / "examples" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = ["cargo", "run", "--quiet", "--release", "--offline", "--example", "shown"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(compiled.program(framework).parents[1])}
    done = subprocess.run(run, cwd=folder / framework, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
