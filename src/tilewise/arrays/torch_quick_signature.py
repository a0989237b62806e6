"""Native signatures of torch tensors, one function for tensors on cards and one for those on the host.

The key of a product with no keywords, with `out=`, or with those of `keyword_codes` is the bytes of its tensors'
devices, dtypes, alignment classes, shapes and strides, and a gradient mark; it takes a quarter of the time that Python
needs. Calls under modes, transforms, tracing or autocast, other keywords, and tensors that DLPack's table does not
describe fully go to `torch_signature.signature`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from tilewise.arrays.ir_macros import expand
from tilewise.arrays.keyword_codes import UNKNOWN, VALUES, keyword_code_text
from tilewise.arrays.torch_exchange import CUDA, FIELDS, exchange_functions
from tilewise.arrays.torch_signature import GRADIENT
from tilewise.core.options import GRADIENT_BYTE, Key
from tilewise.system.builtin_call import CALL_READ, compiled, made_builtin
from tilewise.system.llvm_lock import LLVM

AXES = 4
COMPLEX = 5  # DLPack's kDLComplex
MARK = 8 * GRADIENT_BYTE  # the bit of the first slot, 0 without keywords, that marks a gradient
SLOTS = 1 + 3 * (3 + 2 * AXES)
_kept: list[Any] = []  # objects whose addresses machine code holds

Sign = Callable[[Any, Any, Any], Key | None]


def quickest_signature(fallback: Sign, device: int = CUDA) -> Sign:
    """The native signature function for tensors on such devices, which calls `fallback` for all others; or `fallback`.
    Made once, under a lock."""
    with LLVM:
        return _quickest_signature(fallback, device)


@lru_cache(maxsize=2)
def _quickest_signature(fallback: Sign, device: int) -> Sign:
    if exchange_functions() is None:
        return fallback
    try:
        return made_builtin(compiled(signature_text(device), "sign"), fallback)
    except (ImportError, RuntimeError, OSError, AttributeError):
        return fallback


def wants_gradient(key: Key) -> bool:
    """Whether a signature, native or not, is of a call that needs a gradient."""
    return bool(key[GRADIENT_BYTE] if isinstance(key, bytes) else key[0] is GRADIENT)


def _held(thing: Any) -> int:
    """The address of an object that is kept alive."""
    _kept.append(thing)
    return id(thing)


def _constant(thing: Any) -> str:
    return f"inttoptr (i64 {_held(thing)} to ptr)"


def signature_text(device: int) -> str:
    """`sign(M, N, keywords)`: the key's bytes, or what Python returns."""
    return expand(_gradient_text() + _described_text(device) + keyword_code_text(_held) + _sign_text())


def _gradient_text() -> str:
    """`is`: whether a new reference is to a certain object; it is released. `with_gradient`: 1 where a tensor's
    gradient is wanted."""
    return f"""
define private i1 @is(ptr %value, ptr %wanted) {{
  require icmp ne ptr %value, null else raised
  call void @Py_DecRef(ptr %value)
  %same = icmp eq ptr %value, %wanted
  ret i1 %same
raised:
  call void @PyErr_Clear()
  ret i1 false
}}

define private i64 @with_gradient(ptr %object) {{
  %wants = call ptr @PyObject_GetAttr(ptr %object, ptr {_constant("requires_grad")})
  require call i1 @is(ptr %wants, ptr {_constant(True)}) else no
  %on = call ptr @PyObject_CallNoArgs(ptr {_constant(torch.is_grad_enabled)})
  require call i1 @is(ptr %on, ptr {_constant(True)}) else no
  ret i64 1
no:
  ret i64 0
}}
"""


SIZES_COPIED = """\
copy:
  br label %loop
loop:
  %i = phi i64 [ 0, %copy ], [ %next, %loop ]
  %unit = phi i1 [ false, %copy ], [ %unit.now, %loop ]
  %extent = load i64, ptr %shape[%i]
  store i64 %extent, ptr %shape.to[%i]
  %stride = load i64, ptr %strides[%i]
  store i64 %stride, ptr %strides.to[%i]
  %long = icmp sgt i64 %extent, 1
  %one = icmp eq i64 %stride, 1
  %both = and i1 %long, %one
  %unit.now = or i1 %unit, %both
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %axes
  br i1 %more, label %loop, label %copied
"""


