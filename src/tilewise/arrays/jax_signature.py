"""JAX arrays on the CPU in prepared calls, outside of jit: their signature, and products of their memory in place."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from tilewise.core.options import Key, keywords_key


def signature(M: Any, N: Any, keywords: Any) -> Key | None:
    """Everything about a call but its addresses; None where an array is on another device, or on several."""
    if N.__class__ is not M.__class__ or not (_on_one_cpu(M) and _on_one_cpu(N)):
        return None
    more = keywords_key(keywords, lambda _: None) if keywords else ()
    return None if more is None else ("jax", M.shape, N.shape, M.dtype, N.dtype, jax.config.jax_enable_x64, *more)


def _on_one_cpu(x: Any) -> bool:
    return bool(x.platform() == "cpu" and x.is_fully_addressable and len(x.sharding.device_set) == 1)


class OnJaxsHost:
    """A product of such arrays: JAX's memory is read in place, and P becomes a JAX array."""

    __slots__ = ("_multiply", "tick")

    def __init__(self, ready: Any) -> None:
        self._multiply = ready.multiply

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        return jax.numpy.asarray(self._multiply(np.asarray(M), np.asarray(N)))
