"""Repeated einsums of NumPy arrays: the first call records its views and products, later ones replay them.

A record is kept by subscripts, keywords, shapes, strides and dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LIMIT = 4096  # calls that are kept
Step = tuple[Callable[..., Any], tuple[int, ...], tuple[Any, ...]]  # what is done, to which arrays, with what else


def signature(subscripts: Any, operands: Sequence[Any], semiring: Any, optimize: Any) -> Any:
    """Everything about a call but its addresses; None where an operand is not NumPy's, or a keyword has no hash."""
    key = [subscripts, semiring, optimize]
    for x in operands:
        if x.__class__ is not np.ndarray:
            return None
        key += (x.shape, x.strides, x.dtype)
    made = tuple(key)
    try:
        hash(made)
    except TypeError:
        return None
    return made


class Record:
    """The steps of a call, recorded as they run; arrays are named by number."""

    def __init__(self, operands: Sequence[Any]) -> None:
        self._known = {id(x): number for number, x in enumerate(operands)}
        self._held = list(operands)  # an id is its owner's for as long as that lives
        self._steps: list[Step] = []

    def do(self, function: Callable[..., Any], *values: Any) -> Any:
        """Call it; arrays that are known come first."""
        made = function(*values)
        arrays = [v for v in values if id(v) in self._known]
        if made is not values[0]:  # a view of all of it is the array itself
            self._steps.append((function, tuple(self._known[id(v)] for v in arrays), values[len(arrays) :]))
            self._known[id(made)] = len(self._held)
            self._held.append(made)
        return made

    def replay(self, result: Any) -> Callable[[Sequence[Any]], Any]:
        steps, last = tuple(self._steps), self._known[id(result)]

        def again(operands: Sequence[Any]) -> Any:
            arrays = list(operands)
            for function, numbers, more in steps:
                arrays.append(function(*[arrays[i] for i in numbers], *more))
            made = arrays[last]
            return made[()] if made.ndim == 0 else made

        return again


class Replays(dict[Any, Callable[[Sequence[Any]], Any]]):
    """By signature; where there are too many, all go."""

    def keep(self, key: Any, call: Callable[[Sequence[Any]], Any]) -> None:
        if len(self) >= LIMIT:
            self.clear()
        self[key] = call


REPLAYS = Replays()
