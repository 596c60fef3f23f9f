"""What the text of an error says: which devices it names, and whether it names the operation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cases.reading import Reading


def devices_named(reading: Reading, text: str, target: Mapping[str, Any]) -> str:
    """Say how many of the question's devices the text of an error names: all, some, none."""
    fallback = "accelerator" if "accelerator" in target["roles"] else "host"
    used = {fallback if role == "device" else role for role in reading.program.roles}
    named = [role for role in used if role in target["roles"] and _names(text, target["roles"][role])]
    return "all devices" if used and len(named) == len(used) else "some devices" if named else "no device"


def operation_named(operation: str, text: str) -> bool:
    """Say whether the text of an error names the operation that was asked."""
    return bool(re.search(rf"\b\w*{re.escape(operation.rstrip('_').split('_')[0])}\w*\b", text, re.I))


def _names(text: str, role: Mapping[str, str]) -> bool:
    name, mention = role["name"], role.get("mention")
    return bool(mention and mention in text) or re.search(rf"(?<![\w:]){re.escape(name)}(?![\w:])", text, re.I) is not None
