"""Execution of a bound call: on the host, in the emulator, on a card, or on a card and back.

A call is planned once, here, for the layouts of its arrays.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.no_edge import no_edge_of, run_encoded
from tilewise.arrays import HostArray, Operand
from tilewise.arrays.float8_scales import scaled
from tilewise.backends import reference
from tilewise.backends.cpu.kernels.epilogue.run import HostEpilogue, Scaling
from tilewise.core.machine import Machine, Times
from tilewise.core.options import Options
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.core.recipe import Recipe
from tilewise.dispatch.bind import Call, matrices
from tilewise.dispatch.prepared import MoreThanAProduct
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import launcher_of
from tilewise.scale.pieces import is_long, run_in_pieces

NO_TIME = Times(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Done:
    """The plan, its times, and the executable that can be cached under the call's signature: the cpu backend's `Ready`
    or a card's `Launcher`; None where the call is not cached."""

    plan: Plan
    times: Times
    executable: Any = None


class Outcome(NamedTuple):
    """A product, the winning k where requested, and what ran."""

    product: Operand
    arg: Operand | None
    done: Done


def machine_of(device: str, measured: bool = False) -> Machine:
    if device == "cpu":
        from tilewise.backends.cpu.limits import host_machine

        return host_machine(measured)
    if device == "simt":
        from tilewise.emulator.multiply import MACHINE

        return MACHINE
    from tilewise.backends.cuda.device import describe

    return describe(device)


def run(call: Call, o: Options) -> Outcome:
    """The call's product in `out`, or in new memory."""
    work = product = call.out or _fresh(call)
    arg = call.library.empty(call.shape.product, DTYPES["int64"], call.M.device) if o.return_arg else None
    via_temporary = call.out is not None and _needs_temporary(call, call.out)
    if via_temporary:
        work = _fresh(call)
        if call.problem.accumulate:
            copy(product, work)
    done = execute(call, work, o.kernel, o.tile, arg)
    if via_temporary:
        copy(work, product)
        if not _is_copied_again(call, product, done.executable):
            done = replace(done, executable=None)
    return Outcome(product, arg, done)


def _fresh(call: Call) -> Operand:
    return call.library.empty(call.shape.product, call.problem.result, call.M.device)


def _needs_temporary(call: Call, out: Operand) -> bool:
    """Whether the backend must not write to `out`: it overlaps an operand, or has another dtype."""
    return out.overlaps(call.M) or out.overlaps(call.N) or out.dtype != call.problem.result or out.converted


def _is_copied_again(call: Call, out: Operand, executable: Any) -> bool:
    """Whether a prepared call (`OnHost`) can repeat a product in new memory and its copy to `out`."""
    plain = call.library.name == "numpy" and call.device == "cpu" and not (out.converted or call.problem.accumulate)
    if not plain or isinstance(executable, MoreThanAProduct):
        return False
    return out.dtype != call.problem.result or bool(out.array.flags.c_contiguous)


def execute(call: Call, product: Operand, kernel: str | None, tile: int | None, arg: Operand | None = None) -> Done:
    """Run the call on its device; `product` (and `arg`) is written in place. Work on arrays of the card is queued, not
    timed."""
    return EXECUTORS[_executor(call)](call, matrices(product, call.shape), kernel, tile, arg)


def _executor(call: Call) -> str:
    """The key of `EXECUTORS` for a call, by its device and the location of its arrays."""
    if call.device not in ("cpu", "simt"):
        return "card and back" if call.M.device == "cpu" else "card"
    return "epilogue after" if call.problem.epilogue else call.device


def _epilogue_after(call: Call, target: Operand, kernel: str | None, tile: int | None, arg: Operand | None) -> Done:
    """On the host: the bare product, then one pass from its sums to P."""
    problem, started = call.problem, time.perf_counter()
    made = make_plan(problem, machine_of(call.device), kernel, tile)
    sums = call.library.empty((*call.shape.stack, problem.m, problem.n), problem.bare.result, "cpu")
    bare, done = replace(call, problem=problem.bare, bias=None), None
    if call.device == "simt":
        _in_emulator(bare, sums, kernel, tile, None)
    else:
        done = _on_host(bare, sums, kernel, tile, None)
    bias = None if call.bias is None else hosts(call.bias)[0]
    made_of, P = hosts(sums, target)
    epilogue = HostEpilogue(problem.epilogue, made_of, problem.result.numpy, problem.accumulate)
    epilogue(made_of, bias, P)
    spent = Times(0.0, time.perf_counter() - started, 0.0)
    if done is None or done.executable is None or len(call.shape.product) < 2:
        return Done(made, spent)
    ready, converted = (
        (done.executable.ready, done.executable.converted)
        if isinstance(done.executable, MoreThanAProduct)
        else (done.executable, (False, False))
    )
    return Done(made, spent, MoreThanAProduct(ready, converted, False, epilogue))


