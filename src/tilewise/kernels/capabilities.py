"""What a kernel supports, as data, and the one function that gives the reason why it does not support a problem.

Conditions on the kind of problem (arch, dtypes, precision, semiring) are evaluated once for all shapes; the others
depend on one problem (shape, strides, accumulate, epilogue and so on).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import FLOAT8, DType
from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import PRECISIONS, Problem
from tilewise.kernels.shared.layouts import has_lines
from tilewise.system.once import once

HALVES = ("bfloat16", "float16")
TURING, AMPERE, HOPPER = 75, 80, 90
ARCH_NAMES = {TURING: "Turing", AMPERE: "Ampere", 89: "Ada", HOPPER: "Hopper"}
INTEGERS8 = frozenset(("int8", "uint8"))


class Condition(NamedTuple):
    """A condition that is no field of `Capabilities`: a test of a problem, and the text for its refusal."""

    holds: Callable[[Problem], bool]
    takes: str


class Limits(NamedTuple):
    """What a kernel demands of one problem in numbers, and its roofline."""

    least_k: int
    most_k: float
    steps: float  # of one member, at most
    few: float  # rows or columns of P, at most
    contiguous: bool  # M and N are row-major or column-major
    products: int  # of the cores, that make one of its steps
    rate: float  # steps a second of the cores
    halved: bool  # P symmetric: half the steps
    bandwidth: float  # bytes a second


def has_its_k(p: Problem, can: Limits) -> bool:
    return can.least_k <= p.k <= can.most_k


def has_its_steps(p: Problem, can: Limits) -> bool:
    return p.m * p.k * p.n <= can.steps


def has_few_lines(p: Problem, can: Limits) -> bool:
    return min(p.m, p.n) <= can.few


def has_lines_of_m(p: Problem, can: Limits) -> bool:
    return not can.contiguous or has_lines(p.layout_m, p.m, p.k)


def has_lines_of_n(p: Problem, can: Limits) -> bool:
    return not can.contiguous or has_lines(p.layout_n, p.k, p.n)


def admits(p: Problem, can: Limits) -> bool:
    """Whether a kernel's limits admit a problem."""
    if not (has_its_k(p, can) and has_its_steps(p, can) and has_few_lines(p, can)):
        return False
    return has_lines_of_m(p, can) and has_lines_of_n(p, can)


def arithmetic_of(p: Problem, can: Limits) -> float:
    """Seconds of the steps alone."""
    return can.products * (p.least_steps if can.halved else p.steps) / can.rate


def floor_of(p: Problem, can: Limits) -> float:
    """The roofline bound in seconds."""
    return max(arithmetic_of(p, can), p.least_bytes / can.bandwidth)


@dataclass(frozen=True)
class Capabilities:
    """The problems that a kernel supports, and what it does besides multiplying."""

    # on the kind of problem
    from_arch: int = 0  # compute capability
    own_arch: bool = False  # that one only: its instructions exist on no other
    tensor_cores: bool = False  # the card has them for the dtype: float64 has them on few
    dtypes: tuple[str, ...] = ()  # of the product; empty: any
    since: tuple[tuple[str, int], ...] = ()  # (dtype of `elements_of`, least compute capability)
    one_dtype: bool = False  # M and N are of the product's dtype; others are packed first
    float32_as: tuple[str, ...] = PRECISIONS  # supported values of precision=
    plus_times: bool = False  # only over plus_times
    element_bytes: int = 0  # exactly; 0: any
    partial_bytes: tuple[int, int] = (1, 64)  # least and most
    kind: Condition | None = None
    # on one problem
    same_result: bool = False  # P has the product's dtype
    accumulates: bool = True
    unrounded: bool = True
    stacks: bool = True
    groups: tuple[str, ...] = ()  # groups whose sizes are data on the card: along "rows", along "k"
    only_groups: bool = False
    steps: float = math.inf  # of one member, at most
    least_k: int = 0
    most_k: float = math.inf
    few: float = math.inf  # most rows, or most columns, of P
    contiguous: bool = False  # M and N are row-major or column-major
    problem: tuple[Condition, ...] = ()
    # besides multiplying
    fuses: bool = False  # applies the epilogue before it stores P; else a separate pass does
    tracks_arg: bool = False  # return_arg=True
    ordered: bool = False  # sums in the order that reproducible="everywhere" specifies
    batch: bool = False  # for reproducible="batch" its own order, which depends on k alone
    scales: bool = False  # scales rows and columns of P
    stores_anywhere: bool = False  # P may have any strides; else it is row-major
    precisions: tuple[str, ...] = PRECISIONS  # values of precision= that it implements as requested

    def limits(self, rate: float = 1.0, products: int = 1, halved: bool = True, bandwidth: float = 1.0) -> Limits:
        sizes = self.least_k, self.most_k, self.steps, self.few, self.contiguous
        return Limits(*sizes, products, rate, halved, bandwidth)

    @once
    def sizes(self) -> Limits:
        """The limits without a roofline."""
        return self.limits()


