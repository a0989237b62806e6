"""The functions that a WebAssembly module imports: the runtime's, and those of the mathematics library.

Each is called through a few instructions of ours, one text per signature, that take the arguments out of wasmtime's
array, call the function at `environment`, and put its result there. Thus a call of sinf costs nanoseconds: a Python
function in wasmtime's own form takes microseconds."""

from __future__ import annotations

import ctypes
from typing import Any

from tilewise.emulator.host.target.native import Native
from tilewise.emulator.host.target.object_file import Imported
from tilewise.errors import EngineError

VALUE_BYTES = 16  # of one argument in wasmtime's array
# functions that LLVM calls for intrinsics and remainders: they take and return numbers, and touch no memory
MATHEMATICS = frozenset({
    "fmod", "fma", "pow", "exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh", "round", "roundeven", "ldexp", "fmin", "fmax",
})  # fmt: skip
PICK = """
@all = internal constant [{count} x ptr] [{names}]
define ptr @pick(i64 %i) {{
  %at = getelementptr ptr, ptr @all, i64 %i
  %address = load ptr, ptr %at
  ret ptr %address
}}
"""


def trampoline_text(name: str, function: Imported) -> str:
    """`ptr NAME(environment, caller, values, count)`: the form of wasmtime's unchecked callbacks; null is no trap."""
    loads, given = [], []
    for i, kind in enumerate(function.parameters):
        loads += [
            f"  %p{i} = getelementptr i8, ptr %values, i64 {VALUE_BYTES * i}",
            f"  %v{i} = load {kind}, ptr %p{i}, align 1",
        ]
        given.append(f"{kind} %v{i}")
    call = f"call {function.result} %environment({', '.join(given)})"
    stored = [f"  {call}"]
    if function.result != "void":
        stored = [f"  %result = {call}", f"  store {function.result} %result, ptr %values, align 1"]
    return "\n".join([
        f"define ptr @{name}(ptr %environment, ptr %caller, ptr %values, i64 %count) {{", *loads, *stored,
        "  ret ptr null", "}",
    ])  # fmt: skip


class Imports:
    """The functions of the host by name, as wasmtime's."""

    def __init__(self, store: Any) -> None:
        self._store, self._native = store, Native()
        self._trampolines: dict[tuple[str, tuple[str, ...]], int] = {}  # addresses, by result and parameters
        self._made: dict[Imported, Any] = {}
        self._mathematics: Any = None

    def functions(self, wanted: tuple[Imported, ...], symbols: dict[str, int]) -> list[Any]:
        """`symbols`: addresses of runtime functions, which take and return values of these types."""
        for one in wanted:
            if "other" in (one.result, *one.parameters):
                raise EngineError(f"{one.name} takes or returns a type that this form of program cannot pass")
        self._add_trampolines(wanted)
        for one in wanted:
            if one not in self._made:
                address = symbols.get(one.name) or self._mathematical(one)
                self._made[one] = self._function(one, address)
        return [self._made[one] for one in wanted]

    def _add_trampolines(self, wanted: tuple[Imported, ...]) -> None:
        """Those that are missing, as one module: compiling ten takes as long as one."""
        missing = {(one.result, one.parameters): one for one in wanted}
        missing = {form: one for form, one in missing.items() if form not in self._trampolines}
        if not missing:
            return
        texts = [trampoline_text(f"trampoline_{i}", one) for i, one in enumerate(missing.values())]
        names = ", ".join(f"ptr @trampoline_{i}" for i in range(len(missing)))
        texts.append(PICK.format(count=len(missing), names=names))
        address_of = self._native.load("\n".join(texts), {}, "pick", ("ptr", "i64"), level=1)
        self._trampolines |= {form: address_of(i) for i, form in enumerate(missing)}

    def _mathematical(self, one: Imported) -> int:
        plain = one.name.removesuffix("f") if one.name not in MATHEMATICS else one.name
        if plain not in MATHEMATICS or "i64" in one.parameters:
            raise EngineError(f"{one.name} is called by the program and not known to the runtime")
        if self._mathematics is None:
            self._mathematics = _library()
        return int(ctypes.cast(getattr(self._mathematics, one.name), ctypes.c_void_p).value or 0)

    def _function(self, one: Imported, address: int) -> Any:
        from wasmtime import Func, FuncType, ValType
        from wasmtime import _ffi as ffi

        values = {"i32": ValType.i32, "i64": ValType.i64, "float": ValType.f32, "double": ValType.f64}
        type_ = FuncType([values[k]() for k in one.parameters], [] if one.result == "void" else [values[one.result]()])
        raw = ffi.wasmtime_func_t()
        trampoline = ffi.wasmtime_func_unchecked_callback_t(self._trampolines[one.result, one.parameters])
        no_end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)()
        ffi.wasmtime_func_new_unchecked(
            self._store._context(), type_.ptr(), trampoline, address, no_end, ctypes.byref(raw)
        )
        return Func._from_raw(raw)


def _library() -> Any:
    for library in ("libm.so.6", "libm.dylib", None):
        try:
            return ctypes.CDLL(library)
        except OSError:
            continue
    raise EngineError("this system has no mathematics library")
