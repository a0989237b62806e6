"""Repeated einsums of NumPy arrays and tensors: the first call records its views and products, later ones replay them.

The cache key is subscripts, keywords, shapes, strides, dtypes and devices. If the call is one product of views of two
operands, its prepared call has the views' strides and runs on the operands themselves, without making the views again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tilewise.arrays.address import address
from tilewise.arrays.extent import held
from tilewise.backends.cpu.runtime import pool
from tilewise.dispatch.prepared import PREPARED, SIGNATURES, OnHost
from tilewise.system.imported import imported

LIMIT = 4096  # cached calls
NO_KEYWORDS: dict[str, Any] = {}
Step = tuple[Callable[..., Any], tuple[int, ...], tuple[Any, ...]]  # a function, numbers of arrays, other arguments


def signature(subscripts: Any, operands: Sequence[Any], semiring: Any, optimize: Any) -> Any:
    """Everything about a call but its addresses; None for other classes, and where a keyword has no hash."""
    key = [subscripts, semiring, optimize]
    for x in operands:
        if x.__class__ is np.ndarray:
            key += (x.shape, x.strides, x.dtype)
            continue
        torch = imported("torch")
        if torch is None or x.__class__ not in (torch.Tensor, torch.nn.Parameter) or x.layout is not torch.strided:
            return None
        key += (x.shape, x.stride(), x.dtype, x.device)
    made = tuple(key)
    try:
        hash(made)
    except TypeError:
        return None
    return made


class Record:
    """The steps of a call, recorded as they run; arrays are numbered."""

    def __init__(self, operands: Sequence[Any]) -> None:
        self._known = {id(x): number for number, x in enumerate(operands)}
        self._held = list(operands)  # kept alive, so that their ids stay unique
        self._steps: list[Step] = []
        self._operands = tuple(operands)
        self._products: list[tuple[Any, Any, Any, Any]] = []  # M, N, the signature of their product, and P

    def do(self, function: Callable[..., Any], *values: Any) -> Any:
        """Call a function and record the call; recorded arrays are its first arguments."""
        made = function(*values)
        arrays = [v for v in values if id(v) in self._known]
        if made is not values[0]:  # an identity step is not recorded
            self._steps.append((function, tuple(self._known[id(v)] for v in arrays), values[len(arrays) :]))
            self._known[id(made)] = len(self._held)
            self._held.append(made)
        return made

    def multiply(self, matmul: Callable[..., Any], M: Any, N: Any, keywords: dict[str, Any]) -> Any:
        """`do` for a product."""
        P = self.do(partial(matmul, **keywords) if keywords else matmul, M, N)
        sign = SIGNATURES.get(M.__class__) if M.__class__ is np.ndarray else None
        self._products.append((M, N, None if sign is None else sign(M, N, keywords), P))
        return P

    def _in_place(self, result: Any) -> OnHost | None:
        """The prepared product on the operands' own memory, into a result of the final shape; None if a step copies, or
        if there are more products."""
        if len(self._products) != 1 or len(self._operands) != 2:
            return None
        M, N, key, P = self._products[0]
        prepared = PREPARED.get(key)
        if prepared.__class__ is not OnHost or not (result.flags.c_contiguous and result.size == P.size):
            return None
        pairs = zip((*self._operands, P), (M, N, result), strict=True)
        return prepared.into(result.shape) if all(address(x) == address(y) for x, y in pairs) else None

    def replay(self, result: Any) -> Callable[[Sequence[Any]], Any]:
        steps, last = tuple(self._steps), self._known[id(result)]
        in_place = self._in_place(result)

        def again(operands: Sequence[Any]) -> Any:
            if in_place is not None:
                x, y = operands
                if (x.base is None or held(x, "M")) and (y.base is None or held(y, "N")):
                    return in_place(x, y, NO_KEYWORDS)
            arrays = list(operands)
            for function, numbers, more in steps:
                arrays.append(function(*[arrays[i] for i in numbers], *more))
            made = arrays[last]
            return made[()] if made.ndim == 0 and made.__class__ is np.ndarray else made

        return again


class Replays(dict[Any, Callable[[Sequence[Any]], Any]]):
    """Calls by signature; a full cache is cleared."""

    def keep(self, key: Any, call: Callable[[Sequence[Any]], Any]) -> None:
        if len(self) >= LIMIT:
            self.clear()
        self[key] = call


REPLAYS = Replays()
pool.on_resize.append(REPLAYS.clear)  # jobs are cut for a number of threads
