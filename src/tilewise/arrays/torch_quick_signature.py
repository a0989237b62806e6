"""torch tensors signed by machine code, one function for those on cards and one for those on the host.

A product with no keywords, with `out=`, or with those of `keyword_words` is signed by the bytes of its tensors'
devices, dtypes, alignment classes, shapes and strides, in a quarter of the time that Python takes, and marked where a
gradient is wanted. What else torch follows (modes, transforms, tracing, autocast), other keywords, and every tensor
that DLPack's table cannot tell whole, is signed by `torch_signature.signature`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from tilewise.arrays.keyword_words import UNKNOWN, VALUES, words_text
from tilewise.arrays.torch_exchange import CUDA, exchange_functions, field
from tilewise.arrays.torch_signature import GRADIENT
from tilewise.core.options import GRADIENT_BYTE, Key
from tilewise.system.builtin_call import CALL_READ, compiled, made_builtin
from tilewise.system.llvm_lock import LLVM

AXES = 4
MARK = 8 * GRADIENT_BYTE  # the bit of the first word, which is 0 without keywords, that says that a gradient is wanted
AUTOCAST, AUTOCAST_TOO = 100, 101  # the numbers of its guards, behind those of every call
WORDS = 1 + 3 * (3 + 2 * AXES)
_kept: list[Any] = []  # objects whose addresses machine code holds

Sign = Callable[[Any, Any, Any], Key | None]


def quickest_signature(otherwise: Sign, device: int = CUDA) -> Sign:
    """The signature of tensors on such devices in machine code; `otherwise` takes all others, or all. Made once: who
    asks meanwhile waits for it."""
    with LLVM:
        return _quickest_signature(otherwise, device)


@lru_cache(maxsize=2)
def _quickest_signature(otherwise: Sign, device: int) -> Sign:
    if exchange_functions() is None:
        return otherwise
    try:
        return made_builtin(compiled(signature_text(device), "sign"), otherwise)
    except (ImportError, RuntimeError, OSError, AttributeError):
        return otherwise


def wants_gradient(key: Key) -> bool:
    """Whether a signature, by machine code or by Python, is of a call whose gradient is wanted."""
    return bool(key[GRADIENT_BYTE] if isinstance(key, bytes) else key[0] is GRADIENT)


def _held(thing: Any) -> int:
    """The address of an object that stays."""
    _kept.append(thing)
    return id(thing)


def _guards() -> tuple[tuple[Any, Any], ...]:
    """What is asked before each call, and the answer where torch follows nothing."""
    c = torch._C
    return (
        (c._len_torch_dispatch_stack, 0), (c._are_functorch_transforms_active, False), (c._get_tracing_state, None),
    )  # fmt: skip


def _guard(number: int, function: Any, usual: Any, after: str) -> str:
    """IR that goes on to `after` where a function answers as usual, and takes the way of Python elsewhere."""
    return f"""
  %guard.{number} = call ptr @PyObject_CallNoArgs(ptr inttoptr (i64 {_held(function)} to ptr))
  %lost.{number} = icmp eq ptr %guard.{number}, null
  br i1 %lost.{number}, label %raised, label %told.{number}
told.{number}:
  call void @Py_DecRef(ptr %guard.{number})
  %usual.{number} = icmp eq ptr %guard.{number}, inttoptr (i64 {_held(usual)} to ptr)
  br i1 %usual.{number}, label %{after}, label %slowly
"""


def _plain(name: str) -> str:
    """IR of %plain.name: whether an object is a tensor or a parameter, of no subclass."""
    header = object.__basicsize__
    return f"""
  %class.{name} = getelementptr i8, ptr %{name}, i64 {header - 8}
  %type.{name} = load ptr, ptr %class.{name}
  %tensor.{name} = icmp eq ptr %type.{name}, inttoptr (i64 {id(torch.Tensor)} to ptr)
  %parameter.{name} = icmp eq ptr %type.{name}, inttoptr (i64 {id(torch.nn.Parameter)} to ptr)
  %plain.{name} = or i1 %tensor.{name}, %parameter.{name}
"""


def signature_text(device: int) -> str:
    """`sign(M, N, keywords)`: the key's bytes, or what Python says."""
    return _words_text(device) + _gradient_text() + _axes_text() + words_text(_held) + _sign_text()


