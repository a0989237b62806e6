"""An understood call run on its device: on the host, in the interpreter, on the card, or on the card and back."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tilewise.algebra.dtypes import DTYPES, FLOAT8, DType, promote
from tilewise.algebra.no_edge import around, no_edge_of
from tilewise.arrays import HostArray, Library, Operand
from tilewise.engines import cpu, reference
from tilewise.engines.cpu.known import remember
from tilewise.engines.cuda.ready import remember_queue
from tilewise.engines.reference.finish import finish
from tilewise.engines.reference.limits import NOMINAL, measured_machine
from tilewise.float8_scales import Scales
from tilewise.machine import Machine, Times
from tilewise.planning import make_plan
from tilewise.plans import Plan
from tilewise.problem import Layout, Problem, row_major
from tilewise.shapes import ProductShape


@dataclass(frozen=True)
class Call:
    """A call, understood: operands as (stacks of) matrices, and what they make."""

    problem: Problem
    shape: ProductShape
    device: str  # where it runs
    library: Library
    M: Operand
    N: Operand
    out: Operand | None
    scales: Scales | None = None
    bias: Operand | None = None


def machine_of(device: str, measured: bool = False) -> Machine:
    if device == "cpu":
        from tilewise.engines.cpu.limits import host_machine

        return host_machine(measured_machine() if measured else NOMINAL)
    if device == "simt":
        from tilewise.engines.simt.multiply import MACHINE

        return MACHINE
    from tilewise.engines.cuda.device import describe

    return describe(device)


def needs_detour(call: Call) -> bool:
    """Whether the engine must not write to `out` itself: it holds operands, or is of another dtype."""
    out = call.out
    assert out is not None
    return out.overlaps(call.M) or out.overlaps(call.N) or out.dtype != call.problem.result or out.converted


def execute(
    call: Call,
    product: Operand,
    kernel: str | None,
    tile: int | None,
    arg: Operand | None = None,
    key: tuple[Any, ...] | None = None,
    again: tuple[Any, ...] | None = None,
) -> tuple[Plan, Times]:
    """Run the call on its device; `product` (and `arg`) is written in place. Work on arrays of the card is queued, not
    timed. `key` is what a call like this one will be known by, `again` this very one, addresses included."""
    target = product.with_axis(-1) if call.shape.vector_n else product
    target = target.with_axis(-2) if call.shape.vector_m else target
    if call.problem.epilogue and call.device in ("cpu", "simt"):
        return _epilogue_after(call, target, kernel, tile)
    if call.device == "cpu":
        return _on_the_host(call, target, kernel, tile, arg, key)
    if call.device == "simt":
        return _in_the_interpreter(call, target, kernel, tile)
    if call.M.device == "cpu":
        return _on_the_card_and_back(call, target, kernel, tile, arg)
    return _on_the_card(call, target, kernel, tile, arg, key, again)


def _epilogue_after(call: Call, target: Operand, kernel: str | None, tile: int | None) -> tuple[Plan, Times]:
    """On the host: the bare product, then one pass from its sums to P."""
    problem, started = call.problem, time.perf_counter()
    sums = call.library.empty((*call.shape.stack, problem.m, problem.n), problem.bare.result, "cpu")
    bare = replace(call, problem=problem.bare, bias=None)
    run = _in_the_interpreter if call.device == "simt" else _on_the_host
    run(bare, sums, kernel, tile, *((None, None) if run is _on_the_host else ()))
    hosts = _hosts(sums, target)
    finish(
        problem.epilogue, hosts[0], None if call.bias is None else _hosts(call.bias)[0], hosts[1], problem.accumulate
    )
    return make_plan(problem, machine_of(call.device), kernel, tile), Times(0.0, time.perf_counter() - started, 0.0)


def _on_the_host(
    call: Call, target: Operand, kernel: str | None, tile: int | None, arg: Operand | None, key: tuple[Any, ...] | None
) -> tuple[Plan, Times]:
    M, N, P = _hosts(call.M, call.N, target)
    problem = replace(call.problem, layout_p=target.layout(call.shape.stack))
    if call.scales is not None:  # sums stay float32 until they are scaled
        start = time.perf_counter()
        sums = np.empty(P.shape, np.float32)
        single = replace(problem, wanted=DTYPES["float32"], layout_p=row_major(problem.m, problem.n), scaled=False)
        made = make_plan(single, machine_of("cpu"), kernel, tile)
        (reference if made.engine == "reference" else cpu).run(made, M, N, sums)
        with np.errstate(all="ignore"):
            P[...] = call.scales.apply(sums).astype(P.dtype)
        return made, Times(0.0, time.perf_counter() - start, 0.0)
    made = make_plan(problem, machine_of("cpu"), kernel, tile)
    start = time.perf_counter()
    if made.engine == "reference":
        reference.run(made, M, N, P)
    else:
        ready = cpu.run(made, M, N, P, None if arg is None else _hosts(arg)[0].reshape(P.shape))
        if ready is not None and key is not None and not (call.M.converted or call.N.converted):
            ready.shape, ready.keeps = call.shape.product, problem.semiring
            remember(key, ready)
    return made, Times(0.0, time.perf_counter() - start, 0.0)


def _in_the_interpreter(call: Call, target: Operand, kernel: str | None, tile: int | None) -> tuple[Plan, Times]:
    """The kernels work on contiguous copies, so the plan is made for those."""
    from tilewise.engines.simt import multiply

    p = call.problem
    problem = replace(p, layout_m=travelled(call.M, p.stack), layout_n=travelled(call.N, p.stack))
    made = make_plan(problem, multiply.MACHINE, kernel, tile)
    M, N, P = _hosts(call.M, call.N, target)
    start = time.perf_counter()
    multiply.run(made, M, N, P)
    return made, Times(0.0, time.perf_counter() - start, 0.0)


def _on_the_card(
    call: Call,
    target: Operand,
    kernel: str | None,
    tile: int | None,
    arg: Operand | None,
    key: tuple[Any, ...] | None,
    again: tuple[Any, ...] | None,
) -> tuple[Plan, Times]:
    from cuda.core import Stream

    from tilewise.arrays.card import open_card
    from tilewise.engines.cuda import launch

    open_card(call.device)
    problem = replace(call.problem, layout_p=target.layout(call.shape.stack))
    made = make_plan(problem, machine_of(call.device), kernel, tile)
    stream = Stream.from_handle(call.library.stream(call.device))
    where = 0 if arg is None else arg.pointer
    addresses = call.M.pointer, call.N.pointer, target.pointer
    if call.scales is not None:
        launch.run_scaled(made, *addresses, call.device, stream, call.scales)
        return made, Times(0.0, 0.0, 0.0)
    bias = 0 if call.bias is None else call.bias.pointer
    queue = launch.prepare(made, *addresses, call.device, stream, where, bias)
    queue()
    if again is not None and problem.epilogue:
        remember_queue(again, queue)
    if key is not None and call.library.name == "torch":
        from tilewise.engines.cuda.ready import Ready

        remember(key, Ready(made, call, target))
    return made, Times(0.0, 0.0, 0.0)


def _on_the_card_and_back(
    call: Call, target: Operand, kernel: str | None, tile: int | None, arg: Operand | None
) -> tuple[Plan, Times]:
    """Host arrays travel as contiguous copies, so the plan is made for those; what the card cannot hold is streamed."""
    from tilewise.arrays.card import memory as card_memory
    from tilewise.engines.cuda.host import multiply_on_device

    p = call.problem
    problem = replace(p, layout_m=travelled(call.M, p.stack), layout_n=travelled(call.N, p.stack))
    made = make_plan(problem, machine_of(call.device), kernel, tile)
    M, N, P = _hosts(call.M, call.N, target)
    pinned = p.stack or p.accumulate or kernel or tile or arg is not None or p.epilogue
    if not pinned and M.nbytes + N.nbytes + P.nbytes > card_memory(call.device)[0]:
        from tilewise.scale.product import streamed
        from tilewise.scale.sources import ArraySource
        from tilewise.scale.targets import ArrayTarget

        start = time.perf_counter()
        sources = ArraySource(M, "M"), ArraySource(N, "N")
        streamed(*sources, p.semiring, None, call.device, p.precision).run(ArrayTarget(P))
        return made, Times(0.0, time.perf_counter() - start, 0.0)
    bias = None if call.bias is None else np.ascontiguousarray(_hosts(call.bias)[0])
    where = None if arg is None else _hosts(arg)[0]
    return made, around(
        no_edge_of(p.algebra),
        lambda M, N, P, where: multiply_on_device(made, M, N, P, call.device, where, bias),
        M, N, P, where, p.algebra if p.accumulate else None,
    )  # fmt: skip


def _hosts(*operands: Operand) -> list[HostArray]:
    hosts = []
    for operand in operands:
        assert operand.host is not None
        hosts.append(operand.host)
    return hosts


def travelled(operand: Operand, stack: tuple[int, ...]) -> Layout:
    """The layout of an operand's contiguous copy on the card, broadcast over the stack as the operand is."""
    *own, rows, cols = operand.shape
    fresh = row_major(rows, cols, tuple(own))
    strides = (*fresh.stack, fresh.row, fresh.col)
    return replace(operand, strides=strides, pointer=0).layout(stack)


