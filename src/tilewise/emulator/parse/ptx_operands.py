"""Types and operands of PTX instructions."""

from __future__ import annotations

import re
from typing import Any

from tilewise.errors import EngineError

TYPES = {
    "u8": "unsigned char", "s8": "signed char", "b8": "unsigned char", "u16": "unsigned short", "s16": "short",
    "b16": "unsigned short", "u32": "unsigned int", "s32": "int", "b32": "unsigned int", "u64": "unsigned long",
    "s64": "long", "b64": "unsigned long", "f32": "float", "f64": "double", "pred": "bool",
}  # fmt: skip


class UnknownInstructionError(EngineError):
    """PTX that is not translated; its text."""


def address(unit: Any, opcode: list[str], operand: str, type_: str) -> str:
    inside = re.fullmatch(r"\[\s*(%?[\w.]+)\s*(?:\+\s*(-?\w+))?\s*\]", operand)
    if inside is None:
        raise UnknownInstructionError(operand)
    base = unit.name(inside[1])
    if "shared" in opcode or "shared::cta" in opcode:
        base = f"__cvta_shared_to_generic((unsigned long)({base}))"
    return f"({TYPES[type_]}*)((char*)({base}) + {inside[2] or 0})"


def elements(operand: str) -> list[str]:
    return [x.strip() for x in operand.strip("{} ").split(",")]
