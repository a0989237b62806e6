"""Native functions as CPython builtins, called in a tenth of the time of a ctypes call.

LLVM compiles a METH_FASTCALL function that converts its arguments to 64-bit integers and calls the given address.
Without CPython, where LLVM fails, and in a process with a small memory budget, ctypes does the same.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tilewise.system.cache import DiskCache
from tilewise.system.llvm_lock import LLVM

METH_FASTCALL = 0x80
# the functions of CPython's stable ABI that compiled text may call
DECLARED = """
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare void @Py_IncRef(ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare void @PyErr_Clear()
declare void @Py_DecRef(ptr)
"""
SYMBOLS = re.findall(r"@(\w+)\(", DECLARED)

# prologue of the functions that compute signatures: load M, N and the keywords; other argument counts go to `slowly`
CALL_READ = """  %three = icmp eq i64 %count, 3
  br i1 %three, label %read, label %slowly
read:
  %M = load ptr, ptr %arguments
  %N.at = getelementptr ptr, ptr %arguments, i64 1
  %N = load ptr, ptr %N.at
  %keywords.at = getelementptr ptr, ptr %arguments, i64 2
  %keywords = load ptr, ptr %keywords.at
  %given = call i64 @PyDict_Size(ptr %keywords)
"""


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_kept: list[Any] = []  # engines that own machine code, and method definitions: never freed


_without_llvm: list[bool] = []


def prefer_ctypes() -> None:
    """Use ctypes from now on: LLVM takes 20 MB of memory for the first builtin, too much for a process with a small
    memory budget, which makes few calls."""
    _without_llvm.append(True)


def native_calls() -> bool:
    """Whether builtins can be made here."""
    return not _without_llvm and sys.implementation.name == "cpython"


def builtin(address: int, kinds: str, *, returns: bool = True, keeps_gil: bool = False) -> Callable[..., int]:
    """The function at an address as a Python callable. `kinds` has a letter for each argument: "w" is an int, passed as
    64 bits; "o" is an object, passed as its address. `returns`: it returns 64 bits; else the call returns 0.
    `keeps_gil`: it is too short to release the GIL."""
    if native_calls():
        try:
            return made_builtin(_forwarder(kinds, returns, keeps_gil), address)
        except (ImportError, RuntimeError, OSError, AttributeError):
            pass
    types: list[Any] = [{"w": ctypes.c_uint64, "o": ctypes.py_object}[kind] for kind in kinds]
    convention = ctypes.PYFUNCTYPE if keeps_gil else ctypes.CFUNCTYPE
    called: Callable[..., int] = convention(ctypes.c_int64 if returns else None, *types)(address)
    return called


def made_builtin(function: int, bound: Any) -> Callable[..., Any]:
    """A builtin from the address of a METH_FASTCALL function; `bound` is the object passed as self."""
    method = _Method(b"tilewise", function, METH_FASTCALL, None)
    _kept.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    made: Callable[..., Any] = make(ctypes.addressof(method), bound, None)
    return made


def compiled(text: str, name: str) -> int:
    """The address of a function of an LLVM module, which may call what DECLARED lists."""
    return compiled_functions(text, (name,))[0]


def compiled_functions(text: str, names: Sequence[str], kept: bool = False) -> list[int]:
    """The same of several; `kept`: their machine code stays on disk."""
    with LLVM:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for symbol in SYMBOLS:
            llvm.add_symbol(symbol, ctypes.cast(getattr(ctypes.pythonapi, symbol), ctypes.c_void_p).value)
        triple = llvm.get_process_triple()
        machine = llvm.Target.from_triple(triple).create_target_machine(opt=2, jit=True)

        def module(code: str) -> Any:
            parsed = llvm.parse_assembly(code)
            parsed.verify()
            parsed.data_layout = str(machine.target_data)
            return parsed

        def quickly() -> bytes:
            """A long text in a third of the time: passes that shorten it, then no optimization of the machine code."""
            made, quick = (
                module(DECLARED + text),
                llvm.Target.from_triple(triple).create_target_machine(opt=0, jit=True),
            )
            passes = llvm.create_new_module_pass_manager()
            passes.add_sroa_pass()
            passes.add_simplify_cfg_pass()
            passes.add_instruction_combine_pass()
            passes.run(made, llvm.create_pass_builder(quick, llvm.create_pipeline_tuning_options()))
            return bytes(quick.emit_object(made))

        if kept:
            key = (text, triple, f"LLVM {llvm.llvm_version_info}")
            code = DiskCache("llvm").get_or_build(key, quickly)
            engine = llvm.create_mcjit_compiler(module(""), machine)
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        else:
            engine = llvm.create_mcjit_compiler(module(DECLARED + text), machine)
        engine.finalize_object()
        _kept.append(engine)
        return [int(engine.get_function_address(name)) for name in names]


@lru_cache(maxsize=16)
def _forwarder(kinds: str, returns: bool, keeps_gil: bool) -> int:
    return compiled(forwarder_text(kinds, returns, keeps_gil), "forward")


def forwarder_text(kinds: str, returns: bool, keeps_gil: bool) -> str:
    """LLVM text of a METH_FASTCALL function that calls the address in `self` with arguments of these kinds."""
    read = ""
    for i, kind in enumerate(kinds):
        read += f"  %p{i} = getelementptr ptr, ptr %arguments, i64 {i}\n  %o{i} = load ptr, ptr %p{i}\n"
        integer = f"call i64 @PyLong_AsUnsignedLongLongMask(ptr %o{i})" if kind == "w" else f"ptrtoint ptr %o{i} to i64"
        read += f"  %w{i} = {integer}\n"
    given = ", ".join(f"i64 %w{i}" for i in range(len(kinds)))
    called = f"%answer = call i64 %function({given})" if returns else f"call void %function({given})"
    free = ("%thread = call ptr @PyEval_SaveThread()", "call void @PyEval_RestoreThread(ptr %thread)")
    before, after = ("", "") if keeps_gil else free
    return f"""
define ptr @forward(ptr %self, ptr %arguments, i64 %count) {{
  %right = icmp eq i64 %count, {len(kinds)}
  br i1 %right, label %read, label %wrong
wrong:
  %said = call i32 @PyErr_BadArgument()
  ret ptr null
read:
{read}
  %at = call i64 @PyLong_AsUnsignedLongLongMask(ptr %self)
  %error = call ptr @PyErr_Occurred()
  %bad = icmp ne ptr %error, null
  br i1 %bad, label %raised, label %go
raised:
  ret ptr null
go:
  %function = inttoptr i64 %at to ptr
  {before}
  {called}
  {after}
  %object = call ptr @PyLong_FromLongLong(i64 {"%answer" if returns else "0"})
  ret ptr %object
}}
"""
