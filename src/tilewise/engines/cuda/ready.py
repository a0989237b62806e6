"""A plan on the card made ready: for each triple of addresses the launches are laid out once and then only queued.

This is the short way for torch tensors whose shapes, strides and dtypes have been seen before; the long way through
`Problem` and `Plan` costs more than a small product.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilewise.arrays.operand import Operand
from tilewise.engines.cuda.launch import prepare
from tilewise.plans import Plan

LIMIT = 256  # triples of addresses that are remembered

# What has been queued before, by everything that matters of a call with `out=`: then it is only queued again. Addresses
# are part of it, so what lies where, and that P lies apart from M and N, is known too.
_queued: dict[tuple[Any, ...], Callable[[], None]] = {}


def call_key(M: Any, N: Any, out: Any, *how: Any) -> tuple[Any, ...] | None:
    """What a call that writes into a torch tensor is known by; None where the shortest way is not taken."""
    torch = sys.modules["torch"]
    if not (M.__class__ is N.__class__ is out.__class__ is torch.Tensor):
        return None
    if (M.requires_grad or N.requires_grad or out.requires_grad) and torch.is_grad_enabled():
        return None
    card = M.get_device()
    if card < 0:
        return None
    return (
        torch._C._cuda_getCurrentRawStream(card),
        *(M.data_ptr(), N.data_ptr(), out.data_ptr()),
        *(M.shape, N.shape, out.shape),
        *(M.stride(), N.stride(), out.stride()),
        *(M.dtype, N.dtype, out.dtype),
        *how,
    )


def queue_again(key: tuple[Any, ...]) -> bool:
    """Whether the call was known, and has been queued."""
    queue = _queued.get(key)
    if queue is None:
        return False
    queue()
    return True


def remember_queue(key: tuple[Any, ...], queue: Callable[[], None]) -> None:
    """From now on a call known by `key` is only queued."""
    if len(_queued) >= LIMIT:
        _queued.clear()
    _queued[key] = queue


def tensor_key(M: Any, N: Any, out: Any) -> tuple[Any, ...] | None:
    """What a call on torch tensors of a card is known by; None where the short way is not taken."""
    torch = sys.modules["torch"]
    if type(M) is not torch.Tensor or type(N) is not torch.Tensor or not M.is_cuda:
        return None
    if (M.requires_grad or N.requires_grad) and torch.is_grad_enabled():
        return None
    if M.is_conj() or N.is_conj() or M.layout is not torch.strided:
        return None
    key = (M.shape, N.shape, M.stride(), N.stride(), M.dtype, N.dtype, M.device, N.device)
    aligned = (M.data_ptr() | N.data_ptr()) & 15
    if out is None:
        return (*key, aligned)
    if type(out) is not torch.Tensor or out.requires_grad:
        return None
    return (*key, aligned | (out.data_ptr() & 15) << 4, out.shape, out.stride(), out.dtype, out.device)


class Ready:
    """A product of such tensors. `multiply` takes them and, if there is one, the tensor to write."""

    def __init__(self, plan: Plan, call: Any, target: Operand) -> None:
        self._plan, self._device, self._library = plan, call.device, call.library
        self._shape, self._dtype = call.shape.product, target.array.dtype
        self._torch_device = target.array.device
        self._extents = [
            (low - x.pointer, high - x.pointer) for x in (call.M, call.N, target) for low, high in (x.extent,)
        ]
        self._queues: dict[tuple[int, int, int, int], Callable[[], None]] = {}

    def takes(self, out: Any, M: Any, N: Any) -> bool:
        """Whether `out`, of the right shape and dtype by its key, lies apart from M and N."""
        (low_m, high_m), (low_n, high_n), (low, high) = self._extents
        m, n, p = M.data_ptr(), N.data_ptr(), out.data_ptr()
        apart_m = p + high <= m + low_m or m + high_m <= p + low
        return bool(apart_m and (p + high <= n + low_n or n + high_n <= p + low))

    def multiply(self, M: Any, N: Any, out: Any = None, key: tuple[Any, ...] | None = None) -> Any:
        """`key`: under what the call will be known from now on, if it may."""
        torch = sys.modules["torch"]
        P = torch.empty(self._shape, dtype=self._dtype, device=self._torch_device) if out is None else out
        stream = self._library.stream(self._device)
        addresses = (M.data_ptr(), N.data_ptr(), P.data_ptr(), stream)
        queue = self._queues.get(addresses)
        if queue is None:
            from cuda.core import Stream

            if len(self._queues) >= LIMIT:
                self._queues.clear()
            queue = prepare(self._plan, *addresses[:3], self._device, Stream.from_handle(stream))
            self._queues[addresses] = queue
        if key is not None:
            remember_queue(key, queue)
        queue()
        return P
