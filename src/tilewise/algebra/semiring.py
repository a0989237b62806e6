"""A semiring: its add and mul, the initial value of a sum, and the fill of edge tiles.

A fill must satisfy mul(pad_m, pad_n) == zero exactly: in the last phase pads are only multiplied by pads, and the
product must not change the sum. The additive identity is not always a valid pad: (−∞)·(−∞) = +∞ breaks max_times, and
MAX + MAX wraps in integer min_plus. So pads are searched by this law, for each dtype, when the semiring is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import (
    HEAVY,
    Apply,
    Constant,
    Expression,
    Extreme,
    Number,
    check_types,
    constant_over,
    is_plain,
    lift,
    trace,
    uses,
)
from tilewise.algebra.to_numpy import Function, numpy_function
from tilewise.errors import AlgebraError, DtypeError, UsageError

Operation = Callable[[Any, Any], Any]
BY_FINGERPRINT: WeakValueDictionary[str, Semiring] = WeakValueDictionary()  # for code that only has the fingerprint


@dataclass(frozen=True)
class Algebra:
    """A semiring over one dtype: everything a backend needs, as plain values."""

    semiring: Semiring
    element: DType  # of M and N
    partial: DType  # of the accumulator
    result: DType  # of P
    zero: Number
    pad_m: Number
    pad_n: Number

    def __hash__(self) -> int:
        return hash((self.semiring.name, self.element.name, self.result.name))

    @property
    def add(self) -> Function:
        """`add` on NumPy arrays of `partial`."""
        return numpy_function(self.semiring.add, self.partial)

    @property
    def mul(self) -> Function:
        """`mul` on NumPy arrays of `partial`."""
        return numpy_function(self.semiring.mul, self.partial)


@dataclass(frozen=True, init=False)
class Semiring:
    """Two functions in place of + and ×, and a zero.

    add, mul: functions of two values, traced once (see `tilewise.minimum` and the like).
    zero: the identity of add; `tw.largest` and `tw.smallest` are ∞, MAX or True, depending on the dtype.
    pad_m, pad_n: the fill of edge tiles of M and N; searched by the law when not given.
    boolean: operands count as true where they are not 0, and the product is bool.
    Where zero is a tuple, values have as many fields, x[0], x[1], … or by the names in `fields=`; add and mul return
    tuples, and operands are tuples of arrays or structured arrays. `witnesses(rng, count)` draws values for the laws.

    >>> best_chance = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
    >>> tw.matmul([[0.5, 0.25]], [[0.5], [0.75]], semiring=best_chance)
    array([[0.25]])
    """

    name: str
    add: Expression = field(repr=False)
    mul: Expression = field(repr=False)
    zero: Expression = field(repr=False)
    pad_m: Expression | None = field(repr=False)
    pad_n: Expression | None = field(repr=False)
    boolean: bool = field(repr=False)
    fingerprint: str = field(repr=False, compare=False)  # its trees as text: torch.compile guards on strings

    if not TYPE_CHECKING:  # a type checker sees a Semiring

        def __new__(cls, name="", add=None, mul=None, zero=None, **how):
            if not isinstance(zero, tuple):
                return object.__new__(cls)
            from tilewise.algebra.structured import Structured  # values with fields: no Semiring

            return Structured(name, add, mul, zero, **how)

    def __init__(
        self,
        name: str,
        add: Operation,
        mul: Operation,
        zero: Any,
        *,
        pad_m: Any = None,
        pad_n: Any = None,
        boolean: bool = False,
        fields: Sequence[str] | None = None,
        witnesses: Callable[[np.random.Generator, int], Any] | None = None,
    ) -> None:
        if fields is not None or witnesses is not None:
            raise AlgebraError(f"semiring {name!r}: fields= and witnesses= go with a zero that is a tuple")
        _define(self, name, add, mul, zero, pad_m, pad_n, boolean)
        check_laws(self)

    def __hash__(self) -> int:
        return hash(self.name)  # trees are compared only if names are equal

    def over(self, dtype: DType) -> Algebra:
        """This semiring over `dtype`, or a DtypeError that says why not."""
        return _over(self, dtype)

    def with_zero(self, zero: Any) -> Semiring:
        """The same operations with another zero."""
        made = object.__new__(Semiring)
        _set(made, name=self.name, add=self.add, mul=self.mul, zero=lift(zero), boolean=self.boolean)
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _set_fingerprint(self)  # a copy may outlive its original; an unpickled one comes from another process

    @cached_property
    def multiplies(self) -> bool:
        """Whether a step is a multiply-and-add."""
        return is_plain(self.add, "add") and is_plain(self.mul, "mul")

    @cached_property
    def heavy(self) -> bool:
        """Whether a step calls the C library, or takes as long."""
        return uses(self.add, HEAVY) or uses(self.mul, HEAVY)

    @property
    def selective(self) -> bool:
        """Whether add picks one of its two values (min, max), so that a product has a winning k."""
        return isinstance(self.add, Apply) and self.add.op in ("min", "max")

    def check_selective(self) -> None:
        """Refuses return_arg=True where no k wins."""
        if not self.selective:
            raise UsageError(
                f"return_arg=True returns the k that won, and {self} picks none: use a min or max semiring"
            )

    def __str__(self) -> str:
        return self.name


def builtin_semiring(name: str, add: Operation, mul: Operation, zero: Any, *, boolean: bool = False) -> Semiring:
    """A semiring whose laws the tests check: checks at import would load numpy.random."""
    made = object.__new__(Semiring)
    _define(made, name, add, mul, zero, None, None, boolean)
    return made


def _define(
    semiring: Semiring, name: str, add: Operation, mul: Operation, zero: Any, pad_m: Any, pad_n: Any, boolean: bool
) -> None:
    if not isinstance(name, str) or not name:
        raise AlgebraError(f"a semiring's name must be a nonempty string, got {name!r}")
    if (pad_m is None) != (pad_n is None):
        raise AlgebraError(f"semiring {name!r}: give both pad_m and pad_n, or neither")

    constants: dict[str, Expression | None] = {}
    for key, value in (("zero", zero), ("pad_m", pad_m), ("pad_n", pad_n)):
        tree = constants[key] = None if value is None and key != "zero" else lift(value)
        if tree is not None and not isinstance(tree, (Constant, Extreme)):
            raise AlgebraError(f"semiring {name!r}: {key} must be a number, tw.largest or tw.smallest")
    trees = {role: trace(function, f"semiring {name!r}: {role}") for role, function in (("add", add), ("mul", mul))}
    _set(semiring, name=name, boolean=boolean, **trees, **constants)


def _set(semiring: Semiring, **values: object) -> None:
    for key, value in ({"pad_m": None, "pad_n": None} | values).items():
        object.__setattr__(semiring, key, value)
    _set_fingerprint(semiring)


def _set_fingerprint(semiring: Semiring) -> None:
    """Equal trees have equal fingerprints: a semiring that each call defines anew finds its compiled kernels."""
    text = _ssa_text(semiring)
    first = BY_FINGERPRINT.setdefault(text, semiring)
    object.__setattr__(semiring, "fingerprint", text)
    # keeps the first semiring with this fingerprint alive, which BY_FINGERPRINT refers to weakly
    object.__setattr__(semiring, "_first", None if first is semiring else first)


def _ssa_text(semiring: Semiring) -> str:
    """The name and the trees in SSA form, common subexpressions once: different semirings have different texts."""
    nodes: dict[str, int] = {}
    seen: dict[int, int] = {}

    def node_of(tree: Expression) -> int:
        if id(tree) not in seen:
            if isinstance(tree, Apply):
                text = f"{tree.op}({', '.join(f'%{node_of(part)}' for part in tree.args)})"
            else:
                text = repr(tree)
            seen[id(tree)] = nodes.setdefault(text, len(nodes))
        return seen[id(tree)]

    trees = (semiring.add, semiring.mul, semiring.zero, semiring.pad_m, semiring.pad_n)
    roots = ["-" if tree is None else f"%{node_of(tree)}" for tree in trees]
    return f"{semiring.name!r} {'; '.join(nodes)}: {' '.join(roots)}{' boolean' if semiring.boolean else ''}"


@lru_cache(maxsize=1024)
def _over(semiring: Semiring, dtype: DType) -> Algebra:
    partial = DTYPES["bool"] if semiring.boolean else dtype.partial
    try:
        check_types(semiring.add, partial)
        check_types(semiring.mul, partial)
        zero = constant_over(semiring.zero, partial)
    except DtypeError as error:
        raise DtypeError(f"{semiring.name} does not work over {dtype}: {error}") from None
    result = DTYPES["bool"] if semiring.boolean else dtype
    for pad_m, pad_n in _pad_candidates(semiring, partial, zero):
        if _same(_evaluate(semiring.mul, partial, pad_m, pad_n), zero, partial):
            return Algebra(semiring, dtype, partial, result, zero, pad_m, pad_n)
    if semiring.pad_m is not None:
        pad_m, pad_n = next(_pad_candidates(semiring, partial, zero))
        made = _evaluate(semiring.mul, partial, pad_m, pad_n)
        raise AlgebraError(
            f"semiring {semiring.name!r} over {dtype}: mul(pad_m={pad_m}, pad_n={pad_n}) is {made}, "
            f"but it must be exactly zero={zero}, or an edge would change the product"
        )
    raise AlgebraError(
        f"semiring {semiring.name!r} over {dtype}: no fill is known with mul(pad_m, pad_n) == zero={zero}; "
        "give pad_m= and pad_n="
    )


def _pad_candidates(semiring: Semiring, dtype: DType, zero: Number) -> Iterator[tuple[Number, Number]]:
    """The given pads; else (zero, zero), then zero with candidates for the semiring's one."""
    if semiring.pad_m is not None and semiring.pad_n is not None:
        yield constant_over(semiring.pad_m, dtype), constant_over(semiring.pad_n, dtype)
        return
    yield zero, zero
    for one in (Constant(1), Constant(0), Extreme("largest"), Extreme("smallest")):
        try:
            value = constant_over(one, dtype)
        except DtypeError:
            continue
        yield zero, value
        yield value, zero


