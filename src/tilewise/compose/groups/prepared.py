"""Calls over groups and rows that were made before: by signature, for torch tensors on a card, so that the host pays
little."""

from __future__ import annotations

from typing import Any

from tilewise.core.options import Key
from tilewise.dispatch.prepared import PREPARED, tick
from tilewise.system.imported import imported


def signature(x: Any, w: Any, offsets: Any, out: Any, how: tuple[Any, ...]) -> Key | None:
    """Everything about a call but its addresses; None where torch follows it, or for other arrays. `how`: keywords."""
    torch = imported("torch")
    if torch is None or not isinstance(x, torch.Tensor) or not x.is_cuda or offsets.__class__ is not torch.Tensor:
        return None
    from tilewise.arrays.torch_signature import signature as of_torch

    key = of_torch(x, w, {} if out is None else {"out": out})
    if key is None or offsets.get_device() != x.get_device():
        return None
    return ("groups", *key, offsets.shape, offsets.stride(), offsets.dtype, *how)


def gradient_wanted(x: Any, other: Any) -> bool:
    """Whether torch follows a call for its gradient: then no call of these was prepared."""
    torch = imported("torch")
    if torch is None or not isinstance(x, torch.Tensor) or not torch.is_grad_enabled():
        return False
    return bool(x.requires_grad or getattr(other, "requires_grad", False))


class OnCard:
    """A product of groups of tensors that lie as those it was prepared for."""

    __slots__ = ("_empty", "_launcher", "_library", "tick")

    def __init__(self, launcher: Any, product: Any) -> None:
        from tilewise.arrays.torch_signature import TorchCard

        self._launcher, self._library = launcher, TorchCard(product.get_device())
        self._empty = self._library.empty_like(product)

    def __call__(self, x: Any, w: Any, offsets: Any, out: Any) -> Any:
        """P, or None where `out` shares memory with x or w."""
        P, library, stream = self._empty() if out is None else out, self._library, self._library.stream()
        held = library.take(self._launcher.scratch_bytes, stream) if self._launcher.scratch_bytes else 0
        try:
            places = {"M": x, "N": w, "P": P, "offsets": offsets}
            addresses = {name: tensor.data_ptr() for name, tensor in places.items()}
            return P if self._launcher(stream, scratch=held, **addresses) else None
        finally:
            if held:
                library.give_back(held)


class RowsOnCard:
    """Rows gathered or added up by an index, of tensors that lie as those it was prepared for."""

    __slots__ = ("_empty", "_launcher", "_library", "tick")

    def __init__(self, launcher: Any, product: Any) -> None:
        from tilewise.arrays.torch_signature import TorchCard

        self._launcher, self._library = launcher, TorchCard(product.get_device())
        self._empty = self._library.empty_like(product)

    def __call__(self, x: Any, rows: Any, weights: Any) -> Any:
        P, library, stream = self._empty(), self._library, self._library.stream()
        held = library.take(self._launcher.scratch_bytes, stream) if self._launcher.scratch_bytes else 0
        try:
            at = 0 if weights is None else weights.data_ptr()
            addresses = {"M": x.data_ptr(), "P": P.data_ptr(), "offsets": rows.data_ptr(), "scale_m": at}
            self._launcher(stream, scratch=held, **addresses)
        finally:
            if held:
                library.give_back(held)
        return P


def rows_signature(what: str, x: Any, rows: Any, weights: Any, count: int = 0) -> Key | None:
    """Everything about a call over rows but its addresses, as `signature` has it."""
    torch = imported("torch")
    if torch is None or not isinstance(x, torch.Tensor) or not x.is_cuda or rows.__class__ is not torch.Tensor:
        return None
    from tilewise.arrays.torch_signature import signature as of_torch

    key = of_torch(x, rows, {})
    if key is None or weights is None:
        return None if key is None else (what, *key, count)
    if weights.__class__ is not torch.Tensor or weights.get_device() != x.get_device() or weights.is_neg():
        return None
    if weights.requires_grad and torch.is_grad_enabled():
        return None
    return (what, *key, count, weights.shape, weights.stride(), weights.dtype)


def rows_prepared(key: Key | None, x: Any, rows: Any, weights: Any) -> Any:
    """What a call that was made before makes of these, or None."""
    call = None if key is None else PREPARED.get(key)
    if call is None:
        return None
    call.tick = tick()
    return call(x, rows, weights)


def keep_rows(key: Key | None, launcher: Any, product: Any) -> None:
    if key is not None:
        PREPARED.keep(key, RowsOnCard(launcher, product))


def prepared(key: Key | None, x: Any, w: Any, offsets: Any, out: Any) -> Any:
    """P by a call that was made before, or None."""
    call = None if key is None else PREPARED.get(key)
    if call is None:
        return None
    call.tick = tick()
    return call(x, w, offsets, out)


def keep(key: Key | None, launcher: Any, product: Any) -> None:
    if key is not None:
        PREPARED.keep(key, OnCard(launcher, product))