DEMANDS = (  # of every kernel, by its numbers
    (has_its_k, "is for a k of {can.least_k} to {can.most_k}"),
    (has_its_steps, "is for products of up to {can.steps:,} steps"),
    (has_few_lines, "makes up to {can.few} rows or columns of P"),
    (has_lines_of_m, "takes an M of contiguous rows or columns"),
    (has_lines_of_n, "takes an N of contiguous rows or columns"),
)


def why_not(can: Capabilities, p: Problem, machine: Machine, kernel: str) -> str | None:
    """The reason why a kernel does not support a problem; None if it does."""
    why = why_not_of_kind(can, p, machine) or why_not_of_problem(can, p)
    return why and f"kernel={kernel!r} " + why.format(
        p=p,
        can=can,
        arch=machine.arch or "no card",
        generation=ARCH_NAMES.get(can.from_arch),
        dtypes=_listed(can),
        precisions=" or ".join(f"precision={name!r}" for name in can.float32_as),
    )


def why_not_of_kind(can: Capabilities, p: Problem, machine: Machine) -> str | None:
    """The part that depends on arch, dtypes, precision and semiring: a template, which `why_not` fills in."""
    number, size = arch_number(machine.arch), p.algebra.partial.itemsize
    if can.own_arch and number != can.from_arch:
        return "is made for {generation} (sm_{can.from_arch}), and this is {arch}"
    if number < can.from_arch:
        return "needs a card from {generation} on (sm_{can.from_arch}), and this is {arch}"
    since = dict(can.since)
    element = elements_of(p, machine)[0].name if since else p.dtype.name
    if (can.dtypes or since) and element not in (*can.dtypes, *since):
        return "multiplies {dtypes}, not {p.dtype}"
    if number < (first := since.get(element, 0)):
        return f"multiplies {element} from {ARCH_NAMES[first]} on (sm_{first}), and this is {{arch}}"
    if can.tensor_cores and not machine.tensor_rate(tensor_name(p, machine if can.since else None)):
        return "needs tensor cores for {p.dtype}, and {arch} has none"
    if can.one_dtype and not p.dtype_m == p.dtype_n == p.dtype:
        return "multiplies operands of one dtype, not {p.dtype_m} by {p.dtype_n}"
    if element == "float32" and p.precision not in can.float32_as:
        return "multiplies float32 with {precisions}, not {p.precision!r}"
    if can.plus_times and not is_plus_times(p.semiring):
        return "supports only plus_times, not {p.semiring}"
    if can.element_bytes and p.algebra.element.itemsize != can.element_bytes:
        return "multiplies elements of {can.element_bytes} bytes, not {p.dtype}"
    if size < can.partial_bytes[0]:
        return (
            "adds up in {can.partial_bytes[0]} bytes at least, and {p.algebra.partial} has {p.algebra.partial.itemsize}"
        )
    if size > can.partial_bytes[1]:
        return (
            "adds up in {can.partial_bytes[1]} bytes at most, and {p.algebra.partial} has {p.algebra.partial.itemsize}"
        )
    if can.kind is not None and not can.kind.holds(p):
        return can.kind.takes + ", not {p.dtype_m} by {p.dtype_n} into {p.result}"
    return None