def _evaluate(tree: Expression, dtype: DType, x: Number, y: Number) -> Any:
    with np.errstate(all="ignore"):
        a, b = (np.array([v]).astype(dtype.numpy) for v in (x, y))
        return numpy_function(tree, dtype)(a, b)[0]


def _same(value: Any, expected: Number, dtype: DType) -> bool:
    return bool(value == dtype.numpy.type(expected))


# Typical values: weights and counts, or probabilities. zero must be neutral for one of the two sets.
_PROBES = ((1, 2, 3), (0.25, 0.5, 1.0))


def check_laws(semiring: Semiring) -> None:
    """Raise at definition if a law is broken."""
    name, works = semiring.name, []
    for dtype in DTYPES.values():
        try:
            semiring.over(dtype)
            works.append(dtype)
        except DtypeError:
            continue
        except AlgebraError:
            if dtype.name == "float64":
                raise
    if not works:
        semiring.over(DTYPES["float64"])  # says why
        raise AlgebraError(f"semiring {name!r} works over no dtype")
    if semiring.boolean:
        return
    dtype = next((DTYPES[d] for d in ("float64", "int64", "uint64", "int32") if DTYPES[d] in works), works[-1])
    zero = constant_over(semiring.zero, dtype)
    _check_neutral(semiring, dtype, zero)
    _check_add(semiring, dtype)


