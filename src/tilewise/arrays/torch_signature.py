"""torch tensors in prepared calls: their signature, addresses, stream, and memory of torch's own allocator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tilewise.arrays.torch_library import followed
from tilewise.options import Key, keywords_key

_C = torch._C
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_strided, _get_device = torch.strided, getattr(_C, "_cuda_getDevice", int)


def signature(M: Any, N: Any, keywords: Any) -> Key | None:
    """Everything about a call but its addresses, of which the bytes past a 16-byte boundary count; None where torch
    follows the call (gradients, tracing, autocast), where tensors are of several cards, or of no card."""
    card = M.get_device()
    if card < 0 or N.__class__ not in _PLAIN or N.get_device() != card or card != _get_device():
        return None
    if followed(M, N, keywords.get("out"), keywords.get("bias")):
        return None
    if M.layout is not _strided or N.layout is not _strided or M.is_complex():
        return None
    key = (
        card,
        (M.data_ptr() & 15) | (N.data_ptr() & 15) << 4,
        M.shape,
        N.shape,
        M.stride(),
        N.stride(),
        M.dtype,
        N.dtype,
    )
    if not keywords:
        return key
    more = keywords_key(keywords, _tensor)
    return None if more is None else key + more


def _tensor(x: Any) -> Key | None:
    """How an out= or a bias= lies; one whose elements lie apart may be copied first, and that copy is gone later."""
    if x.__class__ not in _PLAIN or x.layout is not _strided or (x.dim() == 1 and not x.is_contiguous()):
        return None
    return (x.get_device(), x.shape, x.stride(), x.dtype, x.data_ptr() & 15)


class OnOneCard:
    """One card as torch knows it."""

    def __init__(self, card: int) -> None:
        self._card = card
        raw_stream, alloc = _C._cuda_getCurrentRawStream, _C._cuda_cudaCachingAllocator_raw_alloc
        self.stream: Callable[[], int] = lambda: raw_stream(card)
        self.address: Callable[[Any], int] = torch.Tensor.data_ptr
        self.take: Callable[[int, int], int] = alloc
        self.pointer: Callable[[int], int] = int
        self.give_back: Callable[[int], None] = _C._cuda_cudaCachingAllocator_raw_delete

    def empty_like(self, product: Any) -> Callable[[], Any]:
        """Fresh memory for such a product."""
        shape, dtype, device, empty = tuple(product.shape), product.dtype, product.device, torch.empty
        return lambda: empty(shape, dtype=dtype, device=device)
