"""A program as WebAssembly: its code can touch one linear memory, its own table of functions, and what it imports.

Addresses are 64 bits wide (wasm64), so that the layout of objects is nvcc's. An address of the program is an offset in
the linear memory: the first page stays zero and is never handed out (NULL), then LLVM's stack, then what `reserve`
hands out. The stack grows down, towards NULL and below zero, where an access traps. Every module shares the memory and
the stack pointer; each has its own table, with the functions whose address it takes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.host.target import Layout, Trapped
from tilewise.emulator.host.target.imports import Imports
from tilewise.emulator.host.target.native import optimise, parsed
from tilewise.emulator.host.target.object_file import MEMORY, PAGE, STACK_POINTER, Module, link
from tilewise.errors import EngineError, LimitError

TRIPLE = "wasm64-unknown-unknown"
# not wide-arithmetic: LLVM 22 compares the wrong half of i64.mul_wide_s for llvm.smul.with.overflow.i64
FEATURES = "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext,+mutable-globals"
# LLVM calls this for products of 128 bits. Optimised, it would be recognised as one, and call itself
MULTIPLY = """
define void @__multi3(ptr %out, i64 %a, i64 %a_high, i64 %b, i64 %b_high) noinline optnone nounwind {
  %low = mul i64 %a, %b
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %carry = lshr i64 %p00, 32
  %middle = add i64 %p01, %carry
  %middle0 = and i64 %middle, 4294967295
  %sum = add i64 %p10, %middle0
  %sum1 = lshr i64 %sum, 32
  %middle1 = lshr i64 %middle, 32
  %h0 = add i64 %p11, %middle1
  %h1 = add i64 %h0, %sum1
  %x = mul i64 %a, %b_high
  %y = mul i64 %a_high, %b
  %h2 = add i64 %h1, %x
  %high = add i64 %h2, %y
  store i64 %low, ptr %out
  %second = getelementptr i8, ptr %out, i64 8
  store i64 %high, ptr %second
  ret void
}
"""
STACK = 64 << 20  # bytes for variables that LLVM keeps in memory
STACK_LEFT = 1 << 20  # of it when recursion is stopped
NATIVE_STACK_LEFT = 32 << 20  # of the thread's stack for runtime functions
MOST, LEAST = 1 << 36, 1 << 34  # bytes that the program's memory may have addresses for
BESIDE = 1 << 37  # those for what is not the program's: data of its modules, coroutines, cells of the race check
THREAD_STACK = 512 << 20


class WebAssembly:
    most, least, layout = MOST, LEAST, Layout()

    def __init__(self) -> None:
        w = _wasmtime()
        config = w.Config()
        config.wasm_memory64 = True
        config.parallel_compilation = False  # the sandbox forbids new threads
        config.native_unwind_info = False
        config.memory_reservation = 2 * MOST + BESIDE
        config.memory_may_move = False
        config.max_wasm_stack = THREAD_STACK - NATIVE_STACK_LEFT
        _set(config, "async_stack_size", THREAD_STACK)
        self._store = w.Store(w.Engine(config))
        size = 2 * MOST + BESIDE
        while True:
            try:
                limits = w.Limits(size // PAGE, size // PAGE)
                self._memory = w.Memory(self._store, w.MemoryType(limits, is_64=True))
                break
            except w.WasmtimeError:
                size //= 2
                if size < 2 * LEAST:
                    raise LimitError("this machine gives no room for a program's memory") from None
        self._start = ctypes.addressof(self._memory.data_ptr(self._store).contents)
        self._bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self._start))
        self._size, self._next = size, PAGE + STACK
        kind = w.GlobalType(w.ValType.i64(), mutable=True)
        self._stack = w.Global(self._store, kind, w.Val.i64(self._next))
        self._imports = Imports(self._store)
        self._tables: list[Any] = []

    def reserve(self, size: int) -> tuple[int, np.ndarray]:
        size = -(-size // PAGE) * PAGE
        if self._next + size > self._size:
            raise LimitError(f"a program's memory has no room for {size} more bytes")
        self._next += size
        return self._next - size, self._bytes[self._next - size : self._next]

    def host(self, address: int, size: int) -> int:
        """Where these bytes lie in this process. Whatever the program passes, they are inside its memory."""
        if size < 0 or not 0 <= address <= self._size - size:
            raise EngineError(f"the program passed {size} bytes at {address:#x}, which are outside of its memory")
        return self._start + address

    def stack_room(self, text: str, stack: int) -> int:
        return STACK - STACK_LEFT

    def load(
        self, text: str, symbols: dict[str, int], entry: str, kinds: tuple[str, ...], level: int = 2, wide: bool = False
    ) -> Callable[..., Any]:
        w = _wasmtime()
        linked = linked_module(text, entry, lambda size: self.reserve(size)[0], level)
        functions = self._imports.functions(linked.functions, symbols)
        try:
            made = w.Module(self._store.engine, linked.binary)
            given = {MEMORY: self._memory, STACK_POINTER: self._stack}
            instance = w.Instance(self._store, made, [*(given[name] for name in linked.given), *functions])
        except w.WasmtimeError as error:
            raise EngineError(f"wasmtime refused the program that was made from this file: {error}") from error
        exports = instance.exports(self._store)
        if "table" in exports:
            self._tables.append(exports["table"])
        return self._callable(exports[entry], linked.names)

    def function(self, address: int, kinds: tuple[str, ...]) -> Callable[..., Any]:
        """The function of the first module (main's) whose address this is."""
        found = self._tables[0].get(self._store, address) if self._tables else None
        if not callable(found):
            raise EngineError(f"the program passed {address:#x} as a function, which is none")
        return self._callable(found, {})

    def _callable(self, function: Any, names: dict[int, str]) -> Callable[..., Any]:
        w = _wasmtime()

        def call(*arguments: int) -> Any:
            try:
                return function(self._store, *arguments)
            except w.Trap as trap:
                what = str(trap).rpartition("wasm trap: ")[2].strip()
                where = names.get(trap.frames[0].func_index, "") if trap.frames else ""
                raise Trapped(what, trap.trap_code is w.TrapCode.STACK_OVERFLOW, where) from None

        return call


def linked_module(text: str, entry: str, place: Callable[[int], int], level: int) -> Module:
    """The loadable module of LLVM text; `place`: the address of so many bytes for its data."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=level, features=FEATURES)
    module = parsed(text + MULTIPLY, TRIPLE, machine, "generic", FEATURES)
    optimise(module, machine, level)
    return link(machine.emit_object(module), entry, place)


def _set(config: Any, name: str, value: int) -> None:
    """A setting that wasmtime's Python package does not have."""
    from wasmtime import _ffi

    getattr(_ffi, f"wasmtime_config_{name}_set")(config.ptr(), value)


def _wasmtime() -> Any:
    try:
        import wasmtime
    except (ImportError, OSError, RuntimeError):  # not there, or without a library for this machine
        raise EngineError('WebAssembly needs wasmtime: pip install "tilewise[wasm]"') from None
    return wasmtime
