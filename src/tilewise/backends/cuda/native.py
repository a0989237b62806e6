"""Filling a recipe's holes and launching it in one native call, written as LLVM text.

An image holds everything a recipe passes to the driver: launch configurations, parameter tables, parameters. A call
copies it to the stack (threads share an image), writes addresses into the copy, gives tensor maps their address and
launches. A header of 64-bit fields holds the addresses and counts of all tables.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache

from tilewise.core.recipe import BASES
from tilewise.system import machine_code
from tilewise.system.builtin_call import builtin, compiled_functions
from tilewise.system.llvm_lock import LLVM
from tilewise.system.llvm_text import IRFunction, module

STREAM, SELF = len(BASES), len(BASES) + 1  # values of holes besides the bases
HEADER = (
    "size", "blob", "holes", "hole_table", "maps", "map_table", "steps", "step_table",
    "launch", "replace", "memset", "low_m", "high_m", "low_n", "high_n", "low_p", "high_p",
)  # fmt: skip
HOLE_FIELDS, STEP_FIELDS = 3, 4  # (position, base, offset) · (kind, function, configuration, parameters)
LAUNCH, ZERO = 0, 1  # kinds of steps
OVERLAPS = -1  # result where P overlaps M or N: nothing was launched
DRIVER = {"launch": "cuLaunchKernelEx", "replace": "cuTensorMapReplaceAddress", "memset": "cuMemsetD32Async"}


@lru_cache(maxsize=1)
def driver_library() -> ctypes.CDLL:
    """The driver's shared library."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@lru_cache(maxsize=1)
def encoder() -> Callable[..., int]:
    """cuTensorMapEncodeTiled by ctypes: 3 µs a tensor map, against 20 µs by the bindings."""
    function = driver_library().cuTensorMapEncodeTiled
    number, pointer = ctypes.c_uint, ctypes.c_void_p
    sizes = [pointer] * 4
    function.argtypes = (pointer, number, number, ctypes.c_uint64, *sizes, number, number, number, number)
    function.restype = ctypes.c_int
    return function


@lru_cache(maxsize=1)
def driver_functions() -> dict[str, int]:
    """Addresses of the driver functions that images call; 0 where the driver is too old."""
    library, found = driver_library(), {}
    for key, name in DRIVER.items():
        try:
            found[key] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            found[key] = 0
    return found


def native_text() -> str:
    """`fill_and_launch(header, bases)`: 0, or the driver's error code with the step's number in the upper 32 bits; and
    `fill_three_and_launch`, whose arguments are the bases of most calls."""
    return module([_fill_and_launch(), _fill_three_and_launch()])


def _fill_and_launch() -> IRFunction:
    f = IRFunction("fill_and_launch", "ptr h, ptr given", public=True, result="i64")
    header = {name: f.load("i64", f.at("i64", "%h", number)) for number, name in enumerate(HEADER)}
    bases = f.op(f"alloca [{SELF + 1} x i64], align 16")
    _copy(f, bases, "%given", 8 * SELF)
    _return_if_overlapping(f, header, bases)
    copy = f.op(f"alloca i8, i64 {header['size']}, align 64")
    _copy(f, copy, f.op(f"inttoptr i64 {header['blob']} to ptr"), header["size"])
    f.store("i64", f.op(f"ptrtoint ptr {copy} to i64"), f.at("i64", bases, SELF))

    def entry(table: str, index: str, fields: int) -> list[str]:
        """The fields of one entry of a table."""
        first = f.at("i64", f.op(f"inttoptr i64 {header[table]} to ptr"), f.mul(index, fields))
        return [f.load("i64", f.at("i64", first, number)) for number in range(fields)]

    def hole(table: str, index: str) -> tuple[str, str]:
        """A hole's address in the copy, and its value: base plus offset."""
        position, base, offset = entry(table, index, HOLE_FIELDS)
        return f.at("i8", copy, position), f.add(f.load("i64", f.at("i64", bases, base)), offset)

    def call(name: str, arguments: str) -> str:
        return f.op(f"call i32 {f.op(f'inttoptr i64 {header[name]} to ptr')}({arguments})")

    with f.loop(0, header["holes"]) as i:
        to, address = hole("hole_table", i.index)
        f.store("i64", address, to)
    with f.loop(0, header["maps"]) as i:
        to, address = hole("map_table", i.index)
        _return_if_failed(f, call("replace", f"ptr {to}, i64 {address}"), "0")
    with f.loop(0, header["steps"]) as i:
        kind, function, config, params = entry("step_table", i.index, STEP_FIELDS)
        zero, launch, done = f.label("zero"), f.label("launch"), f.label("done")
        place = f.at("i8", copy, config)
        f.branch(f.test("eq", kind, ZERO), zero, launch, then=launch)
        kernel = f.op(f"inttoptr i64 {function} to ptr")
        launched = call("launch", f"ptr {place}, ptr {kernel}, ptr {f.at('i8', copy, params)}, ptr null")
        f.goto(done)
        f.start(zero)
        target, stream = f.load("i64", place), f.load("i64", f.at("i64", bases, STREAM))
        cleared = call("memset", f"i64 {target}, i32 0, i64 1, i64 {stream}")
        f.goto(done)
        f.start(done)
        _return_if_failed(f, f.op(f"phi i32 [{launched}, %{launch}], [{cleared}, %{zero}]"), i.index)
    f.do("ret i64 0")
    return f


