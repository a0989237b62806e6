"""Machine code in this process: an address of the program is an address of the process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.host.target import Layout
from tilewise.errors import EngineError, LimitError

LLVM_TO_C: dict[str, Any] = {
    "i32": ctypes.c_int32, "i64": ctypes.c_int64, "i16": ctypes.c_int16, "i8": ctypes.c_int8, "i1": ctypes.c_bool,
    "ptr": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double, "void": None,
}  # fmt: skip
STACK_LEFT = 16 << 20  # of the thread's stack for runtime functions; functions without recursion take at most
BYTES_A_LINE = 16  # more per line of LLVM IR
MOST, LEAST = 1 << 37, 1 << 33  # bytes that the program's memory may have addresses for


def parsed(text: str, triple: str, machine: Any, cpu: str, features: str) -> Any:
    """The module of this text for a target; `cpu` and `features` are those of functions with vector code."""
    import llvmlite.binding as llvm

    if "#1 {" in text:
        text = text.replace("@@CPU@@", cpu, 1).replace("@@FEATURES@@", features, 1)
    try:
        module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise EngineError(f"LLVM refused the program that was made from this file: {error}") from error
    return module


def optimise(module: Any, machine: Any, level: int) -> None:
    import llvmlite.binding as llvm

    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
    builder.getModulePassManager().run(module, builder)


def discard(address: int, size: int) -> None:
    """Give whole pages of this process back to the system; they are zeros afterwards. Only Linux promises that."""
    ctypes.CDLL(None).madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


class Native:
    most, least, layout = MOST, LEAST, Layout()

    def __init__(self) -> None:
        self._kept: list[Any] = []  # owners of machine code and of pages

    def reserve(self, size: int) -> tuple[int, np.ndarray]:
        """The address and the bytes of a range of zeros; its pages are allocated on first access."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        try:
            pages = mmap.mmap(-1, size, flags=flags)
        except (OSError, ValueError, OverflowError):
            raise LimitError("this machine gives no room for a program's memory") from None
        data = np.frombuffer(pages, np.uint8)
        self._kept.append(data)
        return int(data.ctypes.data), data

    def host(self, address: int, size: int) -> int:
        """Where these bytes of the program lie in this process."""
        return address

    def stack_room(self, text: str, stack: int) -> int:
        """Bytes of the native stack that recursion may use, of `stack`."""
        return stack - STACK_LEFT - BYTES_A_LINE * text.count("\n")

    def load(
        self, text: str, symbols: dict[str, int], entry: str, kinds: tuple[str, ...], level: int = 2, wide: bool = False
    ) -> Callable[..., Any]:
        """The function `entry` of a module. `symbols`: runtime functions by name; `kinds`: LLVM types of its result
        and arguments; `wide`: use this processor's vector extensions."""
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for name, address in symbols.items():
            llvm.add_symbol(name, address)
        triple, host = llvm.get_process_triple(), (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
        cpu = dict(zip(("cpu", "features"), host, strict=True)) if wide else {}
        machine = llvm.Target.from_triple(triple).create_target_machine(
            opt=level, codemodel="jitdefault", jit=True, **cpu
        )
        module = parsed(text, triple, machine, *host)
        optimise(module, machine, level)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        self._kept += engine, module
        return self.function(int(engine.get_function_address(entry)), kinds)

    def function(self, address: int, kinds: tuple[str, ...]) -> Callable[..., Any]:
        """The program's function at an address, which the program handed out."""
        result, *arguments = (LLVM_TO_C[kind] for kind in kinds)
        return ctypes.CFUNCTYPE(result, *arguments)(address)