def _on_host(call: Call, target: Operand, kernel: str | None, tile: int | None, arg: Operand | None) -> Done:
    from tilewise.backends.cpu.run import run as run_on_cpu  # lazily: products on a card do not load the CPU kernels

    M, N, P = hosts(call.M, call.N, target)
    problem, layout_p = call.problem, target.layout(call.shape.stack)
    problem = problem if layout_p == problem.layout_p else replace(problem, layout_p=layout_p)
    if call.scales is not None:  # sums stay float32 until they are scaled
        start = time.perf_counter()
        sums = np.empty(P.shape, np.float32)
        single = replace(problem, requested=DTYPES["float32"], layout_p=row_major(problem.m, problem.n), scaled=False)
        made = make_plan(single, machine_of("cpu"), kernel, tile)
        ready = (reference.run if made.engine == "reference" else run_on_cpu)(made, M, N, sums)
        with np.errstate(all="ignore"):
            P[...] = scaled(sums, *call.scales.on_host).astype(P.dtype)
        executable = None
        if ready is not None and P.dtype == np.float32 and len(call.shape.product) == 2:
            executable = _scaled_executable(call, ready)
        return Done(made, Times(0.0, time.perf_counter() - start, 0.0), executable)
    made = make_plan(problem, machine_of("cpu"), kernel, tile)
    start, ready = time.perf_counter(), None
    if made.engine == "reference":
        reference.run(made, M, N, P)
    elif is_long(problem, made.machine):
        where = None if arg is None else hosts(arg)[0].reshape(P.shape)
        run_in_pieces(problem, made.machine, M, N, P, where, kernel, tile)
    else:
        ready = run_on_cpu(made, M, N, P, None if arg is None else hosts(arg)[0].reshape(P.shape))
        if ready is not None:
            ready.shape = call.shape.product
    spent, converted = Times(0.0, time.perf_counter() - start, 0.0), (call.M.converted, call.N.converted)
    if ready is not None and (any(converted) or arg is not None):
        return Done(made, spent, MoreThanAProduct(ready, converted, arg is not None))
    return Done(made, spent, ready)


def _scaled_executable(call: Call, ready: Any) -> MoreThanAProduct:
    assert call.scales is not None
    ready.shape = call.shape.product
    _, rows, columns = call.scales.on_host
    scaling = Scaling(rows, columns, (call.problem.m, call.problem.n))
    return MoreThanAProduct(ready, (call.M.converted, call.N.converted), False, None, scaling)


def _in_emulator(call: Call, target: Operand, kernel: str | None, tile: int | None, arg: Operand | None) -> Done:
    """The emulator runs on contiguous copies, so the plan is made for those."""
    from tilewise.emulator import multiply
    from tilewise.kernels.registry import COURSE

    p = call.problem
    problem = replace(p, layout_m=layout_of_copy(call.M, p.stack), layout_n=layout_of_copy(call.N, p.stack))
    made = make_plan(problem, multiply.MACHINE, kernel, tile)
    M, N, P = hosts(call.M, call.N, target)
    start = time.perf_counter()
    multiply.run(made, COURSE.text(made), M, N, P)
    return Done(made, Times(0.0, time.perf_counter() - start, 0.0))


def _on_card(call: Call, target: Operand, kernel: str | None, tile: int | None, arg: Operand | None) -> Done:
    M, N, problem, scales = call.M, call.N, call.problem, None
    if call.out is None or target is not call.out:
        layout_p = target.layout(call.shape.stack)
        problem = problem if layout_p == problem.layout_p else replace(problem, layout_p=layout_p)
    made, final = _plan_on_card(problem, call.device, kernel, tile)
    given = {"M": M.pointer, "N": N.pointer, "P": target.pointer}
    more = {"arg": arg, "bias": _contiguous(call.bias)}
    if call.scales is not None:
        from tilewise.kernels.shared.placed import Scales

        scales = Scales(call.scales.factor, *call.scales.steps)
        more |= {"scale_m": call.scales.of_m, "scale_n": call.scales.of_n}
    given |= {name: x.pointer for name, x in more.items() if x is not None}
    launcher = launcher_of(made, call.device, scales, (_span(M), _span(N), _span(target)))
    stream = call.library.stream(call.device)
    if not launcher.scratch_bytes:
        launcher(stream, **given)
    else:
        from tilewise.backends.cuda.scratch import scratch

        with scratch(launcher.scratch_bytes, call.library.name, call.device, stream) as held:
            launcher(stream, scratch=held, **given)
    repeatable = not (call.M.converted or call.N.converted) and arg is None and call.scales is None
    return Done(made, NO_TIME, launcher if repeatable and final else None)