def _copy(f: IRFunction, to: str, source: str, size: str | int) -> None:
    f.call("void", "llvm.memcpy.p0.p0.i64", [("ptr", to), ("ptr", source), ("i64", size), ("i1", "false")])


def _return_if_overlapping(f: IRFunction, header: dict[str, str], bases: str) -> None:
    """Return OVERLAPS where P overlaps M or N."""
    spans = {}
    for side in "pmn":
        base = f.load("i64", f.at("i64", bases, BASES.index(side.upper())))
        spans[side] = f.add(base, header[f"low_{side}"]), f.add(base, header[f"high_{side}"])
    low, high = spans["p"]
    shares = [f.both(f.test("slt", low, spans[s][1]), f.test("slt", spans[s][0], high)) for s in "mn"]
    with f.when(f.op(f"or i1 {shares[0]}, {shares[1]}"), returns=True):
        f.do(f"ret i64 {OVERLAPS}")


def _return_if_failed(f: IRFunction, code: str, step: str) -> None:
    with f.when(f.op(f"icmp ne i32 {code}, 0"), returns=True):
        number = f.op(f"shl i64 {step}, 32")
        wide = f.op(f"zext i32 {code} to i64")
        f.do(f"ret i64 {f.op(f'or i64 {wide}, {number}')}")


def _fill_three_and_launch() -> IRFunction:
    given = "i64 M, i64 N, i64 P, i64 scratch, i64 stream"
    f = IRFunction("fill_three_and_launch", f"ptr h, {given}", public=True, result="i64")
    bases = f.op(f"alloca [{SELF} x i64], align 16")
    f.call("void", "llvm.memset.p0.i64", [("ptr", bases), ("i8", 0), ("i64", 8 * SELF), ("i1", "false")])
    for name in ("M", "N", "P", "scratch"):
        f.store("i64", f"%{name}", f.at("i64", bases, BASES.index(name)))
    f.store("i64", "%stream", f.at("i64", bases, STREAM))
    f.do(f"ret i64 {f.op(f'call i64 @fill_and_launch(ptr %h, ptr {bases})')}")
    return f


@lru_cache(maxsize=1)
def addresses() -> tuple[int, int]:
    """Addresses of `fill_and_launch` and `fill_three_and_launch`, for machine code that calls them."""
    every, three = compiled_functions(native_text(), ("fill_and_launch", "fill_three_and_launch"))
    return every, three


@lru_cache(maxsize=1)
def _builtins() -> tuple[Callable[..., int], Callable[..., int]]:
    every, three = addresses()
    made = builtin(every, "ww"), builtin(three, "w" * 6)
    machine_code.compile_in_background()  # LLVM is loaded now: compile the cost formulas, too
    return made


def launchers() -> tuple[Callable[..., int], Callable[..., int]]:
    """(with all bases, with M, N, P and scratch only); compiled once, under the LLVM lock."""
    with LLVM:
        return _builtins()
