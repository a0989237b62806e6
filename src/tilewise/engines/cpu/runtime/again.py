"""The call before, once more: three array objects are compared with those of a known call, and multiplied, natively.

With `out=` three arrays are to be signed, looked up, and found to be apart: more than a microsecond in Python, where it
is a few loads here. Whatever differs, even in a way that would not matter, is left to the usual way.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.engines.cpu.kernels.shared.ir import Function
from tilewise.engines.cpu.runtime.address import data_field

Array = np.ndarray[Any, np.dtype[Any]]

# bytes from an array's first field, by NumPy's stable C interface
DIMENSIONS, STRIDES, BASE, DTYPE, COUNT, FLAGS = 16, 24, 32, 40, 8, 48
OWNS, ALIGNED, WRITEABLE = 0x1 << 2, 0x100, 0x400
ENTRY, JOB, SWAPPED, KIND, OPERANDS = 0, 1, 2, 3, 4  # words of a known call; then five for each of M, N and P
EACH = 5  # dtype, rows, columns, and their strides


@lru_cache(maxsize=1)
def holds() -> bool:
    """Whether arrays are laid out as this expects: tried on real ones."""
    field = data_field()
    if not field:
        return False
    whole = np.empty((3, 7), np.float32)
    return all(_read(x) == _expected(x) for x in (whole, whole[:, ::2], whole.T))


def _read(x: Array) -> tuple[Any, ...]:
    at = id(x) + data_field()

    def word(place: int) -> int:
        return ctypes.c_int64.from_address(place).value

    def half(offset: int) -> int:
        return ctypes.c_int32.from_address(at + offset).value

    tables = [word(word(at + table) + 8 * i) for table in (DIMENSIONS, STRIDES) for i in (0, 1)]
    kept = half(FLAGS) & (OWNS | ALIGNED | WRITEABLE)
    return (word(at - 8), half(COUNT), *tables, word(at + BASE), word(at + DTYPE), kept)


def _expected(x: Array) -> tuple[Any, ...]:
    base = 0 if x.base is None else id(x.base)
    kept = OWNS * x.flags.owndata | ALIGNED * x.flags.aligned | WRITEABLE * x.flags.writeable
    return (id(type(x)), x.ndim, *x.shape, *x.strides, base, id(x.dtype), kept)


def known_call(entry: int, job: int, swapped: bool, operands: tuple[Array, Array, Array]) -> Any:
    """The words of a call, to compare others with; None where they are no plain matrices."""
    plain = all(type(x) is np.ndarray and x.ndim == 2 and x.dtype.isbuiltin == 1 for x in operands)
    if not plain or not holds():
        return None
    words = [entry, job, int(swapped), id(np.ndarray)]
    for x in operands:
        words += [id(x.dtype), *x.shape, *x.strides]  # a builtin dtype never goes
    return (ctypes.c_int64 * len(words))(*words)


def again_function(data_field: int) -> Function:
    """1 after the product of M and N is in P; 0 where they are not as in the known call, and nothing was done."""
    f = Function("again", [("ptr", "known"), ("ptr", "M"), ("ptr", "N"), ("ptr", "P")], public=True, result="i64")
    no = f.label("no")

    def word(number: int) -> str:
        return f.op(f"load i64, ptr {f.at('i64', '%known', number)}")

    def unless(same: str) -> None:
        yes = f.label("yes")
        f.do(f"br i1 {same}, label %{yes}, label %{no}")
        f.start(yes)

    for other in ("%M", "%N"):
        unless(f.op(f"icmp ne ptr %P, {other}"))
    for number, name in enumerate(("%M", "%N", "%P")):
        unless(f.test("eq", f.op(f"load i64, ptr {f.at('i8', name, data_field - 8)}"), word(KIND)))
        first = f.at("i8", name, data_field)
        count = f.op(f"load i32, ptr {f.at('i8', first, COUNT)}")
        unless(f.op(f"icmp eq i32 {count}, 2"))
        wanted = OWNS | ALIGNED | (WRITEABLE if name == "%P" else 0)
        flags = f.op(f"load i32, ptr {f.at('i8', first, FLAGS)}")
        unless(f.op(f"icmp eq i32 {f.op(f'and i32 {flags}, {wanted}')}, {wanted}"))
        unless(f.test("eq", f.op(f"load i64, ptr {f.at('i8', first, BASE)}"), 0))
        found = [f.op(f"load i64, ptr {f.at('i8', first, DTYPE)}")]
        for table in (DIMENSIONS, STRIDES):
            at = f.op(f"load ptr, ptr {f.at('i8', first, table)}")
            found += [f.op(f"load i64, ptr {f.at('i64', at, i)}") for i in (0, 1)]
        for offset, value in enumerate(found):
            unless(f.test("eq", value, word(OPERANDS + EACH * number + offset)))
    entry, job = (f.op(f"inttoptr i64 {word(number)} to ptr") for number in (ENTRY, JOB))
    turned = f.test("ne", word(SWAPPED), 0)
    M, N = (f.op(f"select i1 {turned}, ptr {x}, ptr {y}") for x, y in (("%N", "%M"), ("%M", "%N")))
    f.do(f"call void {entry}(ptr {job}, ptr {M}, ptr {N}, ptr %P)")
    f.do("ret i64 1")
    f.start(no)
    f.do("ret i64 0")
    return f
