"""Launching `kernels/ampere/`: operands as they lie or realigned, the product, and the parts of k added up."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from itertools import chain, product
from typing import Any

from tilewise.engines.cuda.few import FewJob, few_launches
from tilewise.engines.cuda.finish import add_parts, epilogue_argument
from tilewise.engines.cuda.placed import Placed, by_way_of_scratch
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.engines.cuda.realign import Lines, realign_launches
from tilewise.kernels.render_ampere import Form, render_mma_sync
from tilewise.mma_tiles import KERNEL, along_k, sum_of
from tilewise.plain_ways import arch_number
from tilewise.plans import Plan
from tilewise.problem import Layout
from tilewise.tensor_tiles import REALIGNED, along_columns, contiguous_lines

__all__ = ["KERNEL", "prepare"]

LINE_BYTES = 128  # what realigned lines start on


def prepare(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any, bias: int = 0) -> Callable[[], None]:
    """Everything that can be done before the launch; M and N have lines of elements side by side, P rows."""
    p, way = plan.problem, plan.mma
    assert way is not None
    needs = {
        role: _scratch_bytes(x, p.stack)
        for role, x, how in zip("MN", (M, N), way.routes, strict=True)
        if how == REALIGNED
    }
    if way.parts > 1:
        needs["sums"] = way.parts * p.m * _whole(p.n) * sum_of(p.dtype).itemsize
    for number, edge in enumerate(_edges(plan, M, N, P, device, stream)):
        if edge.plane_bytes:
            needs[f"few {number}"] = edge.plane_bytes
    return by_way_of_scratch(
        needs, lambda addresses: _launches(plan, M, N, P, bias, addresses, device, stream), device, stream
    )


def _launches(
    plan: Plan, M: Placed, N: Placed, P: Placed, bias: int, addresses: dict[str, int], device: str, stream: Any
) -> list[Launch]:
    """Realign what must be, multiply, and add up the parts of k if it was cut; `addresses` are of scratch buffers."""
    p, way = plan.problem, plan.mma
    assert way is not None
    ready, jobs = {"M": M, "N": N}, []
    for role, source in (("M", M), ("N", N)):
        if role in addresses:
            ready[role], work = _realigned(source, p.stack, addresses[role])
            jobs += work
    launches = realign_launches(jobs, device, stream)
    make = _Product(plan, ready["M"], ready["N"], P, bias, addresses.get("sums", 0), device, stream)
    for member in product(*(range(extent) for extent in p.stack)):
        launches.append(make.launch(member))
        if way.parts > 1:
            launches.append(make.add_parts(member))
    for number, edge in enumerate(_edges(plan, M, N, P, device, stream)):
        launches += chain.from_iterable(few_launches(edge, addresses.get(f"few {number}", 0)))
    return launches


def _edges(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> list[FewJob]:
    """The last rows of P, and what is left of its last columns."""
    p, way, edges = plan.problem, plan.mma, []
    assert way is not None
    m, n = p.m - way.edge_rows, p.n - way.edge_cols
    if way.edge_rows:
        last = M.part(m, way.edge_rows, 0, p.k), N, P.part(m, way.edge_rows, 0, p.n)
        edges.append(FewJob(p, plan.machine, *last, None, False, device, stream))
    if way.edge_cols:
        last = M.part(0, m, 0, p.k), N.part(0, p.k, n, way.edge_cols), P.part(0, m, n, way.edge_cols)
        edges.append(FewJob(p, plan.machine, *last, None, True, device, stream))
    return edges


class _Product:
    """The product of operands that are where the kernel wants them."""

    def __init__(
        self, plan: Plan, M: Placed, N: Placed, P: Placed, bias: int, sums: int, device: str, stream: Any
    ) -> None:
        p, way, arch = plan.problem, plan.mma, plan.machine.arch
        lead = P.layout.leading_dimension(P.rows, P.cols)
        assert way is not None
        assert lead is not None
        self._plan, self._way, self._lead, self._device, self._stream = plan, way, lead, device, stream
        self._m, self._n = p.m - way.edge_rows, p.n - way.edge_cols
        self._M, self._N, self._P, self._sums = M, N, P, sums
        self._shared_bytes = way.tile.shared_bytes(arch)
        self._function = kernel_function(source_of(plan, M, N, P), KERNEL, device, self._shared_bytes)
        self._epilogue = epilogue_argument(p.epilogue, sum_of(p.dtype).name, bias)

    def launch(self, member: tuple[int, ...]) -> Launch:
        p, way, size = self._plan.problem, self._way, self._plan.problem.dtype.itemsize
        each = way.phases_each(p.k, size)
        parts = max(1, math.ceil(math.ceil(p.k * size / 128) / each))
        target, lead = (self._sums, _whole(p.n)) if way.parts > 1 else (self._P.member(member), self._lead)
        arguments = (
            ctypes.c_void_p(self._M.member(member)),
            ctypes.c_void_p(self._N.member(member)),
            ctypes.c_void_p(target),
            self._epilogue,
            *(ctypes.c_int(extent) for extent in (self._m, p.k, self._n)),
            *(ctypes.c_longlong(x) for x in (_lead(self._M), _lead(self._N), lead)),
            ctypes.c_int(each),
        )
        tiles = math.ceil(self._m / way.tile.rows) * math.ceil(self._n / way.tile.cols)
        grid = (tiles, 1, parts)
        return Launch(self._function, grid, (way.tile.threads,), arguments, self._stream, self._shared_bytes)

    def add_parts(self, member: tuple[int, ...]) -> Launch:
        p, size = self._plan.problem, self._plan.problem.dtype.itemsize
        parts = max(1, math.ceil(math.ceil(p.k * size / 128) / self._way.phases_each(p.k, size)))
        place = (self._sums, _whole(p.n), self._P.member(member), self._lead)
        return add_parts(p, place, parts, self._epilogue, self._device, self._stream)


def source_of(plan: Plan, M: Placed, N: Placed, P: Placed) -> str:
    """The text for operands that lie so."""
    p, way, arch = plan.problem, plan.mma, plan.machine.arch
    lead = P.layout.leading_dimension(P.rows, P.cols)
    assert way is not None
    assert lead is not None
    store = math.gcd(16, P.pointer, *(s * P.dtype.itemsize for s in (lead, *P.layout.stack)))
    form = Form(
        along_k(M.layout, M.rows, M.cols, "M"),
        along_k(N.layout, N.rows, N.cols, "N"),
        _vector(M),
        _vector(N),
        16 if way.parts > 1 else store,
        p.accumulate,
        way.parts > 1,
    )
    stages, number = way.tile.stages(arch), min(90, arch_number(arch))
    return render_mma_sync(p.dtype, p.result, way.tile, stages, form, p.epilogue, number)


def _whole(extent: int) -> int:
    """The lead of a matrix of sums: they are written 16 bytes at a time."""
    return -(-extent // 4) * 4


def _lead(x: Placed) -> int:
    lines = contiguous_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    return lines[2]


def _vector(x: Placed) -> int:
    """Bytes that a copy may take: what all lines start on."""
    lines = contiguous_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    strides = (*(() if lines[0] <= 1 else (lines[2],)), *x.layout.stack)
    return math.gcd(16, x.pointer, *(stride * x.dtype.itemsize for stride in strides))


def _own_stack(x: Placed, stack: tuple[int, ...]) -> tuple[int, ...]:
    """The members an operand really has: an axis it is broadcast over counts once."""
    return tuple(1 if stride == 0 else extent for extent, stride in zip(stack, x.layout.stack, strict=True))


def _lead_to(x: Placed) -> int:
    """Elements from one realigned line to the next."""
    lines = contiguous_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    return -(-lines[1] * x.dtype.itemsize // LINE_BYTES) * LINE_BYTES // x.dtype.itemsize


def _scratch_bytes(x: Placed, stack: tuple[int, ...]) -> int:
    lines = contiguous_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    return math.prod(_own_stack(x, stack)) * lines[0] * _lead_to(x) * x.dtype.itemsize


def _realigned(x: Placed, stack: tuple[int, ...], pointer: int) -> tuple[Placed, list[Lines]]:
    """The same lines at `pointer`, each on a boundary of its own; they are moved as 2-byte elements."""
    lines = contiguous_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    count, length, lead = lines
    own, lead_to, halves = _own_stack(x, stack), _lead_to(x), x.dtype.itemsize // 2
    strides, step = [], count * lead_to
    for extent in reversed(own):
        strides.append(0 if extent == 1 else step)
        step *= extent
    fresh = tuple(reversed(strides))
    columns = along_columns(x.layout, x.rows, x.cols)
    made = Placed(pointer, x.dtype, x.rows, x.cols, Layout(1, lead_to, fresh) if columns else Layout(lead_to, 1, fresh))
    jobs = [
        Lines(x.member(i), made.member(i), count, length * halves, lead * halves, lead_to * halves)
        for i in product(*(range(extent) for extent in own))
    ]
    return made, jobs