def _check_neutral(semiring: Semiring, dtype: DType, zero: Number) -> None:
    wrong = []
    for probe in _PROBES:
        values = np.unique(np.array(probe).astype(dtype.numpy))
        add = numpy_function(semiring.add, dtype)
        zeros = np.full_like(values, zero)
        with np.errstate(all="ignore"):
            left, right = add(zeros, values), add(values, zeros)
        off = ~(_close(left, values) & _close(right, values))
        if not off.any():
            return
        at = int(np.argmax(off))
        wrong.append((values[at].item(), left[at].item()))
    value, made = wrong[0]
    raise AlgebraError(
        f"semiring {semiring.name!r}: zero={zero} is not neutral: add(zero, {value:g}) is {made}; "
        "for minimum write zero=tw.largest, for maximum zero=tw.smallest"
    )


def _check_add(semiring: Semiring, dtype: DType) -> None:
    """Check that add is commutative and associative on chosen and random values; errors name the first failure."""
    chosen = np.array([(1.0, 2.0, 3.0), (3.0, 0.5, 2.0), (-1.0, 4.0, 0.25)])
    drawn = np.random.default_rng(0).normal(0, 3, (61, 3)).round(2)
    with np.errstate(all="ignore"):
        x, y, z = np.concatenate([chosen, drawn]).astype(dtype.numpy).T.copy()
        add = numpy_function(semiring.add, dtype)
        xy, yx = add(x, y), add(y, x)
        left, right = add(xy, z), add(x, add(y, z))
    off = ~_close(xy, yx)
    if off.any():
        i = int(np.argmax(off))
        raise AlgebraError(
            f"semiring {semiring.name!r}: add must be commutative, but add({x[i]}, {y[i]}) is {xy[i]} "
            f"and add({y[i]}, {x[i]}) is {yx[i]}"
        )
    off = ~_close(left, right)
    if off.any():
        i = int(np.argmax(off))
        raise AlgebraError(
            f"semiring {semiring.name!r}: add must be associative, or the product would depend on the tile: "
            f"add(add({x[i]}, {y[i]}), {z[i]}) is {left[i]}, add({x[i]}, add({y[i]}, {z[i]})) is {right[i]}"
        )


def _close(a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub":
        return a == b
    return np.isclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
