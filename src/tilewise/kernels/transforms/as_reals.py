"""Complex products as real ones: every kernel for real numbers, its tensor cores included, multiplies complex ones.

A complex product is four real ones, which are one real product of the same flops once an operand is written otherwise
(`as_reals.cu`). Either N is expanded to 2k×2n and M is read as m×2k where it lies; or M is split into 2m×k, N is read
as k×2n where it lies, and the two halves of the sums are joined. Of these and the same of Pᵀ = Nᵀ Mᵀ the one is taken
that moves the fewest bytes.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.core.machine import Machine
from tilewise.core.plan import packed_lead
from tilewise.core.problem import Layout, Problem
from tilewise.core.recipe import Launch, Scratch, Step, Value, structure
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.placed import Operands, Placed, broadcast, operands_of, own_stack, workspace
from tilewise.kernels.shared.stacked import GRID_LIMIT, Runs
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.text import assembled
from tilewise.kernels.transforms.pack import copies, packed

REALS = {"complex64": DTYPES["float32"], "complex128": DTYPES["float64"]}
COPIED = 3  # a transposing copy of an element, beside what a pass reads or writes at the memory's full rate
PASS = 1.5e-6  # seconds of an empty pass
LARGEST = 2**30  # an extent: it is doubled, and counted in 32 bits
_BLOCK = 32, 8
_Cells = struct_of("Cells", "transforms/as_reals.cu")


@KeyedRenderer
def render_as_reals(real: DType) -> str:
    name = "float" if real.name == "float32" else "double"
    head = f"typedef {name} Real;\ntypedef {name}2 Pair;\n"
    return assembled(head, "shared/dependent_launch.cuh transforms/as_reals.cu")


def has_real_form(p: Problem) -> bool:
    """Whether a product can be made by a real one."""
    small = max(p.m, p.k, p.n) < LARGEST
    return p.as_pairs and p.groups is None and not p.scaled and small and min(p.m, p.k, p.n, p.members) > 0


class Form(NamedTuple):
    """How a complex product is made by a real one."""

    elements: int  # pairs that passes before and after read and write, and that the real product reads or writes more
    transposed: bool  # Pᵀ = Nᵀ Mᵀ is made instead
    splits: bool  # M is split and sums are joined; else N is expanded

    @property
    def passes(self) -> int:
        """Launches beside the real product's, if nothing is copied."""
        return 1 + self.splits

    def note(self) -> str:
        first, second = ("N", "M") if self.transposed else ("M", "N")
        return f"{first} is split into real and imaginary parts" if self.splits else f"{second} as blocks of 2x2"


@lru_cache(maxsize=4096)
def form_of(p: Problem) -> Form:
    """The form that moves the fewest elements, of a product or of its transpose."""
    return min(
        Form(elements, transposed, bool(splits))
        for transposed in (False, True)
        for splits, elements in enumerate(_elements(_transposed(p) if transposed else p))
    )


def _elements(p: Problem) -> tuple[int, int]:
    """What moves where N is expanded, and where M is split."""
    m, n, made = p.m * p.k, p.k * p.n, p.m * p.n
    by_rows = (
        p.layout_m.leading_dimension(p.m, p.k), p.layout_n.leading_dimension(p.k, p.n),
        p.layout_p.leading_dimension(p.m, p.n),
    )  # fmt: skip
    copy_m, copy_n, copy_p = (0 if lead else COPIED * x for lead, x in zip(by_rows, (m, n, made), strict=True))
    return 4 * n + copy_m + copy_p * (1 + p.accumulate), 2 * m + 4 * made + copy_n + copy_p


def _transposed(p: Problem) -> Problem:
    """The product whose result is P transposed: multiplication commutes."""
    m, n, made = (Layout(x.col, x.row, x.stack, x.misalignment) for x in (p.layout_n, p.layout_m, p.layout_p))
    return replace(p, m=p.n, n=p.m, layout_m=m, layout_n=n, layout_p=made, symmetric=False)


def seconds_beside(p: Problem, machine: Machine) -> float:
    """What the passes before and after the real product take."""
    form = form_of(p)
    return form.passes * PASS + form.elements * p.members * p.dtype.itemsize / machine.bandwidth


def real_form(p: Problem) -> Problem:
    """The real product that makes a complex one; operands that are written anew lie in scratch memory."""
    form = AsReals(p, operands_of(p), Scratch()).real
    return replace(
        p, m=form.M.rows, k=form.M.cols, n=form.N.cols, dtype_m=form.M.dtype, dtype_n=form.N.dtype, requested=None,
        layout_m=form.M.layout, layout_n=form.N.layout, layout_p=form.P.layout, symmetric=False,
        accumulate=p.accumulate and not form_of(p).splits,
    )  # fmt: skip


