"""Findings after a run: uncovered cells of P, wrong cells, performance costs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.semiring import Semiring
from tilewise.emulator.check.binding import Bound
from tilewise.emulator.check.readings import Reading, find_reading
from tilewise.emulator.machine.access import Site
from tilewise.emulator.machine.costs import Costs
from tilewise.emulator.machine.findings import Finding, Kind, Touch, Wrong
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.machine.program import Program
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.tree import Function
from tilewise.emulator.source.source import Place, Source

MAX_TOUCHES = 64
TRANSPOSED = re.compile(r"(?i:transpos|col(?:umn)?[ _-]*major|_trans\b|\btrans_)|\b[A-Za-z]T\b|\w_T\b")
TOLERANCE = {2: 2e-2, 4: 1e-5, 8: 1e-12}


def judge(
    bound: Bound, function: Function, geometry: Geometry, source: Source, launch: Place | None,
    semiring: Semiring | None = None, sampled: bool = False,
) -> list[Finding]:  # fmt: skip
    """`sampled`: only some blocks were run, so that unwritten cells are not reported."""
    buffer = bound.of("P")
    if buffer is None or bound.shape is None or buffer.written is None:
        return []
    m, _, n = bound.shape
    cells = buffer.matrix.cells if buffer.matrix is not None else 1
    out: list[Finding] = []
    written = np.asarray(buffer.written[: m * n * cells].reshape(m, n, cells).all(axis=2))
    if m * n and not written.all() and not sampled:
        out.append(_uncovered(buffer.name, written, geometry, launch, m, n))
    have = bound.arrays["P"]
    if {"M", "N"} <= bound.arrays.keys() and elementwise(bound.arrays["M"], bound.arrays["N"], have, written):
        return out
    plain = semiring is None or semiring.name == "plus_times"
    expected = product(bound) if plain or semiring is None else product_over(bound, semiring)
    if expected is None:
        return out
    bound.expected = expected
    wrong = differs(have, expected, bound) & written if cells == 1 else np.zeros_like(written)
    if not wrong.any() or any(not (differs(have, f * expected, bound) & written).any() for f in _factors(bound)):
        return out
    reading = _reading(bound, written) if plain else None
    if reading is not None and is_intended(reading, bound.shape, function, source):
        bound.reading = reading
        return out
    out.append(_wrong_product(bound, buffer, have, expected, wrong, written, source, reading))
    return out


def _factors(bound: Bound) -> list[float]:
    """Candidates for alpha in alpha * M * N + beta * P: the floating-point parameters; P is zero before the launch."""
    values = [float(v) for v in bound.arguments.values() if isinstance(v, np.floating)]
    return [v for v in values if v not in (0.0, 1.0) and np.isfinite(v)]


def _uncovered(name: str, written: np.ndarray, geometry: Geometry, launch: Place | None, m: int, n: int) -> Finding:
    rows, cols = np.nonzero(~written)
    finding = Finding(Kind.UNCOVERED, "", launch, name, "launch", count=len(rows))
    finding.touches = [
        Touch((), (), 0, requested=(int(r), int(c)))
        for r, c in zip(rows[:MAX_TOUCHES], cols[:MAX_TOUCHES], strict=True)
    ]
    finding.hint = _coverage_hint(geometry, m, n)
    return finding


def _reading(bound: Bound, written: np.ndarray) -> Reading | None:
    one, two, have = (bound.arrays[role] for role in "MNP")
    assert bound.shape is not None
    return find_reading(one.reshape(-1), two.reshape(-1), have.reshape(-1), written.reshape(-1), bound.shape)


def is_intended(reading: Reading, shape: tuple[int, int, int], function: Function, source: Source) -> bool:
    """Whether the kernel is intended to compute this reading, under which P is right: its text mentions transposition,
    or three different sizes rule out a mistake. Of square matrices, one transposed operand means swapped indices."""
    if reading.swapped:
        return False
    if reading.semiring != "plus_times" or len(reading.transposed) == 3 or len(set(shape)) == 3:
        return True
    first = max(0, function.span.line - 12)
    last = max((t.line for t in tokens_of(function.tokens or [])), default=function.span.line)
    return TRANSPOSED.search("\n".join(source.lines[first:last])) is not None


def _wrong_product(
    bound: Bound, buffer: Buffer, have: np.ndarray, expected: np.ndarray, wrong: np.ndarray, written: np.ndarray,
    source: Source, reading: Reading | None,
) -> Finding:  # fmt: skip
    name = buffer.name
    span = buffer.shadow.last_write if buffer.shadow is not None else None
    place = source.place(span.line, span.column, span.length) if span is not None else None
    rows, cols = np.nonzero(wrong)
    finding = Finding(Kind.WRONG_PRODUCT, "", place, name, "store", count=len(rows))
    for r, c in zip(rows[:MAX_TOUCHES].tolist(), cols[:MAX_TOUCHES].tolist(), strict=True):
        finding.touches.append(Touch((), (), 0, requested=(r, c), value=float(have[r, c])))
    r, c = int(rows[0]), int(cols[0])
    finding.wrong = Wrong(len(rows), (r, c), float(have[r, c]), float(expected[r, c]))
    finding.evidence = f"{name}[{r}][{c}] is {float(have[r, c]):g}, the product is {float(expected[r, c]):g}"
    if have.dtype.kind == "f" and _integral(have[written]) and not _integral(expected):
        finding.hint = f"{name} holds whole numbers only: is the sum kept in an integer?"
    elif reading is not None and bound.matrices is not None:
        names = {role: v.name for role, v in bound.matrices.items()}
        finding.hint = f"P would be right if {reading.describe(names)}: row and column are swapped in an index"
    elif terms := terms_missing(bound, have, wrong):
        finding.hint = terms
    return finding


def terms_missing(bound: Bound, have: np.ndarray, wrong: np.ndarray) -> str:
    """A hint if P is the sum of the first terms only."""
    one, two = (bound.arrays[role].astype(np.float64) for role in "MN")
    rows, cols = (x[:MAX_TOUCHES] for x in np.nonzero(wrong))
    sums = np.cumsum(one[rows, :] * two[:, cols].T, axis=1)
    held = have[rows, cols].astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(sums - held[:, None]) <= 1e-5 * (np.abs(sums) + 1)
    counts = np.flatnonzero(close.all(axis=0))
    k = one.shape[1]
    if not len(counts):
        return "" if held.any() or not len(held) else "P is all zeros: no term was added"
    last = int(counts[-1]) + 1
    return f"{last} of {k} terms were added: the loop over k ends too early" if last < k else ""


def elementwise(one: np.ndarray, two: np.ndarray, have: np.ndarray, written: np.ndarray) -> bool:
    """Whether P is the elementwise sum, difference or product, whose kernels have the same parameters."""
    if not (one.shape == two.shape == have.shape == written.shape) or have.dtype.kind == "b" or have.size < 2:
        return False
    held = have[written]
    if not (held != held[:1]).any():  # constant: all zeros would be M - N with M = N
        return False
    with np.errstate(all="ignore"):
        return any(np.array_equal(op(one, two)[written], held) for op in (np.add, np.subtract, np.multiply))


def _integral(values: np.ndarray) -> bool:
    return bool(np.all(values == np.rint(values)))


def product(bound: Bound) -> np.ndarray | None:
    """M · N in int64 or float64."""
    one, two, have = bound.arrays.get("M"), bound.arrays.get("N"), bound.arrays.get("P")
    if one is None or two is None or have is None or one.shape[1] != two.shape[0]:
        return None
    if have.dtype.kind == "b":
        return np.asarray((one != 0).astype(np.float32) @ (two != 0).astype(np.float32) > 0)
    with np.errstate(all="ignore"):
        if have.dtype.kind in "iu" and one.dtype.kind in "iu":
            return integer_product(one.astype(np.int64), two.astype(np.int64))
        return np.asarray(one.astype(np.float64) @ two.astype(np.float64))


def integer_product(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """M · N in int64, which wraps. NumPy multiplies integers without a BLAS, so that parts of 16 bits
    are multiplied as float64, as many as the largest value has: up to 2^21 of their products have an exact sum."""
    out = np.zeros((one.shape[0], two.shape[1]), np.int64)
    for i, left in enumerate(_halfwords(one)):
        for j, right in enumerate(_halfwords(two)[: 4 - i]):  # those beyond are multiples of 2^64
            out += (left @ right).astype(np.int64) << 16 * (i + j)
    return out


def _halfwords(values: np.ndarray) -> list[np.ndarray]:
    """The values' digits of base 2^16, the last one signed, as float64."""
    out = []
    while (values >> 15 != values >> 63).any():  # one needs more than 16 bits
        out.append((values & 0xFFFF).astype(np.float64))
        values = values >> 16
    return [*out, values.astype(np.float64)]


