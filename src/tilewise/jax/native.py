"""Products inside jit on the CPU that XLA calls through its FFI: no callback, no copy, and on one thread no Python.

A call record is made for given shapes while a program is traced, and lives as long as the process. The program contains
its address and a random number of the process, so that a program cached on disk is never used by another process.
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

from tilewise.algebra.dtypes import Array
from tilewise.algebra.semiring import Semiring
from tilewise.backends.cpu.ready import Ready
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import current_pool, native, native_addresses
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.options import Options
from tilewise.dispatch.bind import bind
from tilewise.dispatch.execute import machine_of
from tilewise.errors import TilewiseError
from tilewise.jax.handler_text import RECORD, handler_text
from tilewise.planning.choose import make_plan

TARGET = "tilewise_product"
PROCESS = int.from_bytes(os.urandom(7), "little")
MESSAGE = 1024  # bytes of an error message
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)
_records: dict[int, CallRecord] = {}  # by address: programs hold no references


class CallRecord:
    """A product of arrays of these shapes, in the layout that the handler reads."""

    def __init__(self, ready: Ready, arrays: tuple[Array, ...]) -> None:
        """`arrays`: M, N, P, and the winning k if requested; only shapes and dtypes are used."""
        self.ready, self.arg, self._forms = ready, len(arrays) == 4, [(x.shape, x.dtype) for x in arrays]
        self.scratch = ready.space + 64 if ready.space else 0
        self.fields = (ctypes.c_int64 * len(RECORD))()
        self.address = ctypes.addressof(self.fields)
        self.message = ctypes.create_string_buffer(MESSAGE)
        direct = ready.workers == 1 and (ready.no_edge is None or ready.scan is not None)
        check = (0, 0) if ready.scan is None else (ready.scan.function, ready.scan.record)
        values = {
            "launch": native_addresses()["launch"], "template": ready.template_address, "swapped": ready.swapped,
            "arg": self.arg, "scratch": bool(ready.space), "direct": direct, "python": _python_fallback()[1],
            "check": check[0], "weights": check[1], "message": ctypes.addressof(self.message),
        }  # fmt: skip
        self.fields[:] = [int(values[name]) for name in RECORD]
        _records[self.address] = self

    def run(self, places: tuple[int, ...]) -> None:
        """Run on several threads, or with missing edges. `places`: addresses of left, right, P, the winning k and the
        workspace, 0 for none."""
        if self.ready.no_edge is not None:
            first, second, *others = places[:4]
            at = (second, first, *others) if self.ready.swapped else (first, second, *others)
            self.ready.run(*(_array(*how, where) for how, where in zip(self._forms, at, strict=False)))
            return
        launch, pool = native()["launch"], current_pool()
        launch(pool.address if pool is not None else 0, self.ready.template_address, *places)


def _array(shape: tuple[int, ...], dtype: np.dtype[Any], address: int) -> Array:
    """XLA's dense memory as an array."""
    room = (ctypes.c_uint8 * (math.prod(shape) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(room), dtype).reshape(shape)


@lru_cache(maxsize=1)
def _python_fallback() -> tuple[Any, int]:
    """The function that the handler calls if it cannot launch itself, and its address."""

    def run(record: int, *places: int | None) -> int:
        try:
            _records[record].run(tuple(x or 0 for x in places))
        except Exception as error:  # cannot propagate through XLA, which gets the message
            _records[record].message.value = str(error).encode()[: MESSAGE - 1]
            return 1
        return 0

    made = _RUN(run)
    return made, int(ctypes.cast(made, ctypes.c_void_p).value or 0)


@lru_cache(maxsize=1)
def registered() -> bool:
    """Register the handler with XLA, once; False if the interface has another major version or is missing."""
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
) -> CallRecord | None:
    """The record of a product of dense arrays, given by (shape, dtype); None if it takes more than one kernel."""
    M, N = (np.empty(shape, dtype) for shape, dtype in (left, right))  # never read
    call = bind(M, N, Options(semiring=ring, precision=precision, return_arg=return_arg))
    if not (M.size and N.size) or not registered():
        return None
    made = make_plan(call.problem, machine_of("cpu"), None, None)
    if made.blocking is None or call.M.converted or call.N.converted:
        return None
    P = np.empty((*call.problem.stack, call.problem.m, call.problem.n), call.problem.result.numpy)
    arg = np.empty(P.shape, np.int64) if return_arg else None
    return CallRecord(Ready(made.problem, made.blocking), (M, N, P) if arg is None else (M, N, P, arg))


def product(record: CallRecord, M: Any, N: Any, shape: tuple[int, ...], result: Any) -> tuple[Any, ...]:
    """P, and the winning k if requested, as traced values."""
    made = [jax.ShapeDtypeStruct(shape, result)]
    if record.arg:
        made.append(jax.ShapeDtypeStruct((*shape, 2), np.int32))  # halves of int64, the lower first
    if record.scratch:
        made.append(jax.ShapeDtypeStruct((record.scratch,), np.uint8))
    call = jax.ffi.ffi_call(TARGET, made)
    found = call(M, N, process=np.int64(PROCESS), record=np.int64(record.address))
    return (found[0], found[1][..., 0]) if record.arg else (found[0],)
