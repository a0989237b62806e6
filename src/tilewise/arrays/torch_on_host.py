"""Prepared calls of torch tensors in host memory: P is allocated by torch, or is `out`.

A signature has shapes and strides; every call checks that each tensor's storage is still large enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tilewise.arrays.torch_signature import VIEWABLE

# independent of torch's default device and modes; compiled graphs call it
_fresh = torch._C._dynamo.guards._empty_strided_cpu


class OnHostMemory:
    """A product on the CPU of tensors with the layouts it was prepared for."""

    __slots__ = (
        "_at_addresses", "_dtype", "_left", "_left_size", "_ready", "_right", "_right_size", "_shape", "_strides",
        "_written", "tick",
    )  # fmt: skip

    def __init__(self, ready: Any, strides: tuple[int, ...], dtype: torch.dtype, M: Any, N: Any) -> None:
        """`strides` and `dtype`: of P."""
        self._ready, self._shape, self._strides, self._dtype = ready, ready.shape, strides, dtype
        self._at_addresses = ready.at_addresses()
        self._left_size, self._right_size = M.element_size(), N.element_size()
        self._left = reach(M.shape, M.stride(), self._left_size)
        self._right = reach(N.shape, N.stride(), self._right_size)
        self._written: int | None = None  # bytes of P, where one is given

    def first(self, M: Any, N: Any, out: None) -> Any:
        """P in new memory."""
        return self(M, N, None)

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        """P, or None where a storage is smaller than its tensor, or `out` may share it with an operand."""
        if M.storage_offset() * self._left_size + self._left > M.untyped_storage().nbytes():
            return None
        if N.storage_offset() * self._right_size + self._right > N.untyped_storage().nbytes():
            return None
        P = keywords.get("out") if keywords else None
        if P is None:
            P = _fresh(self._shape, self._strides, self._dtype)
        elif not self._takes(P, M, N):
            return None
        if self._at_addresses is not None:
            self._at_addresses(M.data_ptr(), N.data_ptr(), P.data_ptr())
        else:
            self._ready.multiply(_memory(M), _memory(N), _memory(P))
        return P

    def _takes(self, out: Any, M: Any, N: Any) -> bool:
        """Whether `out` has its whole storage and shares no memory with M and N."""
        if self._written is None:
            self._written = reach(self._shape, self._strides, self._dtype.itemsize)
        first = out.data_ptr()
        last = first + self._written
        if not out.is_cpu or out.storage_offset() * out.element_size() + self._written > out.untyped_storage().nbytes():
            return False
        m, n = M.data_ptr(), N.data_ptr()
        return bool((last <= m or m + self._left <= first) and (last <= n or n + self._right <= first))


class OnHostMemoryWithMore:
    """The same with the winning k, an epilogue, or scales, into new memory."""

    __slots__ = ("_at_addresses", "_dtype", "_in_place", "_left", "_more", "_right", "_shape", "_strides", "tick")

    def __init__(self, more: Any, product: Any, M: Any, N: Any) -> None:
        self._at_addresses = more.ready.at_addresses()
        self._more, self._shape, self._dtype = more, tuple(product.shape), product.dtype
        self._strides = product.stride()
        self._left, self._right = _reach(M), _reach(N)
        result = getattr(np, str(product.dtype).removeprefix("torch."), None)  # sums of this dtype may be stored in P
        self._in_place = more.epilogue is None or more.ready.result == result

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        """P, or P and the winning k; None where a storage is smaller than its tensor."""
        if not (_holds(M, self._left) and _holds(N, self._right)) or keywords.get("out") is not None:
            return None
        more, at_addresses = self._more, self._at_addresses
        P = _fresh(self._shape, self._strides, self._dtype)
        if more.arg:
            arg = _fresh(self._shape, self._strides, torch.int64)
            if at_addresses is not None:
                at_addresses(M.data_ptr(), N.data_ptr(), P.data_ptr(), arg.data_ptr())
            else:
                more.ready.run(_memory(M), _memory(N), _memory(P), _memory(arg))
            return P, arg
        given = [_given(x) for x in keywords.get("scales") or (keywords.get("bias"),)]
        if any(x is _given for x in given):
            return None
        p = P.numpy()
        if at_addresses is not None and self._in_place:
            at_addresses(M.data_ptr(), N.data_ptr(), P.data_ptr())
            sums = p
        else:
            sums = more.ready.multiply(_memory(M), _memory(N), p if self._in_place else None)
        if more.epilogue is None:
            scaled = more.scaling(sums, *given)
            if scaled is not sums:
                np.copyto(p, scaled)
        else:
            more.epilogue(sums, given[0], p)
        return P


def prepared_on_host(executable: Any, more: bool, product: Any, M: Any, N: Any) -> Any:
    """The prepared call of a product that ran; `more`: with further steps. None where NumPy cannot view a tensor."""
    if not all(x.dtype in VIEWABLE for x in (M, N, product)):  # 8-bit floats are converted
        return None
    if not more:
        return OnHostMemory(executable, product.stride(), product.dtype, M, N)
    plain = not any(executable.converted) and product.dim() > 1
    bits = torch.bfloat16 in (M.dtype, N.dtype, product.dtype) and not executable.arg  # NumPy has no epilogue for bits
    return OnHostMemoryWithMore(executable, product, M, N) if plain and not bits else None


def _given(x: Any) -> Any:
    """A bias or a scale as a NumPy view; `_given` itself where there is no view."""
    if not isinstance(x, torch.Tensor):
        return x
    seen = x.is_cpu and x.dtype in VIEWABLE and x.dtype is not torch.bfloat16 and _holds(x, _reach(x))
    return _memory(x) if seen else _given


def _holds(x: Any, reach: int) -> bool:
    return bool(x.storage_offset() * x.element_size() + reach <= x.untyped_storage().nbytes())


def _memory(x: Any) -> Any:
    """A tensor's memory as an array of the same layout; bfloat16 as int16."""
    x = x.detach() if x.requires_grad else x
    return x.view(torch.int16).numpy() if x.dtype is torch.bfloat16 else x.numpy()


def _reach(x: Any) -> int:
    return reach(x.shape, x.stride(), x.element_size())


def reach(shape: Sequence[int], strides: Sequence[int], size: int) -> int:
    """Bytes from a tensor's first element to past its last, of `size` bytes each."""
    last = 0
    for extent, stride in zip(shape, strides, strict=True):
        if not extent:
            return 0
        last += (extent - 1) * stride
    return (last + 1) * size