def product_over(bound: Bound, semiring: Semiring) -> np.ndarray | None:
    """M · N over another semiring; None if it does not support the dtype."""
    one, two, have = bound.arrays.get("M"), bound.arrays.get("N"), bound.arrays.get("P")
    if one is None or two is None or have is None or one.shape[1] != two.shape[0] or one.dtype.name not in DTYPES:
        return None
    algebra = semiring.over(DTYPES[one.dtype.name])
    sums = np.full((one.shape[0], two.shape[1]), algebra.zero, algebra.partial.numpy)
    with np.errstate(all="ignore"):
        for i in range(one.shape[1]):
            sums = algebra.add(sums, algebra.mul(one[:, i, None], two[None, i, :]))
    return np.asarray(sums).astype(have.dtype)


def differs(have: np.ndarray, expected: np.ndarray, bound: Bound) -> Any:
    if have.dtype.kind == "b":
        return have != expected
    if have.dtype.kind in "iu":  # a sum that does not fit may wrap or be clipped
        low, high = np.iinfo(have.dtype).min, np.iinfo(have.dtype).max
        clipped = (have == np.clip(expected, low, high)) | (have == np.clip(expected, -high, high))
        return (have != expected.astype(have.dtype)) & ~(clipped & ((expected <= low) | (expected > high)))
    one, two = bound.arrays["M"], bound.arrays["N"]
    size = min(have.dtype.itemsize, one.dtype.itemsize)
    scale = np.abs(one.astype(np.float64)) @ np.abs(two.astype(np.float64))
    tolerance = TOLERANCE.get(size, 1e-12) * (scale + 1e-30)
    with np.errstate(all="ignore"):
        return ~((have == expected) | (np.abs(have.astype(np.float64) - expected) <= tolerance))


