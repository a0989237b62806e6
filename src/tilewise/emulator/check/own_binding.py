"""Arguments of the program's own launch: its sizes and allocations, with the layout that the kernel's strides imply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

import numpy as np

from tilewise.emulator.check.binding import Bound, Shape, add_memory, element_name, element_of, operands
from tilewise.emulator.check.roles import assign_matrices, matrix_struct, strides_of
from tilewise.emulator.host.launch_site import LaunchSite
from tilewise.emulator.machine.leaves import dtype_of
from tilewise.emulator.machine.program import Program, Variable
from tilewise.emulator.parse.types import BY_NAME, INT, LONG, Record, Scalar, Type
from tilewise.emulator.parse.types import Pointer as PointerTo

UNKNOWN_SIZE = 5  # for each of several sizes that are not known
FREE_ELEMENTS = 1 << 20
MAX_ELEMENTS = 1 << 22  # of one array; kernels with larger ones are run at other shapes


@dataclass
class UnknownLaunch(Exception):
    """The program's own launch cannot be reproduced; why."""

    reason: str


@dataclass
class OwnLaunch:
    """A launch as `main` made it, or as far as it was evaluated. An argument is a number, a `Memory`, a list of an
    object's members, or None."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int | None
    line: int
    arguments: list[Any]
    site: LaunchSite | None = None
    template: dict[str, Any] = field(default_factory=dict)  # numbers with their types, and types


@dataclass
class Memory:
    """The memory of a pointer argument: its bytes, and whether values had been stored there."""

    bytes: int
    filled: bool


def own_launch(records: list[dict[str, Any]], kernel: str, sites: list[LaunchSite]) -> OwnLaunch | None:
    """The kernel's first launch in a program's report, which comes from an untrusted process."""
    for record in records:
        if str(record.get("kernel")).rpartition("::")[2] != kernel or record.get("arguments") is None:
            continue
        try:
            grid, block = (tuple(int(size) for size in record[key]) for key in ("grid", "block"))
            arguments = [_argument(a) for a in record["arguments"]]
            line, shared = int(record["line"]), int(record["shared"])
            template = {str(n): _template_argument(given) for n, given in record.get("template", {}).items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        if len(grid) == len(block) == 3:
            here = next((s for s in sites if s.launch.line == line), sites[0] if sites else None)
            return OwnLaunch(grid, block, shared, line, arguments, here, template)
    return None


def _template_argument(given: Any) -> Any:
    """A recorded template argument; None for a type that is made of others than scalars."""
    if isinstance(given, int):
        return int(given), INT if -(1 << 31) <= given < 1 << 31 else LONG
    name = str(given)
    type_: Type | None = BY_NAME.get(name.removeprefix("const ").rstrip("*"))
    for star in range(name.count("*")):
        type_ = None if type_ is None else PointerTo(type_, not star and name.startswith("const "))
    return type_


def _argument(given: Any) -> Any:
    if isinstance(given, dict):
        return Memory(int(given["bytes"]), bool(given["filled"]))
    return [_argument(part) for part in given] if isinstance(given, list) else given


def number_of(type_: Scalar, argument: Any) -> Any:
    """A recorded number in the parameter's type; None if it is no number."""
    if not isinstance(argument, (int, float)):
        return None
    try:
        return dtype_of(type_).type(argument)
    except (OverflowError, ValueError):
        return None


def bind_own(
    program: Program, own: OwnLaunch, integers: Mapping[str, int], seed: int | None, multiplies: bool
) -> Bound:
    if len(own.arguments) != len(program.parameters):
        raise UnknownLaunch(f"the launch at line {own.line} passes {len(own.arguments)} arguments")
    bound = Bound({}, {}, {}, {}, None, {}, None)
    memories: dict[str, Memory] = {}
    for variable, argument in zip(program.parameters, own.arguments, strict=True):
        struct = matrix_struct(variable.type) if isinstance(variable.type, Record) else None
        if isinstance(variable.type, Scalar):
            _bind_number(bound, variable.name, variable.type, argument, own.line)
        elif struct is not None and isinstance(argument, list) and len(argument) == len(struct.members):
            for member, part in zip(struct.members, argument, strict=True):
                if isinstance(member.type, Scalar):
                    _bind_number(bound, f"{variable.name}.{member.name}", member.type, part, own.line)
                elif isinstance(part, Memory):
                    memories[variable.name] = part
        elif isinstance(argument, Memory) and matrix_struct(variable.type) is None:
            memories[variable.name] = argument
        if not isinstance(variable.type, Scalar) and (variable.name not in memories or not element_of(variable)[0]):
            raise UnknownLaunch(
                f"what {variable.name} is at line {own.line} is more than a number or an array of numbers"
            )
    lengths = {v.name: memories[v.name].bytes // np.dtype(element_of(v)[0]).itemsize
               for v in program.parameters if v.name in memories}  # fmt: skip
    for name, length in lengths.items():
        if length > MAX_ELEMENTS:
            raise UnknownLaunch(f"{name} has {length} elements, more than are looked at here")
    known = {**integers, **bound.symbols}
    bound.symbols = dict(known)
    matrices = assign_matrices(program) if multiplies else None
    views: dict[str, tuple[int, int]] = {}
    if matrices is not None:
        views = _layout(program, matrices, lengths, known, bound)
    _make_buffers(program, bound, lengths, views, memories, seed)
    return bound


