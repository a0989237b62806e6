"""The problem: shape, strides, dtypes, semiring, stack, epilogue. One frozen value, without any choice of kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DType, dtype_named, promote
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.algebra.to_llvm import commutes, never_signals
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.members import Stacked
from tilewise.core.reproducible import check_defined, check_reproducible
from tilewise.errors import ShapeError, UsageError
from tilewise.system.once import once

PRECISIONS = ("ieee", "high", "tf32")
# Rows of P from which computing one triangle and mirroring it pays for the check; on a card smaller ones are few tiles.
SMALLEST_SYMMETRIC, SMALLEST_ON_CARD = 32, 256


class Layout(NamedTuple):
    """A matrix in memory: strides in elements, and the misalignment of its first byte."""

    row: int
    col: int
    stack: tuple[int, ...] = ()
    misalignment: int = 0  # bytes past a 16-byte boundary
    spare: bool = False  # P's padding after a row, up to the next 16-byte boundary, may be overwritten

    @property
    def alignment(self) -> int:
        """The largest power of two, up to 16, that divides its address."""
        return math.gcd(self.misalignment, 16)

    @property
    def step(self) -> int:
        """The greatest common divisor of the strides from member to member."""
        return math.gcd(*self.stack)

    @property
    def backward(self) -> bool:
        """Whether members come one before another along an axis."""
        return any(stride < 0 for stride in self.stack)

    def leading_dimension(self, rows: int, cols: int) -> int | None:
        """The leading dimension of a row-major matrix; None for others, which are packed first."""
        lead = row_lead(self, rows, cols)
        return None if lead < 0 else lead


def row_lead(layout: Layout, rows: int, cols: int) -> int:
    """The leading dimension of a row-major matrix; -1 of others."""
    if cols > 1 and layout.col != 1:
        return -1
    if rows <= 1:
        return cols
    return layout.row if layout.row >= cols else -1


def row_major(rows: int, cols: int, stack: tuple[int, ...] = ()) -> Layout:
    """The layout of a fresh array."""
    strides: tuple[int, ...] = ()
    step = rows * cols
    for extent in reversed(stack):
        strides, step = (step, *strides), step * extent
    return Layout(cols, 1, strides)


@dataclass(frozen=True)
class Groups:
    """Consecutive groups of rows, whose ends are in device memory and are not read by the host.

    Along "rows": group g of M's rows times member g of N is group g of P's rows. Along "k": group g of M's columns
    times the same rows of N is member g of P, a stack.
    """

    count: int
    along: str = "rows"
    wide: bool = False  # ends are 64-bit integers


@dataclass(frozen=True)
class Problem(Stacked):
    """P = M ⊗ N over a semiring: M is m×k, N is k×n, P is m×n, for each member of the stack.

    >>> p = tw.plan(np.ones((3, 4)), np.ones((4, 5))).problem
    >>> (p.m, p.k, p.n), p.semiring.name
    ((3, 4, 5), 'plus_times')
    """

    m: int
    k: int
    n: int
    stack: tuple[int, ...]
    dtype_m: DType
    dtype_n: DType
    semiring: Semiring
    layout_m: Layout
    layout_n: Layout
    layout_p: Layout
    accumulate: bool = False
    precision: str = "high"
    return_arg: bool = False  # the winning k is returned too
    nonnegative: bool = False  # the caller guarantees that no element is negative or NaN
    unrounded: bool = False  # P has the accumulator's dtype: a later pass adds to it and rounds it
    requested: DType | None = None  # dtype= of the call
    scaled: bool = False  # rows and columns of P are scaled before it is stored
    epilogue: Epilogue = PLAIN  # applied to the product before it is stored
    groups: Groups | None = None
    symmetric: bool = False  # N is M transposed, in the same memory, and mul commutes: P equals its transpose
    whole: int = 0  # steps of the product that this is a piece of: a piece runs as the whole would
    reproducible: str | None = None  # what fixes the bits of P: `core.reproducible.LEVELS`

    @once
    def dtype(self) -> DType:
        """The dtype to which both operands are converted."""
        return self.requested or promote(self.dtype_m, self.dtype_n)

    @once
    def algebra(self) -> Algebra:
        algebra = self.semiring.over(self.dtype)
        return replace(algebra, result=algebra.partial) if self.unrounded else algebra

    @once
    def ordered(self) -> bool:
        """Whether sums have a specified order, that of `core.reproducible`. Integers are exact in any order."""
        if self.reproducible is None:
            return False
        return check_defined(self.semiring, self.algebra.partial, self.dtype)

    def __hash__(self) -> int:
        """Computed once: a problem is a cache key several times per call."""
        return self._hash

    @once
    def _hash(self) -> int:
        layouts = self.layout_m, self.layout_n, self.layout_p
        return hash((self.m, self.k, self.n, self.stack, self.dtype_m.name, self.dtype_n.name, *layouts))

    def __getstate__(self) -> dict[str, Any]:
        """Without the hash: strings hash differently in another process."""
        return {
            name: value for name, value in self.__dict__.items() if name not in ("_hash", "shared", "_size_independent")
        }

    @once
    def result(self) -> DType:
        return self.algebra.result

    @once
    def plain(self) -> bool:
        """One product of its own dtype, stored as it is: what most are."""
        options = self.return_arg or self.scaled or self.accumulate or self.unrounded or self.groups or self.ordered
        return not (options or self.epilogue or self.members > 1 or self.result != self.dtype)

    @once
    def in_place(self) -> bool:
        """Whether kernels can read M and N in place: no conversion, one register per value, no arg."""
        return self._one_dtype and self.algebra.partial.kind in "iuf" and not self.return_arg

    @once
    def light(self) -> bool:
        """In place, and a step is a few instructions."""
        return self.in_place and not self.semiring.heavy

    @once
    def halves(self) -> bool:
        """Half-precision operands, which kernels widen as they load them; sums are float32."""
        half = self.dtype_m.name in ("float16", "bfloat16") and self.algebra.partial.name == "float32"
        return half and self.dtype_n == self.dtype_m and not self.return_arg

    @once
    def as_pairs(self) -> bool:
        """Whether a complex product can be computed on pairs of real numbers, read in place."""
        return self._one_dtype and self.algebra.partial.kind == "c" and self.semiring.multiplies and not self.return_arg

    @once
    def signals(self) -> bool:
        """Whether signalling NaNs must be quieted before a step: while operands are packed, else at every load."""
        return self.dtype.kind == "f" and not never_signals(self.semiring.mul)

    @property
    def _one_dtype(self) -> bool:
        return self.dtype_m == self.dtype_n == self.algebra.partial == self.result

    @once
    def shared(self) -> dict[Any, Any]:
        """A cache of values that do not depend on sizes; problems made by `resized` share it."""
        return {}

    @once
    def _size_independent(self) -> dict[str, Any]:
        """The fields and properties that do not depend on extents and layouts."""
        return {name: getattr(self, name) for name in SIZE_INDEPENDENT}

    def resized(
        self,
        m: int,
        k: int,
        n: int,
        stack: tuple[int, ...],
        layout_m: Layout,
        layout_n: Layout,
        layout_p: Layout,
        symmetric: bool = False,
    ) -> Problem:
        """The same problem of another size; `dataclasses.replace` takes ten times as long."""
        made = object.__new__(Problem)
        made.__dict__.update(
            self._size_independent, m=m, k=k, n=n, stack=stack, layout_m=layout_m, layout_n=layout_n, layout_p=layout_p,
            symmetric=symmetric,
        )  # fmt: skip
        return made

    def may_mirror(self, on_card: bool = False) -> bool:
        """Whether N has M's extents and strides transposed: if both have the same address, P is symmetric."""
        M, N, least = self.layout_m, self.layout_n, SMALLEST_ON_CARD if on_card else SMALLEST_SYMMETRIC
        transposed = M.row == N.col and M.col == N.row and M.stack == N.stack and self.dtype_m is self.dtype_n
        return transposed and self.m == self.n >= least and commutes(self.semiring.mul)

    @once
    def bare(self) -> Problem:
        """The product alone, unrounded and row-major: the input of a separate epilogue."""
        fresh = row_major(self.m, self.n, self.stack)
        return replace(self, epilogue=PLAIN, unrounded=True, accumulate=False, layout_p=fresh)

    @property
    def folded(self) -> Problem:
        """The same product with fewer members: members that share N, and whose rows of M and P are evenly spaced
        across members, become rows of one taller product."""
        p = self
        while p.stack and p.layout_n.stack[-1] == 0 and not p.scaled and p.m * p.stack[-1] < 2**31:
            m, p_rows = (_stacked_rows(x, p.m, p.stack[-1]) for x in (p.layout_m, p.layout_p))
            if m is None or p_rows is None or p.stack[-1] < 1:
                break
            shorter = p.layout_n._replace(stack=p.layout_n.stack[:-1])
            tall = p.m * p.stack[-1]
            p = replace(p, m=tall, stack=p.stack[:-1], layout_m=m, layout_n=shorter, layout_p=p_rows)
        return p

    @once
    def members(self) -> int:
        """How many products the stack holds."""
        return math.prod(self.stack)

    @once
    def steps(self) -> int:
        """Multiply-and-add steps; a step of plus_times is two floating-point operations."""
        return self.m * self.k * self.n * (1 if self.groups else self.members)

    @once
    def least_steps(self) -> int:
        """The steps that no kernel can do without: half of them where P is symmetric."""
        return self.steps // 2 if self.symmetric else self.steps

    @once
    def largest(self) -> int:
        """An upper bound of its numbers of cells, steps, tiles and phases."""
        return max(1, self.m) * max(1, self.k) * max(1, self.n) * max(1, self.members)

    @once
    def least_bytes(self) -> int:
        """Each input read once, the product written once (and read once, when it is added onto)."""
        inputs = self.m * self.k * self.dtype_m.itemsize + self.k * self.n * self.dtype_n.itemsize
        output = self.m * self.n * self.result.itemsize * (2 if self.accumulate else 1)
        if self.groups is None:
            return (inputs + output) * self.members
        if self.groups.along == "k":
            return inputs + output * self.groups.count
        bytes_n = self.k * self.n * self.dtype_n.itemsize  # each nonempty group reads its own member
        return inputs + output + bytes_n * (min(self.groups.count, self.m) - 1)

    @property
    def member_bytes(self) -> int:
        """`least_bytes` of one member of the stack."""
        return self.least_bytes // max(1, self.members)

    @property
    def shape(self) -> str:
        """MxKxN: rows of M, columns of M, columns of N."""
        if self.groups:
            return f"{self.m}x{self.k}x{self.n} in {self.groups.count} groups along {self.groups.along}"
        stack = "x".join(map(str, self.stack)) + "·" if self.stack else ""
        return f"{stack}{self.m}x{self.k}x{self.n}"

    @property
    def stack_n(self) -> tuple[int, ...]:
        """The stack of N."""
        return (self.groups.count,) if self.groups and self.groups.along == "rows" else self.stack

    def __repr__(self) -> str:
        tail = " accumulate" if self.accumulate else ""
        return f"Problem({self.shape} {self.dtype} {self.semiring}{tail})"

    def to_json(self) -> dict[str, Any]:
        return {
            "shape": [self.m, self.k, self.n],
            "stack": list(self.stack),
            "groups": None if self.groups is None else {"count": self.groups.count, "along": self.groups.along},
            "dtype_m": self.dtype_m.name,
            "dtype_n": self.dtype_n.name,
            "dtype": self.dtype.name,
            "result": self.result.name,
            "semiring": self.semiring.name,
            "accumulate": self.accumulate,
            "precision": self.precision,
            "return_arg": self.return_arg,
            "nonnegative": self.nonnegative,
            "epilogue": self.epilogue.to_json() if self.epilogue else None,
            **({} if self.reproducible is None else {"reproducible": self.reproducible}),
            "layouts": {
                name: {"row": lay.row, "col": lay.col, "stack": list(lay.stack), "alignment": lay.alignment}
                for name, lay in (("M", self.layout_m), ("N", self.layout_n), ("P", self.layout_p))
            },
        }


