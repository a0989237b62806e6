"""Products inside of jit that XLA calls itself, on the CPU: no callback, no copy, for one thread no Python either.

What runs is made while a program is traced, for its shapes, and stays as long as the process does. Its address is part
of the program, beside a number that no other process has: a program that is kept on disk never finds another one's.
"""

from __future__ import annotations

import ctypes
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tilewise.algebra.semiring import Semiring
from tilewise.engines.cpu.ready import Ready
from tilewise.engines.cpu.runtime import compile
from tilewise.engines.cpu.runtime.pool import current_pool, native, native_addresses
from tilewise.engines.cpu.runtime.target import host_target
from tilewise.errors import TilewiseError
from tilewise.execution import machine_of
from tilewise.interop.jax_handler_text import RECORD, handler_text
from tilewise.options import Options
from tilewise.planning import make_plan
from tilewise.understanding import understand

TARGET = "tilewise_product"
PROCESS = int.from_bytes(os.urandom(7), "little")
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)
_records: dict[int, Record] = {}  # by address: programs hold no references


class Record:
    """A product of arrays of these shapes, as the handler reads it."""

    def __init__(self, ready: Ready, arg: bool) -> None:
        self.ready, self.arg = ready, arg
        self.scratch = ready.space + 64 if ready.space else 0
        self.words = (ctypes.c_int64 * len(RECORD))()
        self.address = ctypes.addressof(self.words)
        threads = 0 if ready.workers == 1 and ready.reduction is None else _by_threads()[1]
        values = (native_addresses()["launch"], ready.template_address, ready.swapped, arg, bool(ready.space), threads)
        self.words[:] = [int(value) for value in values]
        _records[self.address] = self

    def run(self, places: tuple[int, ...]) -> None:
        """By threads; `places`: M, N, P, the winning k and scratch memory, 0 where there is none."""
        launch, pool = native()["launch"], current_pool()
        launch(pool.address if pool is not None else 0, self.ready.template_address, *places)
        if self.ready.reduction is not None:
            launch(0, ctypes.addressof(self.ready.reduction), *places)


@lru_cache(maxsize=1)
def _by_threads() -> tuple[Any, int]:
    """The function that the handler calls for a product of several threads, and its address."""

    def run(record: int, *places: int | None) -> int:
        try:
            _records[record].run(tuple(x or 0 for x in places))
        except Exception:  # what is raised here ends nowhere: XLA is told that it failed
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
    if not (M.size and N.size) or any(x.dtype.kind not in "iufcb" for x in (M, N)) or not registered():
        return None
    call = understand(M, N, Options(semiring=ring, precision=precision, return_arg=return_arg))
    made = make_plan(call.problem, machine_of("cpu"), None, None)
    if made.engine == "reference" or call.M.converted or call.N.converted:
        return None
    P = np.empty((*call.problem.stack, call.problem.m, call.problem.n), call.problem.result.numpy)
    ready = Ready(made, M, N, P, np.empty(P.shape, np.int64) if return_arg else None, None)
    return Record(ready, return_arg) if ready.no_edge is None else None


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
