"""`einsum` over any semiring: pairs of operands, each one product of matrices or of stacks of them.

    shared and kept   → the stack          of the left alone  → rows of M
    shared and summed → k                  of the right alone → columns of N

Axes are permuted as views; a group of labels becomes one axis, which copies only where strides do not allow a view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack, overload

import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.modular import Modular
from tilewise.algebra.names import BooleanName
from tilewise.algebra.semiring import Semiring
from tilewise.api import matmul
from tilewise.arrays import ArrayOf, HostArray, Kind, Number, Other, find_library
from tilewise.arrays.torch_graph import in_graph, whole_in_graph
from tilewise.core.options import AnySemiring, DTypeArg, Numeric
from tilewise.core.reproducible import check_reproducible
from tilewise.dispatch.forms import single_out
from tilewise.errors import UsageError
from tilewise.functions.contraction.elementwise import multiplied, summed, sums_in_numpy
from tilewise.functions.contraction.forms import EinsumDetails, copy_to_out, from_lists, with_keywords
from tilewise.functions.contraction.laws import algebra_over, check_regroups, check_signs, one_over
from tilewise.functions.contraction.plan import Contraction, Pair, contraction_of, is_list_of_pairs, pair_of, path_of
from tilewise.functions.contraction.replay import REPLAYS, Record, signature
from tilewise.functions.contraction.traced import check_not_compiled, is_compiled, name_in_graph, semiring_in_graph
from tilewise.functions.contraction.views import (
    array_of,
    diagonal,
    dtype_of_array,
    filled,
    permuted,
    repeated,
    reshaped,
)


@overload
def einsum(
    subscripts: str, /, *operands: HostArray, semiring: BooleanName, **how: Unpack[EinsumDetails]
) -> ArrayOf[np.bool_]: ...
@overload
def einsum(
    subscripts: str, /, *operands: ArrayOf[Number], semiring: Numeric = ..., **how: Unpack[EinsumDetails]
) -> ArrayOf[Number]: ...
@overload
def einsum(
    subscripts: str, /, *operands: Kind, dtype: None = None, semiring: AnySemiring = ..., **how: Unpack[EinsumDetails]
) -> Kind: ...
@overload
def einsum(
    first: ArrayOf[Number], labels: Sequence[Any], /, *more: ArrayOf[Number] | Sequence[Any], semiring: Numeric = ...,
    **how: Unpack[EinsumDetails],
) -> ArrayOf[Number]: ...  # fmt: skip
@overload
def einsum(
    first: Any,
    /,
    *operands: Any,
    dtype: type[Other] | np.dtype[Other],
    semiring: AnySemiring = ...,
    **how: Unpack[EinsumDetails],
) -> ArrayOf[Other]: ...  # fmt: skip
@overload
def einsum(
    first: Any,
    /,
    *operands: Any,
    dtype: DTypeArg | None = None,
    semiring: AnySemiring = ...,
    **how: Unpack[EinsumDetails],
) -> HostArray: ...
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    semiring: AnySemiring = "plus_times",
    optimize: Any = "auto",
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    reproducible: str | None = None,
) -> Any:
    """Einstein's summation over a semiring: the sum is its add, the product its mul.

    subscripts: "bij,bjk->bik", as in `numpy.einsum`: any number of operands, `...`, repeated labels, the
        output left out. Sizes of 1 are broadcast. Or NumPy's lists of numbers: `einsum(A, [0, 1], B, [1, 2], [0, 2])`.
    operands: arrays of one library, as for `tw.matmul`; gradients follow them through PyTorch and JAX.
    optimize: how pairs are chosen, as in opt_einsum ("auto", "optimal", "greedy", …), or `numpy.einsum_path`'s list.
    out, dtype, order, casting: as in `numpy.einsum`; order= is for NumPy's arrays.
    reproducible: as in `tw.matmul`, for each product; k goes through the labels that are summed in the order of the
        first operand that has them. "batch" of more than two operands needs optimize= to be a list.

    More than two operands, and labels summed within one, need a mul that distributes over add.

    >>> W = np.array([[0, 4, 9], [4, 0, 2], [9, 2, 0.0]])
    >>> tw.einsum("ij,jk->ik", W, W, semiring="min_plus")
    array([[0., 4., 6.],
           [4., 0., 2.],
           [6., 2., 0.]])
    """
    if subscripts.__class__ is not str:
        subscripts, operands = from_lists((subscripts, *operands))
    if not operands:
        raise UsageError(f"einsum of {subscripts!r} was given no operands")
    check_reproducible(reproducible)
    if operands[0].__class__ is not np.ndarray and is_compiled(operands):
        check_not_compiled(reproducible, "einsum")
        name = name_in_graph(semiring)
        made = in_graph("traced_einsum", name, subscripts, optimize, dtype, order, casting, *operands)
        return made if out is None else copy_to_out(made, single_out(out), casting)
    if order.__class__ is not str or casting.__class__ is not str:
        raise UsageError(f"order={order!r} and casting={casting!r} must be names, such as 'K' and 'safe'")
    if out is not None or dtype is not None or order != "K" or casting != "safe":
        plain = partial(einsum, subscripts, semiring=semiring, optimize=optimize, reproducible=reproducible)
        return with_keywords(plain, operands, out, dtype, order, casting)
    key = signature(subscripts, operands, semiring if reproducible is None else (semiring, reproducible), optimize)
    again = REPLAYS.get(key) if key is not None else None
    if again is not None:
        return again(operands)
    return _einsum(find_semiring(semiring), subscripts, optimize, operands, key, reproducible)


@whole_in_graph
def traced_einsum(
    name: str, subscripts: str, optimize: Any, dtype: Any, order: str, casting: str, *operands: Any
) -> Any:
    ring = semiring_in_graph(name)
    return with_keywords(lambda *x: _einsum(ring, subscripts, optimize, x, None), operands, None, dtype, order, casting)


def _einsum(
    ring: Semiring, subscripts: str, optimize: Any, operands: Sequence[Any], key: Any, reproducible: str | None = None
) -> Any:
    """The contraction, recorded under `key` if there is one and no operand's values had to be checked."""
    arrays = [array_of(x, f"operand {number}", sparse=False) for number, x in enumerate(operands, 1)]
    order = path_of(optimize)
    if reproducible == "batch" and len(arrays) > 2 and not is_list_of_pairs(order):
        raise UsageError(
            f"reproducible='batch' of {len(arrays)} operands: optimize={optimize!r} chooses pairs by all extents; pass "
            "a list of pairs, or multiply two operands at a time"
        )
    plan = contraction_of(subscripts, tuple(tuple(map(int, x.shape)) for x in arrays), order)
    job = _Call(ring, arrays, plan.size, Record(arrays), reproducible)
    terms = [job.without_repeats(i, term) for i, term in enumerate(plan.inputs)]
    unconditional = len(arrays) <= 2 and not any(_has_private_label(terms, i, plan.output) for i in range(len(terms)))
    if not unconditional:
        unconditional = job.check_regroups()
    made, term = job.contracted(plan, terms)
    made = job.do(repeated, made, [plan.size[c] for c in term])
    made = job.do(permuted, made, [term.index(c) for c in plan.output])
    if key is not None and unconditional:
        REPLAYS.keep(key, job.record.replay(made))
    return made[()] if made.ndim == 0 and isinstance(made, np.ndarray) else made