SIZE_DEPENDENT = ("m", "k", "n", "stack", "layout_m", "layout_n", "layout_p", "symmetric")
SIZE_INDEPENDENT = (
    *(field.name for field in fields(Problem) if field.name not in SIZE_DEPENDENT),
    *("dtype", "algebra", "result", "in_place", "light", "halves", "as_pairs", "signals", "ordered", "shared"),
)


def _stacked_rows(layout: Layout, rows: int, members: int) -> Layout | None:
    """The matrix of the rows of all members along the last axis of a stack, if they are evenly spaced."""
    step = layout.stack[-1]
    row = step if rows == 1 < members else layout.row
    if members > 1 and rows > 1 and step != rows * layout.row:
        return None
    return layout._replace(row=row, stack=layout.stack[:-1])


def problem_of_shape(
    m: int,
    k: int,
    n: int,
    dtype: str | DType = "float32",
    semiring: str | Semiring = "plus_times",
    *,
    dtype_n: DType | None = None,
    accumulate: bool = False,
    precision: str = "high",
    nonnegative: bool = False,
    unrounded: bool = False,
    reproducible: str | None = None,
) -> Problem:
    """A Problem without arrays: fresh row-major operands of this shape. `dtype_n`: of N, where it is not M's."""
    for name, extent in (("m", m), ("k", k), ("n", n)):
        if extent < 0:
            raise ShapeError(f"{name} must be 0 or more, got {extent}")
    number = dtype_named(dtype) if isinstance(dtype, str) else dtype
    return Problem(
        m,
        k,
        n,
        (),
        number,
        dtype_n or number,
        find_semiring(semiring),
        row_major(m, k),
        row_major(k, n),
        row_major(m, n),
        accumulate,
        check_precision(precision),
        nonnegative=nonnegative,
        unrounded=unrounded,
        reproducible=check_reproducible(reproducible),
    )


def check_precision(precision: str) -> str:
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise UsageError(f"precision={precision!r} is not known; known are {', '.join(PRECISIONS)}")
    return precision


def parse_shape(text: str) -> tuple[int, int, int]:
    """`1000x500x700`: rows of M, columns of M (rows of N), columns of N."""
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != 3 or not all(p.strip().isdigit() for p in parts):
        raise ShapeError(f"shape {text!r} must be MxKxN, three whole numbers, for example 1000x500x700")
    m, k, n = (int(p) for p in parts)
    return m, k, n