def side_by_side(operand: Operand) -> Operand:
    """The same numbers in memory of their own if they lie apart."""
    if operand.host is not None or not operand.shape or operand.strides[-1] == 1 or operand.shape[-1] <= 1:
        return operand
    made = operand.library.empty(operand.shape, operand.dtype, operand.device)
    copy(operand, made)
    return made


def narrowed(operand: Operand, dtype: DType) -> Operand:
    """The operand in `dtype=`, where that does not hold its own: then NumPy rounds before it multiplies, and so do we.
    What it does hold is widened on the way into the tiles."""
    if operand.dtype.name in FLOAT8 or promote(operand.dtype, dtype) == dtype:
        return operand
    made = operand.library.empty(operand.shape, dtype, operand.device)
    copy(operand, made, "unsafe")
    return replace(made, converted=True)


def copy(source: Operand, target: Operand, casting: Literal["same_kind", "unsafe"] = "same_kind") -> None:
    """From one operand to another of the same shape, wherever both lie."""
    if target.host is not None and source.host is not None:
        with np.errstate(all="ignore"):
            np.copyto(target.array if target.converted else target.host, source.host, casting=casting)
        return
    from cuda.core import Stream

    from tilewise.engines.cuda import launch
    from tilewise.engines.cuda.placed import Placed

    stream = Stream.from_handle(target.library.stream(target.device))
    placed = []
    for operand in (source, target):
        while len(operand.shape) < 2:
            operand = operand.with_axis(-1)
        rows, cols = operand.shape[-2:]
        layout = operand.layout(operand.shape[:-2])
        placed.append(Placed(operand.pointer, operand.dtype, rows, cols, layout))
    launch.copy(placed[0], placed[1], source.shape[:-2], target.device, stream)
