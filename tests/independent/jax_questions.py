"""JAX's own answers to some of the suite's questions: run it alone, it needs JAX (with NumPy, 0.4.20 or later) and nothing else.

Each function asks one question in JAX's own API and prints one JSON line: the facts, and the word
that they come to. Of three forced CPU devices the first is the host, the second plays the
accelerator and the third a second accelerator; a value is committed to a device by `device_put`.
Arguments are the questions to ask; without any, all are asked. What releases said is kept in `releases.jsonl`.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

Facts = dict[str, Any]
QUESTIONS: list[tuple[str, str, Callable[[], Facts]]] = []
HOST, ACCELERATOR, PEER = jax.devices("cpu")
NAMES = {HOST: "host", ACCELERATOR: "accelerator", PEER: "peer"}
#: Distinct, and neither zero nor one.
FOUR = [2.5, 3.5, 5.5, 7.5]


def question(case: str) -> Callable[[Callable[[], Facts]], Callable[[], Facts]]:
    """Keep a function under the case that it answers."""

    def keep(ask: Callable[[], Facts]) -> Callable[[], Facts]:
        QUESTIONS.append(("jax:cpu", case, ask))
        return ask

    return keep


def put(values: Any, device: Any) -> Any:
    """Make a float32 value and commit it to a device."""
    return jax.device_put(np.asarray(values, np.float32), device)


def told(compute: Callable[[], Any], expected: Any, word: Callable[[Any], str]) -> Facts:
    """Compute; an error is one answer, a wrong value another, and else the word that the result comes to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = jax.block_until_ready(compute())
        except Exception as error:
            return {"answer": "raises", "error": type(error).__name__}
    right = bool(np.array_equal(np.asarray(result), np.asarray(expected)))
    facts = {"dtype": str(result.dtype), "value": "right" if right else "wrong", "warned": [str(w.message) for w in caught]}
    return {**facts, "answer": word(result) if right else "garbage"}


def place(result: Any) -> str:
    """Say where a result is."""
    return f"moves-to-{where(result)}"


def where(value: Any) -> str:
    """Return the one device of a value, as every release tells it: `device` was a method once."""
    (device,) = value.devices()
    return NAMES[device]


# --- placement -----------------------------------------------------------------------------------


@question("placement/add/host-accelerator")
def two_committed_values() -> Facts:
    x, y = put(FOUR, HOST), put(FOUR, ACCELERATOR)
    return told(lambda: x + y, [2 * v for v in FOUR], place)


@question("placement/where-condition/host-accelerator")
def a_condition_on_another_device() -> Facts:
    condition = jax.device_put(np.array([True, False, True, False]), HOST)
    x, y = put(FOUR, ACCELERATOR), put(FOUR[::-1], ACCELERATOR)
    return told(lambda: jnp.where(condition, x, y), [2.5, 5.5, 5.5, 2.5], place)


@question("placement/index/accelerator-peer")
def ids_on_another_device() -> Facts:
    x, ids = put(FOUR, ACCELERATOR), jax.device_put(np.array([3, 1, 1], np.int32), PEER)
    return told(lambda: x[ids], [7.5, 3.5, 3.5], place)


# --- scalars -------------------------------------------------------------------------------------


@question("scalars/zero-dim/host-accelerator/left")
def a_committed_0_dim_value() -> Facts:
    scalar, x = put(2.5, HOST), put(FOUR, ACCELERATOR)
    return told(lambda: scalar * x, [2.5 * v for v in FOUR], place)


@question("scalars/python-float-on-int32/mul/left")
def a_python_float_beside_int32() -> Facts:
    x = jax.device_put(np.array([2, 3, 5], np.int32), ACCELERATOR)
    # Python's own floats have 64 bits.
    words = {"float64": "takes-scalar-dtype", "int32": "truncates"}
    return told(lambda: 2.5 * x, [5.0, 7.5, 12.5], lambda y: words.get(str(y.dtype), "other-dtype"))


@question("scalars/zero-dim-float32-on-int32/device-device/right")
def a_0_dim_float32_beside_int32() -> Facts:
    x, scalar = jax.device_put(np.array([2, 3, 5], np.int32), ACCELERATOR), put(2.5, ACCELERATOR)
    words = {"float32": "takes-scalar-dtype", "int32": "truncates"}
    return told(lambda: x * scalar, [5.0, 7.5, 12.5], lambda y: words.get(str(y.dtype), "other-dtype"))


# --- moving --------------------------------------------------------------------------------------


@question("moving/uncommitted/any-accelerator/left")
def a_value_that_nobody_placed() -> Facts:
    x, y = jnp.asarray(FOUR, jnp.float32), put(FOUR, ACCELERATOR)
    return told(lambda: x + y, [2 * v for v in FOUR], place)


@question("moving/scoped/peer-accelerator/right")
def a_value_made_under_a_default_device() -> Facts:
    with jax.default_device(PEER):
        x = jnp.asarray(FOUR, jnp.float32)
    y = put(FOUR, ACCELERATOR)
    return told(lambda: y + x, [2 * v for v in FOUR], place)


@question("moving/default-device/zeros")
def zeros_under_a_default_device() -> Facts:
    with jax.default_device(ACCELERATOR):
        return told(lambda: jnp.zeros(4), [0.0] * 4, lambda y: f"on-{where(y)}")


@question("moving/no-device/zeros-like")
def zeros_like_a_value_of_the_accelerator() -> Facts:
    x = put(FOUR, ACCELERATOR)
    return told(lambda: jnp.zeros_like(x), [0.0] * 4, lambda y: f"on-{where(y)}")


