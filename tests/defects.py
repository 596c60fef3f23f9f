"""The defects of the small framework in `tests.fake`: one device kind of the dummy for each.

A defect is a fault of an operation or of the runtime. None knows a case or an answer.
"""

from __future__ import annotations

from functools import cache

from tests.fake_runtime import EFFECTS, FAMILIES

MAKES_VALUES = "uploading literals defaulting filling likening computing moving casting looking"
#: Faults of one place, by the name of the device kind that has them: the families, operations and
#: scopes that they strike, and what is broken.
SINGLE: dict[str, tuple[str, str]] = {
    "moves-to-first": ("computing writing", "mixed operands go to the first one's device"),
    "moves-to-last": ("computing writing", "mixed operands go to the last one's device"),
    "loses-errors": ("computing writing", "mixed operands are noticed, the error is lost and the result never written"),
    "checks-late": (
        "computing writing uploading literals defaulting filling moving",
        "devices are looked at when the work runs and not at the call",
    ),
    "scalars-are-no-exception": ("computing writing", "a 0-dim host value mixes with nothing"),
    "one-element-is-scalar": ("computing writing", "any host value of one element counts as a scalar"),
    "scalars-from-anywhere": ("computing writing", "a 0-dim value counts as a scalar on every device"),
    "promotes-by-scalar": ("computing", "a scalar's dtype wins"),
    "casts-scalars-first": ("computing", "a scalar is cast to the tensor's dtype before it is used"),
    "promotes-to-widest": ("computing", "every result is complex128"),
    "refuses-where": ("where", "choosing by a condition is not implemented, comparing is"),
    "compares-memory": ("array_equal", "equality of values compares their storage"),
    "views-lose-offset": ("viewing", "a view starts where its storage does"),
    "views-copy": ("viewing", "a view has storage of its own"),
    "copies-on-same-to": ("moving pinning casting", "moving to the same device copies"),
    "rewraps-on-same-to": ("moving pinning casting", "moving to the same device makes a new object over the same storage"),
    "writes-to-copies": ("writing", "a write changes a copy, which it returns, and not the value"),
    "ignores-copy-requests": ("to_copy from_buffer_copy", "a copy that was asked for is not made"),
    "aliases-host-memory": ("from_buffer", "host memory is used in place where no copy is asked for"),
    "ignores-dtype-on-move": ("to_both", "a move to device and dtype forgets the dtype"),
    "ignores-moves-to-host": ("moving pinning casting", "a move to the host does nothing"),
    "ignores-moves-to-accelerators": ("moving pinning casting", "a move to an accelerator does nothing"),
    "refuses-pinning-twice": ("pinning", "what is pinned can't be pinned again"),
    "aliases-across-devices": ("moving pinning casting", "a move shares storage with the original, as unified memory does"),
    "moves-originals": ("moving pinning casting", "a move takes the original along"),
    "clobbers-originals": ("moving pinning casting", "a move hands the original's memory out again"),
    "modules-move-as-copies": ("move_module", "a module that is moved stays, and a moved one comes back"),
    "modules-come-back-anew": ("move_module", "a module is moved in place, and another one over its values comes back"),
    "modules-take-everything": ("move_module", "a module's plain lists and attributes are moved too"),
    "narrows-wide": (MAKES_VALUES, "the accelerator holds 64-bit dtypes as 32-bit ones, without a word"),
    "refuses-wide": (MAKES_VALUES, "the accelerator has no 64-bit dtypes"),
    "literals-are-wide": ("literals computing", "floats without a dtype are float64"),
    "defaults-to-accelerator": ("defaulting default-device", "creation without a device goes to the accelerator"),
    "ignores-default-device": ("defaulting default-device", "a default device changes nothing"),
    "default-device-overrides": ("default-device", "a default device wins over the one that is said"),
    "loses-default-device": ("defaulting default-device", "once a default device's region ends there is no default any more"),
    "ignores-current-device": ("current-device", "a current accelerator changes nothing"),
    "current-device-overrides": ("current-device", "the current accelerator wins over an index that is said"),
    "leaks-current-device": ("current-device", "a current accelerator outlives its region"),
    "like-ignores-operand": ("likening", "zeros_like goes to the default device"),
    "accepts-absent-devices": ("uploading literals defaulting filling moving parse_device", "any device name is believed"),
    "absent-becomes-host": ("uploading literals defaulting filling moving parse_device", "a device that isn't there is the host"),
    "absent-becomes-first": (
        "uploading literals defaulting filling moving parse_device",
        "a device that isn't there is the first accelerator",
    ),
    "devices-not-comparable": ("compare", "comparing devices raises"),
    "devices-compare-handles": ("compare", "two handles of one device are unequal"),
    "devices-equal-names": ("compare", "a device is equal to the text that it prints as"),
    "devices-all-equal": ("compare", "all devices are equal"),
    "devices-compare-one-way": ("compare", "an older handle equals a younger one and not the other way round"),
    "devices-hash-handles": ("compare", "equal handles have hashes of their own"),
    "hides-ordinals": ("ordinal", "a device can't be asked for its ordinal"),
    "reports-no-ordinal": ("ordinal", "no device has an ordinal"),
    "numbers-the-host": ("ordinal", "the host has the ordinal 0"),
    "numbers-all-alike": ("ordinal", "every device has the ordinal 0"),
    "reports-registry-ids": ("ordinal", "a device reports a registry's number as its ordinal"),
    "counting-raises": ("accelerator_count best_device", "asking how many accelerators there are raises"),
    "counts-none": ("accelerator_count best_device", "no accelerator is ever counted"),
    "counts-hidden-devices": ("accelerator_count best_device", "accelerators that are hidden are counted all the same"),
    "blocks": ("time", "calls return when their work is done"),
    "half-blocks": ("time", "calls return when most of their work is done"),
    "warms-up": ("time", "the first call of each operation loads its kernel"),
    "allocates-queues": ("time", "a queue that grows longer than ever before makes its buffers"),
    "reads-without-waiting": ("time looking observe", "reading doesn't wait for the queue"),
    "leaks-default-device": ("default-device matmul", "a default device outlives its scope; a matrix product sets one"),
    "leaks-environment": ("matmul", "a matrix product changes the environment"),
    # A matrix product ends or stops the process, or floods its output.
    "dies": ("matmul", "a matrix product ends in a segmentation fault"),
    "aborts": ("matmul", "a matrix product calls abort"),
    "exits": ("matmul", "a matrix product ends the process with status 0"),
    "hangs": ("matmul", "a matrix product never returns"),
    "prints-rubbish": ("matmul", "a matrix product floods standard output and standard error"),
    "poisons-device": ("matmul", "a matrix product loses the device for this process"),
}
#: Faults that a user meets together only.
COMBINED = (
    ("ignores-copy-requests", "rewraps-on-same-to"),
    ("reads-without-waiting", "fails-late-looking"),
    ("devices-equal-names", "devices-hash-handles"),
    ("devices-all-equal", "devices-hash-handles"),
    ("writes-to-copies", "moves-to-first"),
    ("modules-take-everything", "modules-move-as-copies"),
    ("modules-take-everything", "modules-come-back-anew"),
)
#: Kinds that end or stop the process they run in, or spoil it for what follows.
DANGEROUS = frozenset({"dies", "aborts", "exits", "hangs", "prints-rubbish", "poisons-device"})
HEALTHY = ("accel", "no-peer", "host-only", "data-less")
#: Device kind -> the faults that are switched on.
KINDS: dict[str, frozenset[str]] = {
    **{kind: frozenset() for kind in HEALTHY},
    **{f"{effect}-{family}": frozenset({f"{effect}-{family}"}) for effect, families in EFFECTS.items() for family in families},
    **{fault: frozenset({fault}) for fault in SINGLE},
    **{"-and-".join(faults): frozenset(faults) for faults in COMBINED},
    "refuses-everything": frozenset(f"refuses-{family}" for family in FAMILIES),
}


@cache
def struck(kind: str) -> frozenset[str]:
    """Return the operations and scopes that may behave otherwise than a healthy framework's."""
    words = {w for fault in KINDS[kind] for w in (SINGLE[fault][0].split() if fault in SINGLE else fault.split("-")[-1:])}
    return frozenset(name for word in words for name in FAMILIES.get(word, (word,)))
