"""`torch.einsum` of two tensors as one product of matrices, or of stacks of them, routed like other products.

shared and kept → the stack · shared and summed → k · of the left only → rows · of the right only → columns
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from tilewise.torch.choice import Account
from tilewise.torch.routed import routed_matmul


def routed_einsum(account: Account, equation: Any, operands: tuple[Any, ...]) -> Any:
    """The contraction, or None if torch should compute it."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    groups = _groups(equation, operands)
    if groups is None:
        return None
    left, right, output, (stack, rows, inner, cols) = groups
    M, N = operands
    size = {**dict(zip(left, M.shape, strict=True)), **dict(zip(right, N.shape, strict=True))}

    def matrix(x: Tensor, labels: str, first: str, second: str) -> Tensor:
        permuted = x.permute([labels.index(c) for c in stack + first + second])
        ends = (math.prod(size[c] for c in first), math.prod(size[c] for c in second))
        members = (math.prod(size[c] for c in stack),) if stack else ()
        return permuted.reshape(*members, *ends)

    made = routed_matmul(account, matrix(M, left, rows, inner), matrix(N, right, inner, cols), "einsum")
    if made is None:
        return None
    labels = stack + rows + cols
    return made.reshape([size[c] for c in labels]).permute([labels.index(c) for c in output])


def _groups(equation: Any, operands: tuple[Any, ...]) -> tuple[str, str, str, tuple[str, ...]] | None:
    """The labels of both operands and of the result, and grouped by role; None if it is not a single product."""
    if not isinstance(equation, str) or len(operands) != 2 or not all(isinstance(x, Tensor) for x in operands):
        return None
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    left, comma, right = inputs.partition(",")
    terms = (left, right, output)
    if not arrow or not comma or any(not w.isalpha() or len(set(w)) != len(w) for w in terms if w):
        return None
    if any(len(w) != x.dim() for w, x in zip(terms, operands, strict=False)):
        return None
    shared = [c for c in left if c in right]
    stack = "".join(c for c in shared if c in output)
    inner = "".join(c for c in shared if c not in output)
    rows = "".join(c for c in left if c not in right)
    cols = "".join(c for c in right if c not in left)
    same = all(operands[0].shape[left.index(c)] == operands[1].shape[right.index(c)] for c in shared)
    if not same or set(output) != set(stack + rows + cols) or not inner:
        return None
    return left, right, output, (stack, rows, inner, cols)
