"""Arguments of a launch: buffers for M, N and P, numbers, structs; and the lines that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.emulator.check.readings import Reading
from tilewise.emulator.check.roles import assign_matrices, assign_sizes, is_factor, matrix_struct, member_role
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.leaves import dtype_of, dtypes_of, element_dtype
from tilewise.emulator.machine.memory import ZERO, Buffer, Cells, MatrixView, Pointer
from tilewise.emulator.machine.program import Program, Variable
from tilewise.emulator.machine.shadow import Shadow
from tilewise.emulator.parse.types import Pointer as PointerTo
from tilewise.emulator.parse.types import Scalar, Type, innermost
from tilewise.errors import LimitError, UsageError

Shape = tuple[int, int, int]
Seed = int | None


@dataclass
class Bound:
    """The arguments of a launch, and access to its memory afterwards."""

    arguments: dict[str, Any]
    symbols: dict[str, int]
    buffers: dict[str, Buffer]  # by parameter
    arrays: dict[str, np.ndarray]  # by parameter: the data, shaped
    matrices: dict[str, Variable] | None
    sizes: dict[str, int]
    shape: Shape | None
    lines: list[str] = field(default_factory=list)
    expected: np.ndarray | None = None
    dynamic: dict[str, int] = field(default_factory=dict)  # extern __shared__ arrays and their bytes
    reading: Reading | None = None  # under which P is right, if it is not row-major M · N

    def of(self, role: str) -> Buffer | None:
        return self.buffers[self.matrices[role].name] if self.matrices else None


def operands(shape: Shape, dtype: Any, cells: int, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """M and N. Without a seed, M is 1, 2, 3, … and N continues from the next multiple of ten plus one, so that no value
    is in both; with a seed, small random numbers whose products are exact."""
    m, k, n = shape
    kind = np.dtype(dtype).kind
    if seed is None:
        first = np.arange(1, m * k * cells + 1).reshape(m, k * cells)
        start = m * k * cells // 10 * 10 + 11
        second = np.arange(start, start + k * n * cells).reshape(k, n * cells)
    else:
        rng = np.random.default_rng(seed)
        first = rng.integers(1, 17, (m, k * cells)) * rng.choice([-1, 1], (m, k * cells))
        second = rng.integers(1, 17, (k, n * cells)) * rng.choice([-1, 1], (k, n * cells))
        if kind == "u":
            first, second = np.abs(first), np.abs(second)
        if kind not in "iub":
            first, second = first / 8, second / 8
    return first.astype(dtype), second.astype(dtype)


def bind(
    program: Program,
    shape: Shape | None,
    given: Mapping[str, Any],
    constants: Mapping[str, int],
    limits: Limits,
    seed: Seed,
    zeroed: bool,
    checks: bool = True,
    tile: int = 16,
) -> Bound:
    """`given` are arguments by name; `constants` leading dimensions that are macros or constants of the file;
    `zeroed`: the host clears P before the launch."""
    known = {v.name for v in program.parameters}
    for name in given:
        if name not in known:
            raise UsageError(f"{program.entry} has no parameter {name}; it has {', '.join(sorted(known)) or 'none'}")
    bound = Bound({}, dict(constants), {}, {}, None, {}, shape)
    matrices = None
    if not any(isinstance(v, np.ndarray) for v in given.values()):
        matrices = assign_matrices(program, shape is not None)
    if matrices is not None and any(v.name in given for v in matrices.values()):
        matrices = None
    if matrices is not None and shape is not None:
        bound.matrices = matrices
        _bind_product(program, bound, shape, given, limits, seed, zeroed, checks, tile)
    for variable in program.parameters:
        if variable.name not in bound.arguments:
            _bind_given(program, bound, variable, given, checks)
    return bound


def _check_room(role: str, variable: Variable, extent: tuple[int, int], limits: Limits) -> None:
    rows, cols = extent
    dtype, cells = element_of(variable)
    if rows * cols * cells * np.dtype(dtype).itemsize * 8 > limits.memory:
        raise LimitError(
            f"{role} of {rows}x{cols} is over the limit of {limits.memory:,} bytes: a smaller --shape, or "
            "--limit memory=BYTES"
        )


def _bind_product(
    program: Program, bound: Bound, shape: Shape, given: Mapping[str, Any], limits: Limits, seed: Seed,
    zeroed: bool, checks: bool, tile: int,
) -> None:  # fmt: skip
    assert bound.matrices is not None
    meanings = assign_sizes(program, bound.matrices, dict(given))
    if meanings is None:
        raise UsageError(
            f"the sizes of {program.entry} cannot be determined: give them with --arg NAME=VALUE "
            f"({', '.join(v.name for v in program.parameters)})"
        )
    m, k, n = shape
    if "all" in meanings.values() and not (m == k == n):
        raise UsageError(f"{program.entry} takes one size for all: the shape must be square, not {m}x{k}x{n}")
    extents = {"M": (m, k), "N": (k, n), "P": (m, n)}
    values = {"m": m, "k": k, "n": n, "all": n, "ldM": k, "ldN": n, "ldP": n, "one": 1, "off": 0, "tile": tile}
    first = bound.matrices["M"]
    dtype, cells = element_of(first)
    for role, variable in bound.matrices.items():  # before anything is allocated
        _check_room(role, variable, extents[role], limits)
    one, two = operands(shape, dtype, cells, seed)
    for role, data in (("M", one), ("N", two), ("P", None)):
        variable, (rows, cols) = bound.matrices[role], extents[role]
        dtype, cells = element_of(variable)
        flat = data.astype(dtype).reshape(-1) if data is not None else None
        count = rows * cols * cells
        _bind_members(bound, variable, rows, cols)
        buffer = add_memory(
            program, bound, variable, flat, count, filled=role != "P" or zeroed, view=extents[role], role=role,
            checks=checks,
        )  # fmt: skip
        bound.arrays[role] = buffer.data[:count].reshape(rows, cols * cells)
        bound.lines.append(f"{variable.name}: {role}, {rows}x{cols} {element_name(variable)}")
    for name, meaning in meanings.items():
        variable = next(v for v in program.parameters if v.name == name)
        assert isinstance(variable.type, Scalar)
        number = values[meaning]
        bound.arguments[name] = dtype_of(variable.type).type(number)
        bound.symbols[name] = number
        bound.sizes[name] = number
        role = {"all": "the size of all", "one": "batches", "off": "assumed", "tile": "tile"}.get(meaning, meaning)
        bound.lines.append(f"{name}: {role} = {number}")
    _bind_factors(program, bound, given)


def _bind_factors(program: Program, bound: Bound, given: Mapping[str, Any]) -> None:
    """alpha and beta of a GEMM."""
    for variable in program.parameters:
        if variable.name in bound.arguments or variable.name in given:
            continue
        if is_factor(variable):
            assert isinstance(variable.type, Scalar)
            factor = 0.0 if "beta" in variable.name.lower() else 1.0
            if factor == 0.0:
                output = bound.of("P")
                assert output is not None
                output.initialised = None
                output.data[:] = 0
            bound.arguments[variable.name] = dtype_of(variable.type).type(factor)
            bound.lines.append(f"{variable.name}: {factor:g}")


def element_type(variable: Variable) -> Type | None:
    """The element type of a matrix or an array; None if the parameter is neither."""
    struct = matrix_struct(variable.type)
    kinds = [f.type for f in struct.members] if struct is not None else [variable.type]
    return next((innermost(kind.to) for kind in kinds if isinstance(kind, PointerTo)), None)


def element_of(variable: Variable) -> tuple[Any, int]:
    type_ = element_type(variable)
    return element_dtype(type_) if type_ is not None else (None, 0)


def element_name(variable: Variable) -> str:
    struct = matrix_struct(variable.type)
    return str(element_type(variable)) if struct is None else f"in {struct.name}"


def add_memory(
    program: Program, bound: Bound, variable: Variable, data: np.ndarray | None, count: int, *, filled: bool = True,
    view: tuple[int, int] | None = None, role: str = "", checks: bool = True,
) -> Buffer:  # fmt: skip
    """Allocate the memory of a pointer, or of the pointer in a matrix struct: `count` cells with `data`, or without
    data zeros if `filled` (by the host), else uninitialised. `view`: rows and columns."""
    dtype, cells = element_of(variable)
    buffer = Buffer(variable.name, "global", np.zeros(1, dtype), count)
    if data is None:
        data = np.full(count, 0 if filled else buffer.poison, dtype)
    if len(data):
        buffer.data = data
    if not filled:
        buffer.initialised = np.zeros(len(buffer.data), np.bool_)
    if checks and (role == "P" or program.stores_to(variable)):
        buffer.shadow = Shadow(buffer, False)
    if role == "P" or (checks and buffer.shadow is not None):
        buffer.written = np.zeros(len(buffer.data), np.bool_)
    if view is not None:
        buffer.matrix = MatrixView(*view, max(1, view[1]), cells)
    bound.buffers[variable.name] = buffer
    bound.arguments[variable.name] = _pointing(bound, variable, Pointer(buffer, ZERO))
    return buffer


def _pointing(bound: Bound, variable: Variable, pointer: Pointer) -> Any:
    """The argument: the pointer, a matrix struct that contains it, or a pointer to that struct."""
    struct = matrix_struct(variable.type)
    if struct is None:
        return pointer
    leaves = [bound.arguments.pop(f"{variable.name}.{f.name}", pointer) for f in struct.members]
    if not isinstance(variable.type, PointerTo):
        return leaves
    cells = Cells(variable.name, len(leaves), dtypes_of(struct))
    cells.values = leaves
    return Pointer(cells, ZERO)


def _bind_members(bound: Bound, variable: Variable, rows: int, cols: int) -> None:
    """Bind the sizes in a matrix struct."""
    struct = matrix_struct(variable.type)
    if struct is None:
        return
    for f in struct.members:
        role, name = member_role(struct, f.name), f"{variable.name}.{f.name}"
        if isinstance(f.type, Scalar):
            bound.symbols[name] = {"rows": rows, "cols": cols, "pitch": cols}.get(role or "", 0)
            bound.arguments[name] = dtype_of(f.type).type(bound.symbols[name])
        elif role != "data":
            raise UsageError(f"the member {f.name} of {struct.name} cannot be bound")


def _bind_given(program: Program, bound: Bound, variable: Variable, given: Mapping[str, Any], checks: bool) -> None:
    name, type_ = variable.name, variable.type
    if name not in given:
        raise UsageError(
            f"{program.entry} needs a value for {name} ({type_}): give it with --arg {name}=… "
            "(or shape=… where the kernel multiplies matrices)"
        )
    value = given[name]
    if isinstance(type_, Scalar):
        try:
            bound.arguments[name] = np.asarray(value).astype(dtype_of(type_))[()]
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name} is {type_}: {value!r} does not fit ({error})") from None
        if not type_.floating:
            bound.symbols[name] = int(bound.arguments[name])
        bound.lines.append(f"{name}: {value}")
        return
    if isinstance(type_, PointerTo) and isinstance(value, np.ndarray):
        dtype, cells = element_dtype(type_.to)
        if dtype is None:
            raise UsageError(f"{name} is {type_}, which an array cannot be")
        data = np.ascontiguousarray(value)
        if data.dtype.kind == "c":
            data = data.view(data.real.dtype)
        if data.dtype != dtype:
            if data.dtype.itemsize == np.dtype(dtype).itemsize and data.dtype.kind in "Vf" and cells:
                data = data.view(dtype)
            else:
                raise UsageError(f"{name} is {type_}: the array must be {np.dtype(dtype)}, not {value.dtype}")
        flat = data.reshape(-1)
        add_memory(program, bound, variable, flat, len(flat), checks=checks)
        bound.arrays[name] = value
        bound.lines.append(f"{name}: {' x '.join(map(str, value.shape))} {value.dtype}")
        return
    raise UsageError(f"{name} is {type_}: {type(value).__name__} cannot be bound to it")