@question("moving/to-same/object")
def put_where_it_is() -> Facts:
    x = put(FOUR, ACCELERATOR)
    return told(lambda: jax.device_put(x, ACCELERATOR), FOUR, lambda y: identity(x, y))


@question("moving/to-same/copy")
def put_where_it_is_as_a_copy() -> Facts:
    if "may_alias" not in inspect.signature(jax.device_put).parameters:
        return {"answer": "not-offered"}
    x = put(FOUR, ACCELERATOR)
    return told(lambda: jax.device_put(x, ACCELERATOR, may_alias=False), FOUR, lambda y: identity(x, y))


def identity(x: Any, y: Any) -> str:
    """Say what two names have in common."""
    if y is x:
        return "same-object"
    return "shared-storage" if x.unsafe_buffer_pointer() == y.unsafe_buffer_pointer() else "copy"


@question("moving/to-peer/object")
def from_one_accelerator_to_the_other() -> Facts:
    x = put(FOUR, ACCELERATOR)
    return told(lambda: jax.device_put(x, PEER), FOUR, lambda y: "moves" if where(y) == "peer" else "stays")


@question("moving/equality/accelerator-peer")
def one_accelerator_against_the_other() -> Facts:
    return {"answer": "unequal" if ACCELERATOR != PEER and PEER != ACCELERATOR else "equal"}


@question("moving/out-of-range/create-object")
def a_device_beyond_the_last() -> Facts:
    return told(lambda: jnp.zeros(4, device=jax.devices("cpu")[3]), [0.0] * 4, lambda _: "accepted")


# --- dtypes --------------------------------------------------------------------------------------


def kept(asked: str, computed: Callable[[], Any], expected: Any) -> Facts:
    """Say whether the dtype is the one that was asked for, and whether a warning names it where it isn't."""
    facts = told(computed, expected, lambda y: "works" if y.dtype == asked else "widens")
    got = facts.get("dtype", asked)
    if got != asked and jnp.dtype(got).itemsize <= jnp.dtype(asked).itemsize:
        facts["answer"] = "narrows-with-warning" if any(asked in text for text in facts["warned"]) else "narrows-silently"
    return facts


@question("dtypes/float64/create")
def float64_as_jax_comes() -> Facts:
    return kept("float64", lambda: jax.device_put(jnp.asarray(FOUR, dtype="float64"), ACCELERATOR), FOUR)


@question("dtypes/int64/host-memory")
def large_int64_of_the_host() -> Facts:
    values = np.array([2**40 + 3, -(2**35) - 7, 5], np.int64)
    return kept("int64", lambda: jax.device_put(values, ACCELERATOR), values)


@question("dtypes/int32/sum")
def sum_of_int32() -> Facts:
    x = jax.device_put(np.array([[2, -3], [5, 7]], np.int32), ACCELERATOR)
    return kept("int32", x.sum, 11)


@question("dtypes/bool/sum")
def sum_of_truths() -> Facts:
    x = jax.device_put(np.array([[True, False], [True, True]]), ACCELERATOR)
    return kept("bool", x.sum, 3)


@question("dtypes/float8_e4m3fn/matmul")
def product_of_float8() -> Facts:
    rows, columns = (jax.device_put(np.asarray(v, jnp.float8_e4m3fn), ACCELERATOR) for v in ([[2, -3], [1, 2]], [[2, -1], [-1, 1]]))
    return kept("float8_e4m3fn", lambda: rows @ columns, [[7, -5], [0, 1]])


@question("dtypes/int4/add")
def sum_of_two_int4() -> Facts:
    x, y = (jax.device_put(jnp.array(v, dtype=jnp.int4), ACCELERATOR) for v in ([2, -3], [3, -4]))
    return kept("int4", lambda: x + y, [5, -7])


# --- time ----------------------------------------------------------------------------------------


def rounds(finish: Callable[[Any], Any]) -> list[tuple[float, float, float]]:
    """Time 20 chained products of three later rounds: left, finished with something, all done."""
    x, half = put(np.full((512, 512), 3.0), ACCELERATOR), put(np.full((512, 512), 1 / 512), ACCELERATOR)
    found = []
    for _ in range(4):
        value, start = x, time.perf_counter()
        for _ in range(20):
            value = value @ half
        returned = time.perf_counter() - start
        finish(value)
        finished = time.perf_counter() - start
        value.block_until_ready()
        found.append((returned, finished, time.perf_counter() - start))
    return found[1:]


def parts(finish: Callable[[Any], Any], column: int) -> list[float]:
    """Return what part of the whole had passed, up to five times until it decides."""
    for _ in range(5):
        found = [r[column] / r[2] for r in rounds(finish)]
        if max(found) <= 0.5 or min(found) >= 0.8:
            break
    return found


@question("time/loop/matmul")
def products_in_a_loop() -> Facts:
    found = parts(lambda _: None, 0)
    return {"answer": "asynchronous" if max(found) <= 0.5 else "synchronous" if min(found) >= 0.8 else "inconclusive", "parts": found}


@question("time/read/result")
def one_element_of_the_result() -> Facts:
    found = parts(lambda value: float(value[-1, -1]), 1)
    return {"answer": "returns-early" if max(found) <= 0.5 else "waits" if min(found) >= 0.8 else "inconclusive", "parts": found}


if __name__ == "__main__":
    for target, case, ask in [one for one in QUESTIONS if one[1] in (sys.argv[1:] or [one[1]])]:
        print(json.dumps({"version": jax.__version__, "target": target, "case": case, **ask()}), flush=True)
