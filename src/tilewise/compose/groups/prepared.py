"""Prepared calls over groups and rows by signature, for torch tensors on a card."""

from __future__ import annotations

from typing import Any

from tilewise.core.options import Key
from tilewise.dispatch.prepared import PREPARED, tick
from tilewise.system.imported import imported

Places = dict[str, Any]  # tensors by the recipe's names of their addresses; None: no such operand


def signature(x: Any, w: Any, offsets: Any, out: Any, how: tuple[Any, ...]) -> Key | None:
    """Everything about a product of groups but its addresses; None if autograd records it, or for other arrays.
    `how`: the keywords' values."""
    key = _tensors(x, w, offsets, {} if out is None else {"out": out})
    if key is None or offsets.get_device() != x.get_device():
        return None
    return ("groups", *key, offsets.shape, offsets.stride(), offsets.dtype, *how)


def rows_signature(what: str, x: Any, rows: Any, weights: Any, count: int = 0) -> Key | None:
    """The signature of a call over rows by an index."""
    key = _tensors(x, rows, rows, {})
    if key is None or weights is None:
        return None if key is None else (what, *key, count)
    if weights.__class__ is not rows.__class__ or weights.get_device() != x.get_device() or weights.is_neg():
        return None
    if weights.requires_grad and imported("torch").is_grad_enabled():
        return None
    return (what, *key, count, weights.shape, weights.stride(), weights.dtype)


def _tensors(x: Any, other: Any, index: Any, keywords: dict[str, Any]) -> Key | None:
    """The signature of two tensors on a card; None if a gradient is required."""
    torch = imported("torch")
    if torch is None or not isinstance(x, torch.Tensor) or not x.is_cuda or index.__class__ is not torch.Tensor:
        return None
    if torch.is_grad_enabled() and (x.requires_grad or getattr(other, "requires_grad", False)):
        return None
    from tilewise.arrays.torch_signature import signature as of_torch

    return of_torch(x, other, keywords)


class GroupsOnCard:
    """A launch on tensors with the layout of those it was prepared for."""

    __slots__ = ("_empty", "_launcher", "_library", "tick")

    def __init__(self, launcher: Any, product: Any) -> None:
        from tilewise.arrays.torch_signature import TorchCard

        self._launcher, self._library = launcher, TorchCard(product.get_device())
        self._empty = self._library.empty_like(product)

    def __call__(self, places: Places, out: Any) -> Any:
        """P, or None where `out` shares memory with an operand."""
        P, library, stream = self._empty() if out is None else out, self._library, self._library.stream()
        held = library.take(self._launcher.scratch_bytes, stream) if self._launcher.scratch_bytes else 0
        try:
            addresses = {name: 0 if x is None else x.data_ptr() for name, x in places.items()}
            return P if self._launcher(stream, scratch=held, P=P.data_ptr(), **addresses) else None
        finally:
            if held:
                library.give_back(held)


def prepared(key: Key | None, places: Places, out: Any = None) -> Any:
    """P by the prepared call of this signature, or None if there is none."""
    call = None if key is None else PREPARED.get(key)
    if call is None:
        return None
    call.tick = tick()
    return call(places, out)


def keep(key: Key | None, launcher: Any, product: Any) -> None:
    if key is not None:
        PREPARED.keep(key, GroupsOnCard(launcher, product))