def _coverage_hint(geometry: Geometry, m: int, n: int) -> str:
    gx, gy, _ = geometry.grid
    bx, by, _ = geometry.block
    across, down = gx * bx, gy * by
    if across < n and down >= n and across >= m:
        return (
            f"the axes of the grid are swapped: x must cover the {n} columns of P and y its {m} rows, "
            f"but x covers {across} and y {down}"
        )
    short = []
    if across < n:
        short.append(f"x covers {across} of {n} columns")
    if down < m:
        short.append(f"y covers {down} of {m} rows")
    if short:
        return (
            f"{' and '.join(short)}: round the grid up, (size + tile - 1) / tile; in C, ceil(n / 16) of two "
            "integers has already rounded down"
        )
    return "the launch reaches these cells, but no thread stores to them"


def cost_findings(costs: Costs, program: Program, source: Source) -> list[Finding]:
    """Bank conflicts, uncoalesced accesses and divergence: costs, never faults."""
    sites: dict[int, Site] = {s.number: s for s in program.site_list}
    out: list[Finding] = []
    for number, cost in costs.shared.items():
        if number in sites and cost.units > cost.least and cost.requests:
            each, best = cost.units / cost.requests, cost.least / cost.requests
            message = f"{each:.1f} passes a warp through the banks (at worst {cost.worst}) where {best:.1f} would do"
            out.append(_at(Kind.BANK_CONFLICT, sites[number], source, cost.units - cost.least, message))
            out[-1].hint = "pad the array's rows by one element, or let neighbouring threads read neighbouring words"
    for number, cost in costs.globals.items():
        if number in sites and cost.units >= 2 * cost.least and cost.units - cost.least > cost.requests:
            each, best = cost.units / cost.requests, cost.least / cost.requests
            message = f"{each:.1f} sectors of 32 bytes a warp where {best:.1f} would do"
            out.append(_at(Kind.UNCOALESCED, sites[number], source, cost.units - cost.least, message))
            out[-1].hint = "let threads with neighbouring threadIdx.x touch neighbouring elements"
    for number, (met, divided) in costs.branches.items():
        if number in sites and divided:
            out.append(_at(Kind.DIVERGENCE, sites[number], source, divided))
            out[-1].message = f"{divided} of {met} warps that met this branch were split by it"
    return out


def _at(kind: Kind, site: Site, source: Source, count: int, message: str = "") -> Finding:
    span = site.span
    place = source.place(span.line, span.column, span.length)
    return Finding(kind, f"{site.label}: {message}", place, count=count)
