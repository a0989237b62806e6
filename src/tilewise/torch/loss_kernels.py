"""The kernels of `kernels/cross_entropy` on torch tensors and torch's stream; launchers are cached by their
arguments."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.dtypes import DTYPES
from tilewise.arrays.torch_library import dtype_name
from tilewise.core.recipe import Address, Launch, Recipe

KERNELS = (torch.bfloat16, torch.float16, torch.float32)
BLOCKS = 132 * 8  # of a pointwise kernel


def is_taken(x: Tensor) -> bool:
    """Whether our kernels take a tensor: on a card, in a dtype of KERNELS, not empty."""
    return x.is_cuda and x.dtype in KERNELS and x.numel() > 0


def to_gradients(
    logits: Tensor, target: Tensor, losses: Tensor, ignored: int, wanted: bool, scale: Tensor | None = None
) -> None:
    """Write each row's loss and, if wanted, (softmax − onehot) · scale over the logits (rows on 16 bytes)."""
    if is_taken(logits):
        at = {"M": logits, "N": target.to(torch.int64).contiguous(), "P": losses}
        at |= {} if scale is None else {"scale_m": scale}
        _launch("cross_entropy", logits, (logits.stride(0), logits.shape[1], ignored, wanted), at)
        return
    counted = target != ignored
    safe = torch.where(counted, target, 0)[:, None]
    whole = logits.to(losses.dtype)
    lse = whole.logsumexp(-1)
    losses.copy_(torch.where(counted, lse - whole.gather(1, safe)[:, 0], 0.0))
    if wanted:
        whole = whole.sub_(lse[:, None]) if whole is not logits else whole - lse[:, None]
        whole.exp_().scatter_add_(1, safe, whole.new_full(safe.shape, -1.0))
        logits.copy_(whole.mul_(counted[:, None] if scale is None else counted[:, None] * scale))


def losses_of(logits: Tensor, target: Tensor, losses: Tensor, logsumexp: Tensor, ignored: int) -> None:
    """Write each row's loss and logsumexp, by the kernel."""
    at = {"M": logits, "N": target.to(torch.int64).contiguous(), "P": losses, "bias": logsumexp}
    _launch("cross_entropy_loss", logits, (logits.stride(0), logits.shape[1], ignored), at)


def gradient_of(
    logits: Tensor, target: Tensor, gradient: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int
) -> None:
    """Write (softmax − onehot) · counts into `gradient` (rows on 16 bytes), by the kernel; `counts`: one or per row."""
    scale = counts.to(torch.float32).contiguous()
    at = {"M": logits, "N": target.to(torch.int64).contiguous(), "P": gradient, "bias": logsumexp, "scale_m": scale}
    sizes = logits.stride(0), gradient.stride(0), logits.shape[1], ignored, scale.dim() == 1
    _launch("cross_entropy_gradient", logits, sizes, at)


def scale_in_place(x: Tensor, by: Tensor) -> Tensor:
    """x · by, a number on the card; the kernel returns at once if that is 1, as in `loss.backward()`."""
    if is_taken(x) and x.is_contiguous():
        _launch("scaled", x, (x.numel(),), {"M": x, "scale_m": by.to(torch.float32)})
        return x
    return x.mul_(by)


def rounded(sums: Tensor, dtype: torch.dtype) -> Tensor:
    """Accumulated sums in the dtype of the result."""
    if sums.dtype is dtype:
        return sums
    if sums.dtype is not torch.float32 or not is_taken(sums) or not sums.is_contiguous():
        return sums.to(dtype)
    made = torch.empty(sums.shape, dtype=dtype, device=sums.device)
    _launch("rounded", made, (made.numel(),), {"M": sums, "P": made})
    return made


def _launch(name: str, like: Tensor, sizes: tuple[Any, ...], tensors: dict[str, Tensor]) -> None:
    launcher = _launcher(name, like.dtype, like.shape[0], sizes, tuple(tensors), like.device)
    stream = torch.cuda.current_stream(like.device).cuda_stream
    launcher(stream, **{base: tensor.data_ptr() for base, tensor in tensors.items()})


@lru_cache(maxsize=256)
def _launcher(name: str, dtype: torch.dtype, rows: int, sizes: Any, bases: Any, device: torch.device) -> Any:
    from tilewise.backends.cuda.launcher import Launcher

    return Launcher(recipe_of(name, dtype, rows, sizes, bases), f"cuda:{device.index or 0}")


def recipe_of(name: str, dtype: torch.dtype, rows: int, sizes: Any, bases: Any) -> Recipe:
    """The launch of one kernel; `bases` name the addresses that a call fills in."""
    from tilewise.kernels.cross_entropy.text import MOST_KEPT, THREADS, render_cross_entropy, render_scaled

    kind, wide, whole = DTYPES[dtype_name(dtype)], ctypes.c_longlong, ctypes.c_int
    held = [Address(base) for base in bases]
    if name in ("scaled", "rounded"):
        given = (*held, wide(sizes[0]))
        return Recipe((Launch.of(render_scaled.key(kind), name, (BLOCKS,), (THREADS,), given),))
    text, shared = render_cross_entropy.key(kind), 0
    if name == "cross_entropy":
        stride, columns, ignored, wanted = sizes
        shared = columns * kind.itemsize // 16 * 16 if wanted and columns * kind.itemsize <= MOST_KEPT else 0
        addresses = held if len(held) == 4 else (*held, None)
        given = (*addresses, wide(stride), whole(columns), wide(ignored), whole(wanted), whole(bool(shared)))
    elif name == "cross_entropy_loss":
        stride, columns, ignored = sizes
        given = (*held, wide(stride), whole(columns), wide(ignored))
    else:
        stride, lead, columns, ignored, each = sizes
        given = (*held, wide(stride), wide(lead), whole(columns), wide(ignored), whole(each))
    return Recipe((Launch.of(text, name, (rows,), (THREADS,), given, shared),))
