"""The table of C functions that torch publishes for DLPack: native code reads tensors and launches products with it.

Python takes 60 to 180 ns for each of a tensor's address, shape and stride; the table describes a whole tensor in one
call of about 50 ns. torch has it since 2.9; without it, or without native code, Python reads tensors.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import torch

from tilewise.arrays.ir_macros import expand
from tilewise.system.builtin_call import compiled, made_builtin, native_calls

CPU, CUDA = 1, 2  # DLPack's kinds of devices
NAMES = ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")  # a capsule since torch 2.10, a number in 2.9
MAJOR = 1  # of DLPack, with this layout of the table
TENSOR_FROM_OBJECT, CURRENT_STREAM = 5, 6  # positions in the table
FIELDS = {"data": 0, "device": 8, "kind": 16, "shape": 24, "strides": 32, "offset": 40}  # of a DLTensor; 48 bytes
UNREAD = -2  # returned where a tensor has no address: nothing was launched

Launch = Callable[[int, object, object, object, int], int]


@lru_cache(maxsize=1)
def exchange_functions() -> tuple[int, int] | None:
    """The addresses of torch's functions that describe a tensor and name the current stream; None where it has none."""
    found = next((getattr(torch.Tensor, name) for name in NAMES if hasattr(torch.Tensor, name)), None)
    if found is None or not native_calls():
        return None
    if not isinstance(found, int):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        try:
            found = get(found, b"dlpack_exchange_api")
        except ValueError:
            return None
    if ctypes.c_uint32.from_address(found).value != MAJOR:
        return None
    table = (ctypes.c_uint64 * (CURRENT_STREAM + 1)).from_address(found)
    functions = table[TENSOR_FROM_OBJECT], table[CURRENT_STREAM]
    return functions if all(functions) and _reads_right(functions[0]) else None


def _reads_right(tensor_from_object: int) -> bool:
    """Whether the fields are at the expected offsets."""
    describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(tensor_from_object)
    fields = (ctypes.c_uint64 * 6)()
    strided = torch.empty(2, 4, 7, dtype=torch.float64, device="cpu")[:, ::2, 1:]
    for x in (torch.empty(3, 5, dtype=torch.float32, device="cpu"), strided):
        if describe(x, ctypes.addressof(fields)):
            return False
        kind = x.dim() | 2 << 32 | 8 * x.element_size() << 40 | 1 << 48  # axes, float, bits, lanes
        axes = [list((ctypes.c_int64 * x.dim()).from_address(at)) for at in fields[3:5]]
        if fields[:3] != [x.data_ptr(), CPU, kind] or fields[5] or axes != [list(x.shape), list(x.stride())]:
            return False
    return True


@lru_cache(maxsize=4)
def tensor_launcher(fill_three_and_launch: int) -> Launch | None:
    """`launch(header, M, N, P, scratch)` on the current stream of the tensors' card; None without machine code."""
    if exchange_functions() is None:
        return None
    try:
        return made_builtin(compiled(launch_text(), "launch"), fill_three_and_launch)
    except (ImportError, RuntimeError, OSError, AttributeError):
        return None


def launch_text() -> str:
    """`launch(header, M, N, P, scratch)`; `self` is the address of the function that fills in addresses and
    launches."""
    describe, current_stream = exchange_functions() or (0, 0)
    read = ""
    for number, name in enumerate("MNP", start=1):
        read += f"""
  %{name} = load ptr, ptr %arguments[{number}]
  %{name}.tensor = alloca [48 x i8], align 8
  %{name}.code = call i32 inttoptr (i64 {describe} to ptr)(ptr %{name}, ptr %{name}.tensor)
  require icmp eq i32 %{name}.code, 0 else raised
  %{name}.data = load i64, ptr %{name}.tensor + {FIELDS["data"]}
  require icmp ne i64 %{name}.data, 0 else unread"""
    return expand(f"""
define ptr @launch(ptr %self, ptr %arguments, i64 %count) {{
  %stream.to = alloca i64, align 8
  require icmp eq i64 %count, 5 else wrong
  %header.o = load ptr, ptr %arguments
  %header = call i64 @PyLong_AsUnsignedLongLongMask(ptr %header.o)
  %scratch.o = load ptr, ptr %arguments[4]
  %scratch = call i64 @PyLong_AsUnsignedLongLongMask(ptr %scratch.o)
  %address = call i64 @PyLong_AsUnsignedLongLongMask(ptr %self)
{read}
  %M.device = load i64, ptr %M.tensor + {FIELDS["device"]}
  %kind = trunc i64 %M.device to i32
  %number.wide = lshr i64 %M.device, 32
  %number = trunc i64 %number.wide to i32
  %stream.code = call i32 inttoptr (i64 {current_stream} to ptr)(i32 %kind, i32 %number, ptr %stream.to)
  require icmp eq i32 %stream.code, 0 else raised
  %stream = load i64, ptr %stream.to
  %function = inttoptr i64 %address to ptr
  %thread = call ptr @PyEval_SaveThread()
  %code = call i64 %function(i64 %header, i64 %M.data, i64 %N.data, i64 %P.data, i64 %scratch, i64 %stream)
  call void @PyEval_RestoreThread(ptr %thread)
  %answer = call ptr @PyLong_FromLongLong(i64 %code)
  ret ptr %answer
unread:
  %none = call ptr @PyLong_FromLongLong(i64 {UNREAD})
  ret ptr %none
wrong:
  %reported = call i32 @PyErr_BadArgument()
  ret ptr null
raised:
  ret ptr null
}}
""")