def _described_text(device: int) -> str:
    """`described`: the slots of a tensor and their number, 0 where Python must look; %flag is set where its gradient is
    wanted. A stride of one element is required: the imaginary part of a conjugate has none, and is to be negated.
    Whether a complex tensor is to be conjugated is not described."""
    return f"""
define private i64 @described(ptr %object, ptr %slots, ptr %flag) {{
  %tensor = alloca [48 x i8], align 8
  %code = call i32 inttoptr (i64 {(exchange_functions() or (0, 0))[0]} to ptr)(ptr %object, ptr %tensor)
  require icmp eq i32 %code, 0 else failed
  %data = load i64, ptr %tensor + {FIELDS["data"]}
  require icmp ne i64 %data, 0 else no
  %offset = load i64, ptr %tensor + {FIELDS["offset"]}
  require icmp eq i64 %offset, 0 else no
  %device = load i64, ptr %tensor + {FIELDS["device"]}
  %device.kind = trunc i64 %device to i32
  require icmp eq i32 %device.kind, {device} else no
  %kind = load i64, ptr %tensor + {FIELDS["kind"]}
  %number = and i64 %kind, {255 << 32}
  require icmp ne i64 %number, {COMPLEX << 32} else no
  %axes = and i64 %kind, 4294967295
  %less = sub i64 %axes, 1
  require icmp ult i64 %less, {AXES} else no
  %shape = load ptr, ptr %tensor + {FIELDS["shape"]}
  %strides = load ptr, ptr %tensor + {FIELDS["strides"]}
  %alignment = and i64 %data, 15
  store i64 %device, ptr %slots[0]
  store i64 %kind, ptr %slots[1]
  store i64 %alignment, ptr %slots[2]
  %shape.to = getelementptr i64, ptr %slots, i64 3
  %strides.to = getelementptr i64, ptr %shape.to, i64 %axes
  br label %copy
{SIZES_COPIED}copied:
  require icmp eq i1 %unit.now, true else no
  %wanted = call i64 @with_gradient(ptr %object)
  %before = load i64, ptr %flag
  %now = or i64 %before, %wanted
  store i64 %now, ptr %flag
  %twice = shl i64 %axes, 1
  %count = add i64 %twice, 3
  ret i64 %count
failed:
  call void @PyErr_Clear()
  br label %no
no:
  ret i64 0
}}
"""


def _plain(name: str) -> str:
    """IR that branches to `slowly` unless an object is a tensor or a parameter, of no subclass."""
    return f"""  %type.{name} = load ptr, ptr %{name} + {object.__basicsize__ - 8}
  %tensor.{name} = icmp eq ptr %type.{name}, {_constant(torch.Tensor)}
  %parameter.{name} = icmp eq ptr %type.{name}, {_constant(torch.nn.Parameter)}
  require or i1 %tensor.{name}, %parameter.{name} else slowly
"""


def _guard(name: str, call: str, usual: Any) -> str:
    """IR that branches to `slowly` unless a call returns the usual object: then torch records nothing."""
    return f"  %{name} = call ptr {call}\n  require call i1 @is(ptr %{name}, ptr {_constant(usual)}) else slowly\n"


def _calls(function: Any) -> str:
    return f"@PyObject_CallNoArgs(ptr {_constant(function)})"


