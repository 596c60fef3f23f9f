"""What can be installed to be asked; apart from what installs it, so that help needs little."""

from __future__ import annotations

from collections.abc import Mapping

#: Framework, which is also the name of its distribution -> what it wants beside itself; extras where somebody names none.
FRAMEWORKS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "torch": ("", ("numpy",)), "jax": ("[cpu]", ()), "numpy": ("", ()), "array-api-strict": ("", ()),
}  # fmt: skip
#: Which releases of a range are taken.
EVERY = ("minor", "patch")
