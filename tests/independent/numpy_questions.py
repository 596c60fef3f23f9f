"""NumPy's own answers to some of the suite's questions: run it alone, it needs NumPy and nothing else.

Each function asks one question in NumPy's own API and prints one JSON line: the facts, and the word
that they come to. NumPy has one device, the host.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Facts = dict[str, Any]
QUESTIONS: list[tuple[str, str, Callable[[], Facts]]] = []
#: Distinct, and neither zero nor one.
FOUR = [2.5, 3.5, 5.5, 7.5]


def question(case: str) -> Callable[[Callable[[], Facts]], Callable[[], Facts]]:
    """Keep a function under the case that it answers."""

    def keep(ask: Callable[[], Facts]) -> Callable[[], Facts]:
        QUESTIONS.append(("numpy:cpu", case, ask))
        return ask

    return keep


def told(compute: Callable[[], Any], expected: Any, word: Callable[[Any], str]) -> Facts:
    """Compute; an error is one answer, a wrong value another, and else the word that the result comes to."""
    try:
        result = compute()
    except Exception as error:
        return {"answer": "raises", "error": type(error).__name__}
    right = bool(np.array_equal(result, expected))
    return {"dtype": str(result.dtype), "value": "right" if right else "wrong", "answer": word(result) if right else "garbage"}


def finished(parts: list[float]) -> str:
    """Say what the calls did, by the part of the time after which they returned."""
    return "asynchronous" if max(parts) <= 0.5 else "synchronous" if min(parts) >= 0.8 else "inconclusive"


@question("placement/add/device-device")
def two_values_of_the_host() -> Facts:
    x = np.array(FOUR, np.float32)
    return told(lambda: x + x, [2 * v for v in FOUR], lambda y: "works" if y.device == x.device else "moves-elsewhere")


@question("scalars/python-float/add/right")
def a_python_float_beside_float32() -> Facts:
    words = {"float32": "keeps-dtype", "float64": "takes-scalar-dtype"}
    return told(lambda: np.array(FOUR, np.float32) + 2.5, [v + 2.5 for v in FOUR], lambda y: words.get(str(y.dtype), "other-dtype"))


@question("scalars/zero-dim-float64-on-float32/device-device/left")
def a_0_dim_float64_beside_float32() -> Facts:
    words = {"float32": "keeps-dtype", "float64": "takes-scalar-dtype"}
    scalar, x = np.array(2.0, np.float64), np.array(FOUR, np.float32)
    return told(lambda: scalar * x, [2 * v for v in FOUR], lambda y: words.get(str(y.dtype), "other-dtype"))


@question("moving/to-same/object")
def to_where_it_is() -> Facts:
    x = np.array(FOUR, np.float32)
    return told(
        lambda: x.to_device("cpu"), FOUR, lambda y: "same-object" if y is x else "shared-storage" if np.shares_memory(x, y) else "copy"
    )


@question("moving/misspelt/create-string")
def a_device_that_no_one_knows() -> Facts:
    name: Any = "cpuu"
    return told(lambda: np.zeros(2, device=name), [0.0, 0.0], lambda _: "accepted")


@question("dtypes/int32/sum")
def sum_of_int32() -> Facts:
    words = {"int32": "works", "int64": "widens"}
    return told(lambda: np.array([[2, -3], [5, 7]], np.int32).sum(), 11, lambda y: words.get(str(y.dtype), "narrows-silently"))


@question("dtypes/literal/float")
def floats_without_a_dtype() -> Facts:
    return told(lambda: np.asarray(FOUR, device="cpu"), FOUR, lambda y: str(y.dtype))


@question("time/loop/matmul")
def products_in_a_loop() -> Facts:
    """Time 20 chained products of three later rounds, up to five times until they decide."""
    x: Any = np.full((384, 384), 3.0, np.float32)
    part: Any = np.full((384, 384), 1 / 384, np.float32)
    for _ in range(5):
        parts = []
        for _ in range(4):
            value, start = x, time.perf_counter()
            for _ in range(20):
                value = value @ part
            returned = time.perf_counter() - start
            float(value[-1, -1])
            parts.append(returned / (time.perf_counter() - start))
        if finished(parts[1:]) != "inconclusive":
            break
    return {"answer": finished(parts[1:]), "parts": parts}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for target, case, ask in QUESTIONS:
        print(json.dumps({"target": target, "case": case, **ask()}), flush=True)