def _out_text() -> str:
    """The end of `sign`: P among the slots, the key as bytes, or the call in Python."""
    return f"""out:
{_plain("P")}
  %P.count = call i64 @described(ptr %P, ptr %P.to, ptr %flag)
  require icmp ne i64 %P.count, 0 else slowly
  %P.device = load i64, ptr %P.to
  require icmp eq i64 %M.device, %P.device else slowly
  %wanted.now = load i64, ptr %flag
  require icmp eq i64 %wanted.now, 0 else slowly
  br label %out.end
out.end:
  br label %end
end:
  %more = phi i64 [ 0, %fresh.end ], [ %P.count, %out.end ]
  %last = getelementptr i64, ptr %P.to, i64 %more
  %from = ptrtoint ptr %slots to i64
  %till = ptrtoint ptr %last to i64
  %bytes = sub i64 %till, %from
  %key = call ptr @PyBytes_FromStringAndSize(ptr %slots, i64 %bytes)
  ret ptr %key
failed:
  call void @PyErr_Clear()
  br label %slowly
slowly:
  %other = call ptr @PyObject_Vectorcall(ptr %self, ptr %arguments, i64 %count, ptr null)
  ret ptr %other
}}
"""


def _sign_text() -> str:
    """Classes, torch.func, M, what torch records, N, the card; then without keywords, with some but no `out`, or with
    `out`. A gradient with keywords is left to Python. A tensor inside torch.func has no memory: DLPack's table would
    throw a C++ exception for it, which takes half a millisecond."""
    c, forward_ad = torch._C, _constant(torch.autograd.forward_ad)
    transforms = _guard("transforms", _calls(c._are_functorch_transforms_active), False)
    guards = _guard("modes", _calls(c._len_torch_dispatch_stack), 0)
    guards += _guard("tracing", _calls(c._get_tracing_state), None)
    guards += _guard("level", f"@PyObject_GetAttr(ptr {forward_ad}, ptr {_constant('_current_level')})", -1)
    return f"""
define ptr @sign(ptr %self, ptr %arguments, i64 %count) {{
  %slots = alloca [{SLOTS} x i64], align 8
  %flag = alloca i64
  store i64 0, ptr %flag
{CALL_READ}  require icmp ule i64 %given, {1 + len(VALUES)} else slowly
{_plain("M")}{_plain("N")}{transforms}
  %M.to = getelementptr i64, ptr %slots, i64 1
  %M.count = call i64 @described(ptr %M, ptr %M.to, ptr %flag)
  require icmp ne i64 %M.count, 0 else slowly
{guards}
  %N.to = getelementptr i64, ptr %M.to, i64 %M.count
  %N.count = call i64 @described(ptr %N, ptr %N.to, ptr %flag)
  require icmp ne i64 %N.count, 0 else slowly
  %M.device = load i64, ptr %M.to
  %N.device = load i64, ptr %N.to
  require icmp eq i64 %M.device, %N.device else slowly
{_card_text()}
  %P.to = getelementptr i64, ptr %N.to, i64 %N.count
  %wanted = load i64, ptr %flag
  %bare = icmp eq i64 %given, 0
  br i1 %bare, label %short, label %long
short:
  %mark = shl i64 %wanted, {MARK}
  store i64 %mark, ptr %slots
  br label %fresh
long:
  %code = call i64 @coded(ptr %keywords, i64 %given)
  store i64 %code, ptr %slots
  require icmp ne i64 %code, {UNKNOWN} else slowly
  require icmp eq i64 %wanted, 0 else slowly
  %P = call ptr @PyDict_GetItem(ptr %keywords, ptr {_constant("out")})
  require icmp eq ptr %P, null else out
  br label %fresh
fresh:
{_guard("autocast", _calls(c._is_any_autocast_enabled), False)}
  br label %fresh.end
fresh.end:
  br label %end
{_out_text()}"""


def _card_text() -> str:
    """With several cards, the tensors must be on the current one."""
    if torch.cuda.device_count() < 2:
        return ""
    return f"""
  %current = call ptr {_calls(torch._C._cuda_getDevice)}
  require icmp ne ptr %current, null else failed
  %number = call i64 @PyLong_AsUnsignedLongLongMask(ptr %current)
  call void @Py_DecRef(ptr %current)
  %theirs = lshr i64 %M.device, 32
  require icmp eq i64 %theirs, %number else slowly
"""
