"""Workers that are programs of their own, in Rust: where they are, and the one command that builds them (controller side).

Such a worker is started as it is: nothing is handed over to it (see PROTOCOL.md).
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

_CRATES = Path(__file__).parent / "rust"
#: Framework -> its crate in `adapters/rust/`, whose program is `CRATE-worker`.
CRATES = {"candle": "candle", "burn": "burn"}


def program(framework: str) -> Path:
    """Return where a worker's program is put by the command that builds it."""
    crate = CRATES[framework]
    built = os.environ.get("CARGO_TARGET_DIR")
    return (Path(built).absolute() if built else _CRATES / crate / "target") / "release" / f"{crate}-worker"


def missing(framework: str) -> str | None:
    """Return why a worker can't be started, and the command that builds it; None where it is there."""
    if program(framework).is_file():
        return None
    manifest = _CRATES / CRATES[framework] / "Cargo.toml"
    with_cwd = os.path.relpath(manifest)
    build = f"cargo build --release --manifest-path {shlex.quote(min(with_cwd, str(manifest), key=len))}"
    return f"not built: {build}" if shutil.which("cargo") else f"not built, and cargo is not here: install Rust, then {build}"