def _plan_on_card(problem: Problem, device: str, kernel: str | None, tile: int | None) -> tuple[Plan, bool]:
    """The plan, and whether it is final: with TILEWISE_WAIT=0 another plan is used until its kernels are compiled."""
    from tilewise.planning.precompile import built_alternative, waits

    machine = machine_of(device)
    if not waits() and kernel is None and tile is None and not (problem.scaled or problem.return_arg):
        other = built_alternative(problem, machine)
        if other is not None:
            return other, False
    return make_plan(problem, machine, kernel, tile), True


def _span(x: Operand) -> tuple[int, int]:
    """The range of bytes of an array, relative to its address."""
    low, high = x.extent
    return low - x.pointer, high - x.pointer


def _contiguous(bias: Operand | None) -> Operand | None:
    """The bias, copied if its elements are not contiguous."""
    if bias is None or bias.host is not None or bias.strides[-1] == 1 or bias.shape[-1] <= 1:
        return bias
    made = bias.library.empty(bias.shape, bias.dtype, bias.device)
    copy(bias, made)
    return made


def _on_card_and_back(call: Call, target: Operand, kernel: str | None, tile: int | None, arg: Operand | None) -> Done:
    """Host arrays are sent as contiguous copies, for which the plan is made; a product that exceeds the card's memory
    is streamed."""
    from tilewise.arrays.card import memory as card_memory
    from tilewise.backends.cuda.host import multiply_on_device

    p = call.problem
    layout_m, layout_n = (layout_of_copy(x, p.stack) for x in (call.M, call.N))
    problem = replace(p, layout_m=layout_m, layout_n=layout_n, layout_p=row_major(p.m, p.n, p.stack))
    made = make_plan(problem, machine_of(call.device), kernel, tile)
    M, N, P = hosts(call.M, call.N, target)
    pinned = p.stack or p.accumulate or kernel or tile or arg is not None or p.epilogue
    if not pinned and M.nbytes + N.nbytes + P.nbytes > card_memory(call.device)[0]:
        return Done(made, _streamed(problem, M, N, P, call.device))
    launcher = launcher_of(made, call.device)
    bias = None if call.bias is None else np.ascontiguousarray(hosts(call.bias)[0])
    return Done(
        made,
        run_encoded(
            no_edge_of(p.algebra),
            lambda M, N, P, where: multiply_on_device(launcher, p.accumulate, M, N, P, arg=where, bias=bias),
            M, N, P, None if arg is None else hosts(arg)[0], p.algebra if p.accumulate else None,
        ),
    )  # fmt: skip


EXECUTORS = {
    "cpu": _on_host,
    "simt": _in_emulator,
    "epilogue after": _epilogue_after,
    "card": _on_card,
    "card and back": _on_card_and_back,
}


def _streamed(p: Problem, M: HostArray, N: HostArray, P: HostArray, device: str) -> Times:
    from tilewise.scale.product import plan_stream
    from tilewise.scale.sources import ArraySource
    from tilewise.scale.targets import ArrayTarget

    start = time.perf_counter()
    sources = ArraySource(M, "M"), ArraySource(N, "N")
    plan_stream(*sources, p.semiring, None, device, p.precision).run(ArrayTarget(P))
    return Times(0.0, time.perf_counter() - start, 0.0)


def hosts(*operands: Operand) -> list[HostArray]:
    """Host operands as NumPy arrays."""
    return [operand.memory for operand in operands]


def layout_of_copy(operand: Operand, stack: tuple[int, ...]) -> Layout:
    """The layout of an operand's contiguous copy on the card, broadcast over the stack as the operand is."""
    *own, rows, cols = operand.shape
    fresh = row_major(rows, cols, tuple(own))
    strides = (*fresh.stack, fresh.row, fresh.col)
    return replace(operand, strides=strides, pointer=0).layout(stack)


def copy(source: Operand, target: Operand) -> None:
    """Copy one operand to another of the same shape, both on the host or both on a card."""
    if target.host is not None and source.host is not None:
        with np.errstate(all="ignore"):
            np.copyto(target.array if target.converted else target.host, source.host, casting="same_kind")
        return
    from tilewise.backends.cuda.launcher import Launcher

    stream = target.library.stream(target.device)
    recipe = _copy_recipe(source, target)
    Launcher(recipe, target.device)(stream, M=source.pointer, P=target.pointer)


def _copy_recipe(source: Operand, target: Operand) -> Recipe:
    from tilewise.kernels.transforms.pack import copy_recipe

    while len(source.shape) < 2:
        source, target = source.with_axis(-1), target.with_axis(-1)
    rows, cols = source.shape[-2:]
    stack = source.shape[:-2]
    return copy_recipe(rows, cols, stack, source.dtype, source.layout(stack), target.dtype, target.layout(stack))
