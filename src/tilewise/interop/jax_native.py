"""Products inside of jit that XLA calls itself, on the CPU: no callback, no copy, for one thread no Python either.

What runs is made while a program is traced, for its shapes, and stays as long as the process does. Its address is part
of the program, beside a number that no other process has: a program that is kept on disk never finds another one's.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tilewise.algebra.semiring import Semiring
from tilewise.backends.cpu.ready import Ready
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import current_pool, native, native_addresses
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.options import Options
from tilewise.dispatch.bind import understand
from tilewise.dispatch.execute import machine_of
from tilewise.errors import TilewiseError
from tilewise.interop.jax_handler_text import RECORD, handler_text
from tilewise.planning.choose import make_plan

TARGET = "tilewise_product"
PROCESS = int.from_bytes(os.urandom(7), "little")
MESSAGE = 1024  # bytes of a sentence that says what went wrong
Array = np.ndarray[Any, np.dtype[Any]]
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)
_records: dict[int, Record] = {}  # by address: programs hold no references


class Record:
    """A product of arrays of these shapes, as the handler reads it."""

    def __init__(self, ready: Ready, arrays: tuple[Array, ...]) -> None:
        """`arrays`: M, N, P, and the winning k where they are wanted: how they lie is what counts."""
        self.ready, self.arg, self.lying = ready, len(arrays) == 4, [(x.shape, x.dtype) for x in arrays]
        self.scratch = ready.space + 64 if ready.space else 0
        self.words = (ctypes.c_int64 * len(RECORD))()
        self.address = ctypes.addressof(self.words)
        self.said = ctypes.create_string_buffer(MESSAGE)
        alone = ready.workers == 1 and (ready.no_edge is None or ready.look is not None)
        look = (0, 0) if ready.look is None else (ready.look.function, ready.look.record)
        values = {
            "launch": native_addresses()["launch"], "template": ready.template_address, "swapped": ready.swapped,
            "arg": self.arg, "scratch": bool(ready.space), "alone": alone, "python": _by_python()[1],
            "look": look[0], "weights": look[1], "said": ctypes.addressof(self.said),
        }  # fmt: skip
        self.words[:] = [int(values[name]) for name in RECORD]
        _records[self.address] = self

    def run(self, places: tuple[int, ...]) -> None:
        """By threads, or with missing edges; `places`: left, right, P, the winning k and scratch memory, 0 where there
        is none."""
        if self.ready.no_edge is not None:
            first, second, *others = places[:4]
            at = (second, first, *others) if self.ready.swapped else (first, second, *others)
            self.ready.run(*(_array(*how, where) for how, where in zip(self.lying, at, strict=False)))
            return
        launch, pool = native()["launch"], current_pool()
        launch(pool.address if pool is not None else 0, self.ready.template_address, *places)


def _array(shape: tuple[int, ...], dtype: np.dtype[Any], address: int) -> Array:
    """XLA's memory, rows side by side, as an array."""
    room = (ctypes.c_uint8 * (math.prod(shape) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(room), dtype).reshape(shape)


@lru_cache(maxsize=1)
def _by_python() -> tuple[Any, int]:
    """The function that the handler calls for what it cannot launch itself, and its address."""

    def run(record: int, *places: int | None) -> int:
        try:
            _records[record].run(tuple(x or 0 for x in places))
        except Exception as error:  # what is raised here ends nowhere: XLA is told what it says
            _records[record].said.value = str(error).encode()[: MESSAGE - 1]
            return 1
        return 0

    made = _RUN(run)
    return made, int(ctypes.cast(made, ctypes.c_void_p).value or 0)


@lru_cache(maxsize=1)
def registered() -> bool:
    """Whether XLA knows the handler; not where its interface is another one than this was written for."""
    try:
        header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text(encoding="utf-8")
        found = {name: re.search(rf"#define XLA_FFI_API_{name} (\d+)", header) for name in ("MAJOR", "MINOR")}
        if found["MAJOR"] is None or found["MINOR"] is None or found["MAJOR"][1] != "0":
            return False
        address = compile.load(handler_text(int(found["MINOR"][1])), host_target(), ("handle",))["handle"]
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(address), platform="cpu", api_version=1)
    except (ImportError, AttributeError, OSError, RuntimeError, TilewiseError):
        return False
    return True


@lru_cache(maxsize=4096)
def record_of(
    left: tuple[Any, ...], right: tuple[Any, ...], ring: Semiring, precision: str, return_arg: bool
) -> Record | None:
    """What multiplies arrays in rows, each given by (shape, dtype); None where that takes more than a kernel."""
    M, N = (np.empty(shape, dtype) for shape, dtype in (left, right))  # never touched: how they lie is what counts
    call = understand(M, N, Options(semiring=ring, precision=precision, return_arg=return_arg))
    if not (M.size and N.size) or not registered():
        return None
    made = make_plan(call.problem, machine_of("cpu"), None, None)
    if made.engine == "reference" or call.M.converted or call.N.converted:
        return None
    P = np.empty((*call.problem.stack, call.problem.m, call.problem.n), call.problem.result.numpy)
    arg = np.empty(P.shape, np.int64) if return_arg else None
    return Record(Ready(made, M, N, P, arg, None), (M, N, P) if arg is None else (M, N, P, arg))


def product(record: Record, M: Any, N: Any, shape: tuple[int, ...], result: Any) -> Any:
    """P, and the winning k where they are wanted, as XLA will have them."""
    made = [jax.ShapeDtypeStruct(shape, result)]
    if record.arg:
        made.append(jax.ShapeDtypeStruct((*shape, 2), np.int32))  # halves of 64-bit numbers, the lower first
    if record.scratch:
        made.append(jax.ShapeDtypeStruct((record.scratch,), np.uint8))
    call = jax.ffi.ffi_call(TARGET, made)
    found = call(M, N, process=np.int64(PROCESS), record=np.int64(record.address))
    return (found[0], found[1][..., 0]) if record.arg else found[0]