def _words_text(device: int) -> str:
    """How many words a tensor's description takes, written to `words`; 0 where it is not told whole here. `flag` is
    set where its gradient is wanted."""
    describe, _ = exchange_functions() or (0, 0)
    return f"""
define private i64 @described(ptr %object, ptr %words, ptr %flag) {{
  %tensor = alloca [48 x i8], align 8
  %code = call i32 inttoptr (i64 {describe} to ptr)(ptr %object, ptr %tensor)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %clear, label %read
clear:
  call void @PyErr_Clear()
  ret i64 0
read:
{field("data", "i64")}{field("device", "i64")}{field("kind", "i64")}{field("offset", "i64")}
{field("shape", "ptr")}{field("strides", "ptr")}
  %where = trunc i64 %device to i32
  %here = icmp eq i32 %where, {device}
  %axes.low = trunc i64 %kind to i32
  %axes = zext i32 %axes.low to i64
  %less = sub i64 %axes, 1
  %few = icmp ult i64 %less, {AXES}
  %based = icmp eq i64 %offset, 0
  %there = icmp ne i64 %data, 0
  %a = and i1 %here, %few
  %b = and i1 %based, %there
  %c = and i1 %a, %b
  br i1 %c, label %write, label %no
write:
  %skew = and i64 %data, 15
  store i64 %device, ptr %words
  %kind.to = getelementptr i64, ptr %words, i64 1
  store i64 %kind, ptr %kind.to
  %skew.to = getelementptr i64, ptr %words, i64 2
  store i64 %skew, ptr %skew.to
  %shape.to = getelementptr i64, ptr %words, i64 3
  %strides.to = getelementptr i64, ptr %shape.to, i64 %axes
  %written = call i64 @axes(ptr %shape, ptr %strides, ptr %shape.to, ptr %strides.to, i64 %axes)
  %unit = icmp ne i64 %written, 0
  br i1 %unit, label %last, label %no
last:
  %wanted = call i64 @with_gradient(ptr %object)
  %before = load i64, ptr %flag
  %now = or i64 %before, %wanted
  store i64 %now, ptr %flag
  %twice = shl i64 %axes, 1
  %count = add i64 %twice, 3
  ret i64 %count
no:
  ret i64 0
}}
"""


def _axes_text() -> str:
    """Shape and strides copied; whether a step along some axis is one element. Where none is, Python looks: the
    imaginary part of a conjugate lies so, and is to be negated."""
    return """
define private i64 @axes(ptr %shape, ptr %strides, ptr %shape.to, ptr %strides.to, i64 %axes) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %found = phi i64 [ 0, %entry ], [ %now, %loop ]
  %extent.at = getelementptr i64, ptr %shape, i64 %i
  %extent = load i64, ptr %extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride.at
  %extent.to = getelementptr i64, ptr %shape.to, i64 %i
  store i64 %extent, ptr %extent.to
  %stride.to = getelementptr i64, ptr %strides.to, i64 %i
  store i64 %stride, ptr %stride.to
  %long = icmp sgt i64 %extent, 1
  %one = icmp eq i64 %stride, 1
  %both = and i1 %long, %one
  %bit = zext i1 %both to i64
  %now = or i64 %found, %bit
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %axes
  br i1 %more, label %loop, label %done
done:
  ret i64 %now
}
"""


def _gradient_text() -> str:
    """1 where a gradient of an object is wanted, else 0."""
    true, name = id(True), _held("requires_grad")
    return f"""
define private i64 @with_gradient(ptr %object) {{
  %wants = call ptr @PyObject_GetAttr(ptr %object, ptr inttoptr (i64 {name} to ptr))
  %lost = icmp eq ptr %wants, null
  br i1 %lost, label %clear, label %told
told:
  call void @Py_DecRef(ptr %wants)
  %true = icmp eq ptr %wants, inttoptr (i64 {true} to ptr)
  br i1 %true, label %mode, label %no
mode:
  %on = call ptr @PyObject_CallNoArgs(ptr inttoptr (i64 {_held(torch.is_grad_enabled)} to ptr))
  %lost.too = icmp eq ptr %on, null
  br i1 %lost.too, label %clear, label %told.too
told.too:
  call void @Py_DecRef(ptr %on)
  %enabled = icmp eq ptr %on, inttoptr (i64 {true} to ptr)
  br i1 %enabled, label %yes, label %no
no:
  ret i64 0
clear:
  call void @PyErr_Clear()
  br label %yes
yes:
  ret i64 1
}}
"""


def _sign_text() -> str:
    """The function itself: classes, M, what torch follows, N, the card, `out`; at the end the bytes."""
    return _operands_text() + _out_text()


