"""array-api-strict's own answers to some of the suite's questions: it needs that library and nothing else.

Each function asks one question in the array API standard's own words and prints one JSON line: the
facts, and the word that they come to. Its devices beside the host are there to catch code that
mixes them; two of them lack wide dtypes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import array_api_strict as xp

Facts = dict[str, Any]
QUESTIONS: list[tuple[str, str, Callable[[], Facts]]] = []
HOST, ONE, TWO = (xp.Device(name) for name in ("CPU_DEVICE", "device1", "device2"))
#: Distinct, and neither zero nor one.
FOUR = [2.5, 3.5, 5.5, 7.5]


def question(device: str, case: str) -> Callable[[Callable[[], Facts]], Callable[[], Facts]]:
    """Keep a function under the target and the case that it answers."""

    def keep(ask: Callable[[], Facts]) -> Callable[[], Facts]:
        QUESTIONS.append((f"array-api-strict:{device}", case, ask))
        return ask

    return keep


def told(compute: Callable[[], Any], expected: list[float] | float, word: Callable[[Any], str]) -> Facts:
    """Compute; an error is one answer, a wrong value another, and else the word that the result comes to."""
    try:
        result = compute()
    except Exception as error:
        return {"answer": "raises", "error": type(error).__name__}
    at_home = result.to_device(HOST)
    read = [float(at_home[i]) for i in range(at_home.shape[0])] if at_home.ndim else float(at_home)
    right = read == expected
    facts = {"dtype": str(result.dtype).rpartition(".")[2], "value": "right" if right else "wrong"}
    return {**facts, "answer": word(result) if right else "garbage"}


def floats(device: Any) -> Any:
    """Make four floats on a device."""
    return xp.asarray(FOUR, dtype=xp.float32, device=device)


def place(result: Any) -> str:
    """Say where a result is, where device1 is the accelerator."""
    return f"moves-to-{({HOST: 'host', ONE: 'accelerator'}).get(result.device, 'elsewhere')}"


@question("device1", "placement/add/host-accelerator")
def host_plus_device1() -> Facts:
    return told(lambda: floats(HOST) + floats(ONE), [2 * v for v in FOUR], place)


@question("device1", "placement/less/accelerator-host")
def device1_less_than_host() -> Facts:
    return told(lambda: floats(ONE) < floats(HOST), [0.0] * 4, place)


@question("device1", "scalars/zero-dim/host-accelerator/right")
def device1_times_a_0_dim_host_value() -> Facts:
    return told(lambda: floats(ONE) * xp.asarray(2.5, dtype=xp.float32, device=HOST), [2.5 * v for v in FOUR], place)


@question("device1", "scalars/python-float/mul/right")
def device1_times_a_python_float() -> Facts:
    words = {"float32": "keeps-dtype", "float64": "takes-scalar-dtype"}
    return told(lambda: floats(ONE) * 2.5, [2.5 * v for v in FOUR], lambda y: words.get(str(y.dtype).rpartition(".")[2], "other-dtype"))


@question("device1", "scalars/python-float-on-int32/mul/right")
def an_int32_times_a_python_float() -> Facts:
    return told(lambda: xp.asarray([2, 3], dtype=xp.int32, device=ONE) * 2.5, [5.0, 7.5], lambda _: "other-dtype")


@question("device1", "moving/to-accelerator/object")
def from_the_host_to_device1() -> Facts:
    x = floats(HOST)
    return told(lambda: x.to_device(ONE), FOUR, lambda y: "moves" if y.device == ONE else "stays")


@question("device1", "moving/equality/device-alias")
def two_handles_for_device1() -> Facts:
    one, other = xp.Device("device1"), xp.Device("device1")
    if (one == other) != (other == one):
        return {"answer": "asymmetric"}
    return {"answer": "unequal" if one != other else "equal" if hash(one) == hash(other) else "equal-other-hash"}


@question("device1", "moving/no-device/zeros-like")
def zeros_like_a_value_of_device1() -> Facts:
    x = floats(ONE)
    return told(lambda: xp.zeros_like(x), [0.0] * 4, lambda y: "on-accelerator" if y.device == ONE else "on-host")


@question("device2", "moving/misspelt/create-object")
def a_device_that_no_one_knows() -> Facts:
    return told(lambda: xp.zeros(2, device=xp.Device("device22")), [0.0, 0.0], lambda _: "accepted")


@question("no_float64", "dtypes/float64/create")
def float64_where_there_is_none() -> Facts:
    device = xp.Device("no_float64")
    return told(lambda: xp.asarray(FOUR, dtype=xp.float64, device=device), FOUR, lambda y: "works" if y.dtype == xp.float64 else "widens")


@question("no_float64", "dtypes/literal/float")
def floats_without_a_dtype_where_there_is_no_float64() -> Facts:
    return told(lambda: xp.asarray(FOUR, device=xp.Device("no_float64")), FOUR, lambda y: str(y.dtype).rpartition(".")[2])


@question("CPU_DEVICE", "dtypes/uint8/sum")
def sum_of_uint8() -> Facts:
    return told(
        lambda: xp.sum(xp.asarray([2, 3, 5], dtype=xp.uint8, device=HOST)), 10.0, lambda y: "works" if y.dtype == xp.uint8 else "widens"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for target, case, ask in QUESTIONS:
        print(json.dumps({"target": target, "case": case, **ask()}), flush=True)