def _has_private_label(terms: list[str], number: int, output: str) -> bool:
    """Whether an operand has a label that no other operand nor the output has: it is summed first."""
    others = set(output).union(*terms[:number], *terms[number + 1 :])
    return len(terms) > 1 and not set(terms[number]) <= others


class _Call:
    """The operands of one call, its algebra, and the record of its steps."""

    def __init__(
        self, ring: Semiring, arrays: list[Any], size: dict[str, int], record: Record, reproducible: str | None
    ) -> None:
        self.ring, self.arrays, self.size, self.record, self.do = ring, arrays, size, record, record.do
        self.keywords: dict[str, Any] = {} if is_plus_times(ring) else {"semiring": ring}  # of products
        self.reproducible = reproducible
        if reproducible is not None:
            self.keywords["reproducible"] = reproducible
        kinds = [dtype_of_array(x) for x in arrays]
        dtype = kinds[0]
        for kind in kinds[1:]:
            dtype = find_library(arrays[0]).promote(dtype, kind)
        self.algebra = algebra_over(ring, dtype)

    def check_regroups(self) -> bool:
        """Whether the law holds for all operands; otherwise raise an error if an operand has a value below 0."""
        if is_plus_times(self.ring) or check_regroups(self.ring, self.algebra.partial):
            return True
        check_signs(self.ring, self.arrays, "multiply two operands at a time")
        return False

    def contracted(self, plan: Contraction, terms: list[str]) -> tuple[Any, str]:
        """Run the steps of the plan, one product after the other."""
        waiting = list(zip(self.arrays, terms, strict=True))
        for step in plan.path:
            taken = [waiting.pop(i) for i in sorted(step, reverse=True)][::-1]
            x, term = taken[0]
            for number, (y, other) in enumerate(taken[1:], 2):
                rest = [w for _, w in waiting] + [w for _, w in taken[number:]]
                x, term = self.product(x, term, y, other, set(plan.output).union(*rest))
            if len(taken) == 1:
                x, term = self.reduced(x, term, set(plan.output), alone=True)
            waiting.append((x, term))
        ((made, term),) = waiting
        return made, term

    def without_repeats(self, number: int, term: str) -> str:
        """Replace an operand with repeated labels by its diagonal."""
        for label in dict.fromkeys(term):
            while term.count(label) > 1:
                first, second = term.index(label), term.rindex(label)
                self.arrays[number] = self.do(diagonal, self.arrays[number], first, second)
                term = "".join(c for i, c in enumerate(term) if i not in (first, second)) + label
        return term

    def reduced(self, x: Any, term: str, later: set[str], alone: bool = False) -> tuple[Any, str]:
        """Sum over the labels that no later step needs, by a product with ones. `alone`: x is the only operand, whose
        values become truth values or remainders even if nothing is summed."""
        summed_labels = [c for c in term if c not in later]
        if not summed_labels and not (alone and (self.ring.boolean or isinstance(self.ring, Modular))):
            return x, term
        kept, do = "".join(c for c in term if c in later), self.do
        in_numpy = self.reproducible is None and sums_in_numpy(self.algebra, x)
        if in_numpy and all(self.size[c] == x.shape[term.index(c)] for c in summed_labels):
            return do(summed, x, tuple(term.index(c) for c in summed_labels)), kept
        x = do(permuted, x, [term.index(c) for c in (*kept, *summed_labels)])
        x = do(repeated, x, [*x.shape[: len(kept)], *(self.size[c] for c in summed_labels)])
        sizes = [int(s) for s in x.shape]
        k = math.prod(sizes[len(kept) :])
        rows = do(reshaped, x, (math.prod(sizes[: len(kept)]), k))
        ones = filled(x, (k,), one_over(self.algebra))
        keywords = self.keywords
        made = do(lambda rows: matmul(rows, ones, **keywords), rows)
        return do(reshaped, made, sizes[: len(kept)]), kept

    def product(self, x: Any, left: str, y: Any, right: str, later: set[str]) -> tuple[Any, str]:
        x, left = self.reduced(x, left, later | set(right))
        y, right = self.reduced(y, right, later | set(left))
        pair = pair_of(left, right, later)
        if not pair.summed and self.reproducible is None:  # else a product with k = 1, whose NaN and −0 are defined
            return self._without_sum(x, y, pair)
        batch, inner = pair.batch, self._summed_order(x, y, pair)
        rows = "".join(c for c in pair.kept if c not in right)
        cols = "".join(c for c in pair.kept if c not in left)
        # kernels read each operand of a stack of dot products once, and have the order of sums
        by_kernel = x.__class__ is np.ndarray or self.reproducible is not None
        if batch and not (rows or cols or by_kernel):  # mul cell by cell, then one sum of rows
            made, term = self._without_sum(x, y, pair_of(left, right, later | set(inner)))
            return self.reduced(made, term, later)
        sizes = {c: max(int(x.shape[left.index(c)]), int(y.shape[right.index(c)])) for c in inner}
        M = self._stack(x, left, batch, rows, inner, sizes)
        N = self._stack(y, right, batch, inner, cols, sizes)
        P = self.record.multiply(matmul, M, N, self.keywords)
        shape = [int(s) for s in P.shape[: len(batch)]]
        shape += [int(x.shape[left.index(c)]) for c in rows] + [int(y.shape[right.index(c)]) for c in cols]
        return self.do(reshaped, P, shape), batch + rows + cols

    def _stack(self, x: Any, term: str, batch: str, first: str, second: str, sizes: dict[str, int]) -> Any:
        """x as (batch axes, first group merged, second group merged); `sizes`: of the summed labels."""
        do = self.do
        x = do(permuted, x, [term.index(c) for c in batch + first + second])
        shape = [sizes.get(c, int(s)) for c, s in zip(batch + first + second, x.shape, strict=True)]
        x = do(repeated, x, shape)  # a summed label of size 1 meets a longer one
        at, half = len(batch), len(batch) + len(first)
        return do(reshaped, x, [*shape[:at], math.prod(shape[at:half]), math.prod(shape[half:])])

    def _summed_order(self, x: Any, y: Any, pair: Pair) -> str:
        """The summed labels in the order of the larger operand's strides, so that merging them needs no copy."""
        labels = pair.summed
        if len(labels) == 1 or self.reproducible is not None:
            return labels
        z, term = (x, pair.left) if math.prod(x.shape) >= math.prod(y.shape) else (y, pair.right)
        strides = z.stride() if hasattr(z, "stride") and callable(z.stride) else getattr(z, "strides", None)
        if strides is None:
            return labels
        return "".join(sorted(labels, key=lambda c: -abs(strides[term.index(c)])))

    def _without_sum(self, x: Any, y: Any, pair: Pair) -> tuple[Any, str]:
        """The product of a pair with no summed label: mul, elementwise."""
        term = pair.kept

        def spread(z: Any, own: str) -> Any:
            z = self.do(permuted, z, [own.index(c) for c in term if c in own])
            sizes = iter(z.shape)
            return self.do(reshaped, z, [int(next(sizes)) if c in own else 1 for c in term])

        algebra = self.algebra
        return self.do(lambda a, b: multiplied(algebra, a, b), spread(x, pair.left), spread(y, pair.right)), term