def _operands_text() -> str:
    guards = "".join(
        f"guard.at.{i}:\n" + _guard(i, function, usual, f"guard.at.{i + 1}")
        for i, (function, usual) in enumerate(_guards())
    )
    last = len(_guards())
    level = _held("_current_level")
    return f"""
define ptr @sign(ptr %self, ptr %arguments, i64 %count) {{
  %words = alloca [{WORDS} x i64], align 8
  %flag = alloca i64
  store i64 0, ptr %flag
{CALL_READ}  %few = icmp ule i64 %given, {1 + len(VALUES)}
{_plain("M")}{_plain("N")}
  %tensors = and i1 %plain.M, %plain.N
  %ours = and i1 %few, %tensors
  br i1 %ours, label %describe.M, label %slowly
describe.M:
  store i64 %given, ptr %words
  %M.to = getelementptr i64, ptr %words, i64 1
  %M.count = call i64 @described(ptr %M, ptr %M.to, ptr %flag)
  %M.good = icmp ne i64 %M.count, 0
  br i1 %M.good, label %guard.at.0, label %slowly
{guards}
guard.at.{last}:
  %level = call ptr @PyObject_GetAttr(ptr inttoptr (i64 {_held(torch.autograd.forward_ad)} to ptr),
    ptr inttoptr (i64 {level} to ptr))
  %lost.level = icmp eq ptr %level, null
  br i1 %lost.level, label %raised, label %told.level
told.level:
  call void @Py_DecRef(ptr %level)
  %backward = icmp eq ptr %level, inttoptr (i64 {_held(-1)} to ptr)
  br i1 %backward, label %describe.N, label %slowly
describe.N:
  %N.to = getelementptr i64, ptr %M.to, i64 %M.count
  %N.count = call i64 @described(ptr %N, ptr %N.to, ptr %flag)
  %N.good = icmp ne i64 %N.count, 0
  %M.device = load i64, ptr %M.to
  %N.device = load i64, ptr %N.to
  %together = icmp eq i64 %M.device, %N.device
  %both = select i1 %N.good, i1 %together, i1 false
  br i1 %both, label %card, label %slowly
card:
{_card_text()}
bound:
  %P.to = getelementptr i64, ptr %N.to, i64 %N.count
"""


def _out_text() -> str:
    """Without keywords; with some, but no `out`; with `out`. A gradient with keywords is Python's."""
    autocast = _guard(AUTOCAST, torch._C._is_any_autocast_enabled, False, "made")
    autocast_too = _guard(AUTOCAST_TOO, torch._C._is_any_autocast_enabled, False, "made")
    return f"""
  %bare = icmp eq i64 %given, 0
  br i1 %bare, label %short, label %long
short:
  %wanted = load i64, ptr %flag
  %mark = shl i64 %wanted, {MARK}
  store i64 %mark, ptr %words
{autocast}
long:
  %word = call i64 @worded(ptr %keywords, i64 %given)
  store i64 %word, ptr %words
  %known = icmp ne i64 %word, {UNKNOWN}
  %wanted.long = load i64, ptr %flag
  %free = icmp eq i64 %wanted.long, 0
  %by.words = and i1 %known, %free
  br i1 %by.words, label %where, label %slowly
where:
  %P = call ptr @PyDict_GetItem(ptr %keywords, ptr inttoptr (i64 {_held("out")} to ptr))
  %is.out = icmp ne ptr %P, null
  br i1 %is.out, label %into, label %fresh
fresh:
{autocast_too}
into:
{_plain("P")}
  br i1 %plain.P, label %describe.P, label %slowly
describe.P:
  %P.count = call i64 @described(ptr %P, ptr %P.to, ptr %flag)
  %P.good = icmp ne i64 %P.count, 0
  %P.device = load i64, ptr %P.to
  %P.near = icmp eq i64 %M.device, %P.device
  %wanted.now = load i64, ptr %flag
  %free.now = icmp eq i64 %wanted.now, 0
  %P.free = and i1 %P.near, %free.now
  %P.both = select i1 %P.good, i1 %P.free, i1 false
  br i1 %P.both, label %made, label %slowly
made:
  %more = phi i64 [ 0, %told.{AUTOCAST} ], [ 0, %told.{AUTOCAST_TOO} ], [ %P.count, %describe.P ]
  %end = getelementptr i64, ptr %P.to, i64 %more
  %from = ptrtoint ptr %words to i64
  %till = ptrtoint ptr %end to i64
  %bytes = sub i64 %till, %from
  %key = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 %bytes)
  ret ptr %key
slowly:
  %other = call ptr @PyObject_Vectorcall(ptr %self, ptr %arguments, i64 %count, ptr null)
  ret ptr %other
raised:
  ret ptr null
}}
"""


def _card_text() -> str:
    """Where there are several cards, the tensors must be on the one that is current."""
    if torch.cuda.device_count() < 2:
        return "  br label %bound"
    return f"""
  %current = call ptr @PyObject_CallNoArgs(ptr inttoptr (i64 {_held(torch._C._cuda_getDevice)} to ptr))
  %lost.card = icmp eq ptr %current, null
  br i1 %lost.card, label %raised, label %told.card
told.card:
  %number = call i64 @PyLong_AsUnsignedLongLongMask(ptr %current)
  call void @Py_DecRef(ptr %current)
  %theirs = lshr i64 %M.device, 32
  %is.current = icmp eq i64 %theirs, %number
  br i1 %is.current, label %bound, label %slowly
"""
