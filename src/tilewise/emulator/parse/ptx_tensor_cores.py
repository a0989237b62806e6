"""PTX instructions of a whole warp, mma, ldmatrix and stmatrix, as calls of `ptx.h`."""

from __future__ import annotations

import re
from typing import Any

from tilewise.emulator.parse.ptx_operands import UnknownInstructionError, address, elements

SHAPES = {  # m, n, k of D = A B + C, by the elements of A and of B
    "f16": ("m16n8k8", "m16n8k16"), "bf16": ("m16n8k8", "m16n8k16"), "tf32": ("m16n8k4", "m16n8k8"),
    "s8": ("m8n8k16", "m16n8k16", "m16n8k32"), "e4m3": ("m16n8k16", "m16n8k32"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
}  # fmt: skip
LIKE = {"u8": "s8", "e5m2": "e4m3"}
ELEMENTS = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "e4m3": 4, "f64": 1}  # of a register
NAMES = {"f16": "half", "f64": "double"}


def multiply(unit: Any, opcode: list[str], o: list[str]) -> str:
    shape = opcode[3]
    of_d, of_a, of_b, of_c = opcode[-4:]
    kind = LIKE.get(of_a, of_a)
    if shape not in SHAPES[kind] or LIKE.get(of_b, of_b) != kind or opcode[4:6] != ["row", "col"]:
        raise UnknownInstructionError(".".join(opcode))
    m, k = (int(n) for n in re.findall(r"[mk](\d+)", shape))
    registers_b = k // (4 * ELEMENTS[kind])
    registers_a = m // 8 * registers_b
    d, a, b, c = (elements(operand) for operand in o[:4])
    cells = m // 4
    held = [cells // 2 if of == "f16" else cells for of in (of_d, of_c)]
    if [len(d), len(a), len(b), len(c)] != [held[0], registers_a, registers_b, held[1]]:
        raise UnknownInstructionError(".".join(opcode))
    type_, register = ("f64", "double") if kind == "f64" else ("b32", "unsigned int")
    sum_, cell = {"s8": ("long", "long"), "f64": ("double", "double")}.get(kind, ("double", "float"))
    statements = [_array(unit, register, "__a", a, type_), _array(unit, register, "__b", b, type_)]
    if of_c == "f16":
        statements += [_array(unit, "unsigned int", "__h", c, "b32"), f"float __c[{cells}];"]
        statements.append(f"__mma_halves(__c, __h, {len(c)});")
    else:
        statements.append(_array(unit, cell, "__c", c, of_c))
    names = (f"__mma_{NAMES.get(of, of)}" for of in (of_a, of_b))
    statements.append(f"__mma<{', '.join(names)}, {sum_}, {registers_a}, {registers_b}>(__c, __a, __b);")
    for i, to in enumerate(d):
        value = f"__mma_packed(__c + {2 * i})" if of_d == "f16" else f"__c[{i}]"
        if "satfinite" in opcode:
            value = f"__mma_saturated({value})"
        statements.append(
            unit.write(to, "b32" if of_d == "f16" else of_d, value if of_d != "s32" else f"(int)({value})")
        )
    return f"{{ {' '.join(statements)} }}"


def load_matrices(unit: Any, opcode: list[str], o: list[str]) -> str:
    to = elements(o[0])
    arguments = _matrices(opcode, len(to))
    at = address(unit, opcode, o[1], "u16")
    given = " ".join(unit.write(x, "b32", f"__m[{i}]") for i, x in enumerate(to))
    return f"{{ unsigned int __m[{len(to)}]; __ldmatrix<{arguments}>(__m, {at}); {given} }}"


def store_matrices(unit: Any, opcode: list[str], o: list[str]) -> str:
    given = elements(o[1])
    arguments = _matrices(opcode, len(given))
    held = _array(unit, "unsigned int", "__m", given, "b32")
    return f"{{ {held} __stmatrix<{arguments}>(__m, {address(unit, opcode, o[0], 'u16')}); }}"


def _matrices(opcode: list[str], registers: int) -> str:
    """Template arguments: the number of matrices, and whether they are transposed."""
    if "m8n8" not in opcode or "b16" not in opcode or f"x{registers}" not in opcode:
        raise UnknownInstructionError(".".join(opcode))
    return f"{registers}, {int('trans' in opcode)}"


def _array(unit: Any, type_: str, name: str, operands: list[str], read: str) -> str:
    return f"{type_} {name}[{len(operands)}] = {{{', '.join(unit.read(x, read) for x in operands)}}};"