def _bind_number(bound: Bound, name: str, type_: Scalar, argument: Any, line: int) -> None:
    number = number_of(type_, argument)
    if number is None:
        raise UnknownLaunch(f"what {name} is at line {line} is more than a number or an array of numbers")
    bound.arguments[name] = number
    if not type_.floating:
        bound.symbols[name] = bound.sizes[name] = int(number)
    bound.lines.append(f"{name} = {number:g}" if type_.floating else f"{name} = {int(number)}")


def bind_free(program: Program, own: OwnLaunch | None, count: int, seed: int | None) -> Bound:
    """Arguments for unknown sizes: sizes with an edge, and large arrays."""
    bound = Bound({}, {}, {}, {}, None, {}, None)
    rng = np.random.default_rng(seed or 0)
    arguments = own.arguments if own is not None and len(own.arguments) == len(program.parameters) else []
    whole = [v for v in program.parameters if isinstance(v.type, Scalar) and not v.type.floating]
    if len(whole) > 1:
        count = min(count, UNKNOWN_SIZE)
    for i, variable in enumerate(program.parameters):
        type_ = variable.type
        if isinstance(type_, Scalar):
            number = number_of(type_, arguments[i]) if arguments else None
            number = dtype_of(type_).type(1 if type_.floating else count) if number is None else number
            bound.arguments[variable.name] = number
            if not type_.floating:
                bound.symbols[variable.name] = bound.sizes[variable.name] = int(number)
            continue
        dtype = element_of(variable)[0] if isinstance(type_, PointerTo) else None
        if dtype is None:
            raise UnknownLaunch(f"{variable.name} is {type_}")
        data = rng.integers(0, 8, FREE_ELEMENTS).astype(dtype)
        bound.arrays[variable.name] = add_memory(program, bound, variable, data, len(data), checks=False).data
    return bound


def _layout(
    program: Program, matrices: dict[str, Variable], lengths: dict[str, int], known: Mapping[str, int], bound: Bound
) -> dict[str, tuple[int, int]]:
    """Rows and columns of M, N and P, from their lengths and the strides in the kernel."""
    used = strides_of(program, matrices)
    lead: dict[str, int] = {}
    for role, counts in used.items():
        values = {s: known.get(s) if isinstance(s, str) else s for s in counts}
        strides = [(count, values[s]) for s, count in counts.items() if values[s]]
        if strides:
            lead[role] = int(max(strides, key=lambda pair: pair[0])[1] or 0)
    sizes = {role: lengths[v.name] for role, v in matrices.items()}
    shape = _shape(sizes, lead)
    if shape is None:
        return {}
    m, k, n = shape
    bound.matrices, bound.shape = matrices, shape
    views = {}
    for role, extent in {"M": (m, k), "N": (k, n), "P": (m, n)}.items():
        stride = lead.get(role, extent[1])
        if stride and sizes[role] % stride == 0:
            views[matrices[role].name] = (sizes[role] // stride, stride)
    return views


def _shape(sizes: dict[str, int], lead: dict[str, int]) -> Shape | None:
    """m, k, n from the lengths m·k, k·n and m·n, by k² = |M|·|N| / |P|; None if the strides contradict."""
    one, two, out = sizes["M"], sizes["N"], sizes["P"]
    if not one * two * out:
        return None
    square, rest = divmod(one * two, out)
    k = isqrt(square)
    if rest or k * k != square or one % k or two % k:
        return None
    m, n = one // k, two // k
    if m * n != out:
        return None
    if any(value not in (m, k, n) for value in lead.values()):
        return None
    return m, k, n


def _make_buffers(
    program: Program, bound: Bound, lengths: dict[str, int], views: dict[str, tuple[int, int]], given: dict[str, Any],
    seed: int | None,
) -> None:  # fmt: skip
    roles = {v.name: role for role, v in (bound.matrices or {}).items()}
    one = two = None
    if bound.matrices is not None and bound.shape is not None:
        one, two = operands(bound.shape, element_of(bound.matrices["M"])[0], 1, seed)
    rng = np.random.default_rng(seed or 0)
    for variable in program.parameters:
        if variable.name not in lengths:
            continue
        (dtype, cells), name = element_of(variable), variable.name
        length, role, filled = lengths[name], roles.get(name, ""), given[name].filled
        data = {"M": one, "N": two}.get(role)
        if data is not None and data.size == length:
            data = data.astype(dtype).reshape(-1)
        elif role == "P" or (program.stores_to(variable) and not filled):
            data = None
        else:
            data, filled = rng.integers(0, 8, max(1, length)).astype(dtype), True
        view = views.get(name) if cells == 1 else None
        buffer = add_memory(program, bound, variable, data, length, filled=filled, view=view, role=role)
        shown = f"{views[name][0]}x{views[name][1]}" if name in views else str(length)
        bound.lines.append(f"{name}: {role + ', ' if role else ''}{shown} {element_name(variable)}")
        bound.arrays[role or name] = buffer.data
        if role and bound.shape is not None:
            m, k, n = bound.shape
            bound.arrays[role] = buffer.data[:length].reshape({"M": (m, k), "N": (k, n), "P": (m, n)}[role])