def why_not_of_problem(can: Capabilities, p: Problem) -> str | None:
    """The part that depends on one problem; evaluated for every kernel and new shape."""
    if not p.plain or can.only_groups:
        why = why_not_of_options(can, p)
        if why is not None:
            return why
    takes = None
    if not admits(p, can.sizes):
        takes = next(text for holds, text in DEMANDS if not holds(p, can.sizes))
    for condition in can.problem if takes is None else ():
        if not condition.holds(p):
            takes = condition.takes
            break
    return takes and takes + ", and this is {p.shape}"


def why_not_of_options(can: Capabilities, p: Problem) -> str | None:
    """The part that depends on what is asked besides one product of its own dtype."""
    if p.return_arg and not can.tracks_arg:
        return "does not report which k won: leave kernel= out, or return_arg=True"
    if p.scaled and not can.scales:
        return "does not scale rows and columns: leave kernel= out, or scales="
    if p.groups is not None and p.groups.along not in can.groups:
        return "takes no groups along {p.groups.along}: leave kernel= out"
    if p.groups is None and can.only_groups:
        return "multiplies groups of rows, and there are none: use tw.grouped_matmul"
    if p.groups is not None and (p.accumulate or p.epilogue):
        return "stores groups as they are"
    if p.accumulate and not can.accumulates:
        return "stores P, and cannot add onto it"
    if p.unrounded and not can.unrounded:
        return "rounds its sums to {p.dtype}"
    if p.ordered and not (can.ordered or (can.batch and p.reproducible == "batch")):
        return "adds up in an order of its own: leave kernel= out, or reproducible="
    if not can.fuses and p.epilogue:
        return "stores products as they are: no epilogue"
    if can.same_result and p.result != p.dtype:
        return "multiplies {p.dtype} to {p.dtype}, not to {p.result}"
    if not can.stacks and p.members > 1:
        return "makes one product, and this is a stack of {p.members:,}"
    return None


def tensor_name(p: Problem, machine: Machine | None = None) -> str:
    """The name of a tensor-core rate of `Machine`: by the product's dtype, or, with a machine, by `elements_of`."""
    return rate_name(p.dtype if machine is None else elements_of(p, machine)[0])


def rate_name(dtype: DType) -> str:
    """The same by the dtype of elements as they are multiplied."""
    if dtype.kind == "f" and dtype.itemsize == 1:
        return "float8"
    return "tf32" if dtype.name == "float32" else dtype.name.removeprefix("u")


def elements_of(p: Problem, machine: Machine) -> tuple[DType, DType]:
    """The dtypes of M and N as mma.sync multiplies them: 8-bit ones unchanged where P is int32 or a float (floats from
    Ada on); all others, and all on Hopper, are converted to the product's dtype first."""
    return _elements(p.dtype_m, p.dtype_n, p.dtype, arch_number(machine.arch))


@lru_cache(maxsize=256)
def _elements(dtype_m: DType, dtype_n: DType, product: DType, arch: int) -> tuple[DType, DType]:
    names = {dtype_m.name, dtype_n.name}
    integers = product.name == "int32" and names <= INTEGERS8
    floats = arch >= 89 and product.kind == "f" and product.itemsize < 8 and names <= FLOAT8.keys()
    return (dtype_m, dtype_n) if arch != HOPPER and (integers or floats) else (product, product)


def _listed(can: Capabilities) -> str:
    as_tf32 = can.float32_as == ("tf32",)
    names = ["tf32" if name == "float32" and as_tf32 else name for name in (*can.dtypes, *dict(can.since))]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