class AsReals:
    """A complex product's operands, and the places of those of its real form."""

    def __init__(self, p: Problem, given: Operands, scratch: Scratch) -> None:
        self._form = form_of(p)
        if self._form.transposed:
            p = _transposed(p)
            given = Operands(given.N.transposed, given.M.transposed, given.P.transposed)
        self._p, self._given = p, given
        self._text = render_as_reals.key(REALS[p.dtype.name])
        M, N, P = given.M, given.N, given.P
        self._of_rows = {"M": M, "N": N, "P": P}  # in pairs, where those that are read as they lie have rows of them
        if self._form.splits:
            self._place("N", p.stack, scratch)
            self.real = Operands(
                _written(M, p.stack, 2, scratch), _viewed(self._of_rows["N"]),
                workspace(2 * p.m, 2 * p.n, p.stack, REALS[p.dtype.name], 2 * packed_lead(p.n), scratch),
            )  # fmt: skip
        else:
            self._place("M", p.stack, scratch)
            self._place("P", p.stack, scratch)
            self.real = Operands(
                _viewed(self._of_rows["M"]), _written(N, p.stack, 4, scratch), _viewed(self._of_rows["P"])
            )

    def _place(self, name: str, stack: tuple[int, ...], scratch: Scratch) -> None:
        x = self._of_rows[name]
        if x.layout.leading_dimension(x.rows, x.cols) is None:
            self._of_rows[name] = packed(x, stack, x.dtype, scratch)

    def operands(self, real: Problem) -> Operands:
        """Those of the real product, whose members may have become rows of fewer (`Problem.folded`)."""
        M, N, P = self.real.M, self.real.N, self.real.P
        return Operands(
            replace(M, rows=real.m, cols=real.k, layout=real.layout_m),
            replace(N, rows=real.k, cols=real.n, layout=real.layout_n),
            replace(P, rows=real.m, cols=real.n, layout=real.layout_p),
        )

    def before(self) -> list[Step]:
        """Operands copied to rows of pairs where they have none, and the one that is split or expanded."""
        p, given, made = self._p, self._given, list[Step]()
        for name, source in (("M", given.M), ("N", given.N), ("P", given.P)):
            if self._of_rows[name] is not source and (name != "P" or p.accumulate):
                made += copies(source, self._of_rows[name], own_stack(source, p.stack))
        if self._form.splits:
            lines, plane = _lines(given.M), self.real.M.part(p.m, p.m, 0, p.k).pointer
            apart = (plane.offset - self.real.M.pointer.offset) // self.real.M.dtype.itemsize
            return made + self._launches("split", given.M, self.real.M, lines, 1, ctypes.c_longlong(apart))
        sign = -1.0 if given.N.by_columns else 1.0
        real = ctypes.c_float(sign) if p.dtype.name == "complex64" else ctypes.c_double(sign)
        return made + self._launches("expand", given.N, self.real.N, _lines(given.N), 2, real)

    def after(self) -> list[Step]:
        """The two halves of the sums joined; P copied to where it belongs."""
        p, P = self._p, self._given.P
        if self._form.splits:
            lines = p.m, p.n, P.layout.row, P.layout.col
            return self._launches("join", P, self.real.P, lines, 2, ctypes.c_int(p.accumulate))
        made = self._of_rows["P"]
        return [] if made is P else copies(made, P, p.stack)

    def _launches(
        self, name: str, x: Placed, to: Placed, lines: tuple[int, int, int, int], width: int, last: Value
    ) -> list[Step]:
        """`width`: real numbers of an element of `to`, as the kernel counts them."""
        count, length, apart, step = lines
        lead = max(to.layout.row, to.layout.col)
        own = own_stack(x, self._p.stack)
        runs, made = Runs(own, [x.layout.stack, to.layout.stack]), list[Step]()
        grid = min(math.ceil(length / _BLOCK[0]), 1024), min(math.ceil(count / _BLOCK[1]), GRID_LIMIT)
        for at, members in runs.starts():
            member, member_to = runs.steps
            cells = structure(_Cells, count, length, apart, step, member, lead // width, member_to // width)
            arguments = (x.on(at[0]), to.on(at[1]), cells, last)
            made.append(Launch.of(self._text, name, (*grid, members), _BLOCK, arguments))
        return made


def _lines(x: Placed) -> tuple[int, int, int, int]:
    """(lines, their length, from line to line, along a line) of any matrix."""
    if x.by_columns:
        return x.cols, x.rows, x.layout.col, x.layout.row
    return x.rows, x.cols, x.layout.row, x.layout.col


def _written(x: Placed, stack: tuple[int, ...], reals: int, scratch: Scratch) -> Placed:
    """A place for a matrix with 2 or 4 real numbers for each pair: 2 rows for one, or 2 rows of 2 columns."""
    own, real = own_stack(x, stack), REALS[x.dtype.name]
    rows, cols = 2 * x.rows, (reals // 2) * x.cols
    if not x.by_columns:
        made = workspace(rows, cols, own, real, packed_lead(cols), scratch)
        return replace(made, layout=made.layout._replace(stack=broadcast(own, made.layout.stack)))
    made = workspace(cols, rows, own, real, packed_lead(rows), scratch)
    layout = Layout(1, made.layout.row, broadcast(own, made.layout.stack))
    return Placed(made.pointer, real, rows, cols, layout)


def _viewed(x: Placed) -> Placed:
    """A matrix of rows of pairs as rows of real numbers."""
    layout = Layout(2 * x.lead, 1, tuple(2 * stride for stride in x.layout.stack), x.layout.misalignment)
    return Placed(x.pointer, REALS[x.dtype.name], x.rows, 2 * x.cols, layout)
