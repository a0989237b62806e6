"""The plan of an einsum, from its subscripts and shapes alone: labels, sizes, and the order of the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import Any

from tilewise.errors import ShapeError, UsageError
from tilewise.system.quantities import counted


@dataclass(frozen=True)
class Pair:
    """One product of two operands: the labels of each, and those that are kept."""

    left: str
    right: str
    kept: str  # labels of the result, in its order: shared, of the left only, of the right only

    @property
    def batch(self) -> str:
        return "".join(c for c in self.left if c in self.right and c in self.kept)

    @property
    def summed(self) -> str:
        return "".join(c for c in self.left if c in self.right and c not in self.kept)


@dataclass(frozen=True)
class Contraction:
    """inputs → output over labels; a step of `path` removes operands by position and appends their product."""

    inputs: tuple[str, ...]
    output: str
    sizes: tuple[tuple[str, int], ...]
    path: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> dict[str, int]:
        return dict(self.sizes)


def path_of(optimize: Any) -> Any:
    """optimize= as a hashable value; NumPy's lists begin with "einsum_path", its (name, memory limit) pairs do not."""
    if not isinstance(optimize, (list, tuple)) or (len(optimize) == 2 and isinstance(optimize[0], str)
                                                   and optimize[0] != "einsum_path"):  # fmt: skip
        if not isinstance(optimize, str | bool | int | list | tuple):
            raise UsageError(f"optimize={optimize!r} must be a name, True, False or what numpy.einsum_path returns")
        return tuple(optimize) if isinstance(optimize, list) else optimize
    steps = optimize[1:] if optimize and optimize[0] == "einsum_path" else optimize
    try:
        return tuple(tuple(index(i) for i in step) for step in steps)
    except TypeError:
        raise UsageError(
            f"optimize={optimize!r} must be a name, or a list of pairs of positions as numpy.einsum_path gives it"
        ) from None


def is_list_of_pairs(order: Any) -> bool:
    """Whether a value of `path_of` says which operands meet, whatever their extents."""
    return isinstance(order, tuple) and all(isinstance(step, tuple) for step in order)


@lru_cache(maxsize=1024)
def contraction_of(subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> Contraction:
    """The order is opt_einsum's: the fewest steps it finds."""
    import opt_einsum

    _check_subscripts(subscripts, len(shapes))
    try:
        inputs, output, _ = opt_einsum.parser.parse_einsum_input((subscripts, *shapes), shapes=True)
    except (ValueError, IndexError) as error:
        raise UsageError(f"einsum cannot read {subscripts!r}: {error}") from None
    terms = tuple(inputs.split(","))
    sizes = _sizes(subscripts, terms, output, shapes)
    if len(terms) == 1:
        return Contraction(terms, output, sizes, ((0,),))
    whole = [tuple(dict(sizes)[label] for label in term) for term in terms]
    if isinstance(optimize, tuple) and not (optimize and isinstance(optimize[0], str)):
        _check_path(optimize, len(terms))
    limited = isinstance(optimize, tuple) and len(optimize) == 2 and isinstance(optimize[0], str)
    how = dict(zip(("optimize", "memory_limit"), optimize, strict=True)) if limited else {"optimize": optimize}
    try:
        path, _ = opt_einsum.contract_path(f"{inputs}->{output}", *whole, shapes=True, **how)
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise UsageError(f"optimize={optimize!r} chooses no order of pairs: {error.args[0]}") from None
    return Contraction(terms, output, sizes, tuple(tuple(step) for step in path))


def _check_path(path: tuple[tuple[int, ...], ...], left: int) -> None:
    """Check the caller's steps; `left`: operands before the first."""
    for step in path:
        if not step or len(set(step)) < len(step) or not all(0 <= i < left for i in step):
            raise UsageError(f"optimize={path!r}: the step {step} must be distinct positions of {left} operands")
        left -= len(step) - 1
    if left != 1:
        raise UsageError(f"optimize={path!r} leaves {left} operands: the last step must leave one")


def _check_subscripts(subscripts: str, count: int) -> None:
    if not isinstance(subscripts, str):
        raise UsageError(f"einsum's first argument is its subscripts, say 'ij,jk->ik', not {type(subscripts).__name__}")
    terms = subscripts.partition("->")[0].split(",")
    if len(terms) != count:
        raise UsageError(f"{subscripts!r} names {len(terms)} operands and {count} were given")


def _sizes(
    subscripts: str, terms: Sequence[str], output: str, shapes: tuple[tuple[int, ...], ...]
) -> tuple[tuple[str, int], ...]:
    sizes: dict[str, int] = {}
    where: dict[str, int] = {}
    for number, (term, shape) in enumerate(zip(terms, shapes, strict=True), 1):
        if len(term) != len(shape):
            raise ShapeError(
                f"{subscripts!r}: operand {number} has {counted(len(shape), 'axis', 'axes')}, "
                f"and {term!r} names {len(term)}"
            )
        for label, size in zip(term, shape, strict=True):
            known = sizes.get(label, 1)
            if known != size and 1 not in (known, size):
                raise ShapeError(
                    f"{subscripts!r}: {label!r} is {known} in operand {where[label]} and {size} in operand {number}"
                )
            if label not in sizes or known == 1:
                sizes[label], where[label] = size, number
    for label in output:
        if label not in sizes:
            raise UsageError(f"{subscripts!r}: {label!r} of the output is in no operand")
    return tuple(sizes.items())


def pair_of(left: str, right: str, later: set[str]) -> Pair:
    """The product of two operands if later steps need the labels in `later`."""
    kept = [c for c in left if c in right and c in later]
    kept += [c for c in left if c not in right and c in later]
    kept += [c for c in right if c not in left and c in later]
    return Pair(left, right, "".join(dict.fromkeys(kept)))
