"""torch tensors in prepared calls: their signature, addresses, stream, and memory of torch's own allocator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tilewise.arrays.torch_library import is_watched
from tilewise.core.options import UNPREPARED_ON_HOST, Key, keywords_key

_C = torch._C
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_is_compiling, _grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
_any_autocast = _C._is_any_autocast_enabled
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_COMPLEX = (torch.complex64, torch.complex128)
VIEWABLE = frozenset((*_FLOATS, *_INTEGERS, *_COMPLEX, torch.bool))  # dtypes that NumPy can view, bfloat16 by its bits
GRADIENT = "gradient"  # first in the signature of a call that needs a gradient
_strided, _get_device = torch.strided, getattr(_C, "_cuda_getDevice", int)
_modes, _transforms = _C._len_torch_dispatch_stack, _C._are_functorch_transforms_active
_tracing, _forward, _forward_enabled = _C._get_tracing_state, torch.autograd.forward_ad, _C._is_fwd_grad_enabled


def signature(M: Any, N: Any, keywords: Any) -> Key | None:
    """Everything about a call but its addresses, of which only the value modulo 16 counts; marked if a gradient is
    needed; None where torch records the call (tracing, autocast), or where tensors are on several devices."""
    if _is_compiling():  # first: a compiler traces what follows
        return None
    card = M.get_device()
    if card < 0:
        return _on_the_host(M, N, keywords)
    if N.__class__ not in _PLAIN or N.get_device() != card or card != _get_device():
        return None
    if _modes() or _transforms() or _tracing() is not None or (_forward._current_level >= 0 and _forward_enabled()):
        return None  # `is_watched`, unrolled
    if M.layout is not _strided or N.layout is not _strided or _lazy(M) or _lazy(N):
        return None
    offsets = (M.data_ptr() & 15) | (N.data_ptr() & 15) << 4
    key = (card, offsets, M.shape, N.shape, M.stride(), N.stride(), M.dtype, N.dtype)
    if (M.requires_grad or N.requires_grad) and _grad_enabled():
        return None if keywords or _any_autocast() else (GRADIENT, *key)
    out = keywords.get("out") if keywords else None
    if out is None and _any_autocast():
        return None
    if not keywords:
        return key
    if out is not None and len(keywords) == 1:  # the usual case, inlined
        if out.__class__ not in _PLAIN or out.layout is not _strided or out.requires_grad or _lazy(out):
            return None
        return (*key, out.get_device(), out.data_ptr() & 15, out.shape, out.stride(), out.dtype)
    more = keywords_key(keywords, _tensor)
    return None if more is None else (*key, *more)


def _lazy(x: Any) -> bool:
    """Whether a tensor's memory is to be negated or conjugated when it is read."""
    return bool(x.is_neg() or x.is_conj())


def _on_the_host(M: Any, N: Any, keywords: Any) -> Key | None:
    """The same for tensors in the host's memory that NumPy can view."""
    if N.__class__ not in _PLAIN or not (M.is_cpu and N.is_cpu) or is_watched() or _any_autocast():
        return None
    if M.layout is not _strided or N.layout is not _strided or M.dtype not in VIEWABLE or N.dtype not in VIEWABLE:
        return None
    if _lazy(M) or _lazy(N) or M.is_nested or N.is_nested:  # nested: many shapes
        return None
    key = ("host", M.shape, N.shape, M.stride(), N.stride(), M.dtype, N.dtype)
    if (M.requires_grad or N.requires_grad) and _grad_enabled():
        if not keywords:
            return (GRADIENT, *key)
        ring = keywords.get("semiring") if len(keywords) == 1 else None
        return None if ring is None or ring.__hash__ is None else (GRADIENT, *key, ring)
    if not keywords:
        return key
    more = keywords_key(keywords, _tensor, UNPREPARED_ON_HOST)
    return None if more is None else (*key, *more)


def _tensor(x: Any) -> Key | None:
    """The layout of out=, bias= or a scale; None for a strided vector, which may be copied first into memory that is
    freed after the call."""
    if x.__class__ not in _PLAIN or x.layout is not _strided or x.requires_grad or _lazy(x):
        return None
    if x.dim() == 1 and not x.is_contiguous():
        return None
    return (x.get_device(), x.shape, x.stride(), x.dtype, x.data_ptr() & 15)


class TorchCard:
    """Streams and memory of one card, by torch."""

    def __init__(self, card: int) -> None:
        raw_stream, alloc = _C._cuda_getCurrentRawStream, _C._cuda_cudaCachingAllocator_raw_alloc
        self.stream: Callable[[], int] = partial(raw_stream, card)
        self.address: Callable[[Any], int] = torch.Tensor.data_ptr
        self.take: Callable[[int, int], int] = alloc
        self.pointer: Callable[[int], int] = int
        self.give_back: Callable[[int], None] = _C._cuda_cudaCachingAllocator_raw_delete

    def empty_like(self, product: Any) -> Callable[[], Any]:
        """A function that allocates memory for such a product on the current card, which is this one."""
        shape, strides, dtype = tuple(product.shape), product.stride(), product.dtype
        empty = _C._dynamo.guards._empty_strided_cuda  # called by compiled graphs
        return lambda: empty(shape, strides, dtype)

    def holds(self, like: Any) -> None:
        """None: torch makes tensors within their storage. Sharded models empty storages later; those have no address,
        which a call checks. Reading a storage's size each time would cost a tenth of a call."""
