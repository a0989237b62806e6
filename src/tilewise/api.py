"""To do it: arrays → Problem → Plan → engine → arrays. The one straight line from a person's call to a kernel."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Semiring
from tilewise.arrays import HostArray, Library, Operand, find_library
from tilewise.arrays.card import card_number
from tilewise.engines import reference
from tilewise.engines.reference.limits import NOMINAL, measured_machine
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.machine import Machine, Times
from tilewise.planning import Plan, make_plan
from tilewise.problem import Layout, Problem, check_precision, row_major
from tilewise.shapes import ProductShape, product_shape


def matmul(
    M: Any,
    N: Any,
    /,
    *,
    semiring: str | Semiring = "plus_times",
    out: Any = None,
    device: str = "auto",
    kernel: str | None = None,
    tile: int | None = None,
    precision: str = "high",
    accumulate: bool = False,
) -> Any:
    """The product of M and N over a semiring, by the rules of `numpy.matmul`.

    M, N: arrays of NumPy, CuPy, PyTorch, JAX, or of any library with DLPack; both of one kind, and P is of that kind.
    semiring: a name (`plus_times`, `min_plus`, …), an alias (`tropical`, `viterbi`, …) or a `tw.Semiring`.
    out: where P goes; may overlap M or N.
    device: "auto" works where the operands are; "cuda" or "cuda:1" takes host arrays to a card and back.
    kernel, tile: pin the rung of the ladder and its TILE_WIDTH (1 to 32) instead of letting the plan choose.
    precision: float32 on a card: "ieee", "high" or "tf32".
    accumulate: add the product onto `out` with the semiring's add, instead of overwriting it.
    """
    call = _understand(M, N, semiring, out, device, precision, accumulate)
    product = call.out or call.library.empty(call.shape.product, call.problem.result, call.M.device)
    if call.out is not None and _needs_detour(call):
        work = call.library.empty(call.shape.product, call.problem.result, call.M.device)
        if accumulate:
            _copy(product, work)
        _execute(call, work, kernel, tile)
        _copy(work, product)
    else:
        _execute(call, product, kernel, tile)
    return out if out is not None else call.library.deliver(product)


@dataclass(frozen=True)
class Report:
    """A product with what ran and how long it took."""

    product: np.ndarray[Any, np.dtype[Any]]
    plan: Plan
    times: Times

    @property
    def gflops(self) -> float:
        """Billions of operations a second, a step counting as two."""
        return 2 * self.plan.problem.steps / self.times.kernel / 1e9 if self.times.kernel else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan.to_json(),
            "seconds": {"copy_in": self.times.copy_in, "kernel": self.times.kernel, "copy_out": self.times.copy_out},
            "gflops": self.gflops,
        }


def timed_matmul(
    M: np.ndarray[Any, np.dtype[Any]],
    N: np.ndarray[Any, np.dtype[Any]],
    *,
    semiring: str | Semiring = "plus_times",
    device: str = "cpu",
    kernel: str | None = None,
    tile: int | None = None,
    precision: str = "high",
) -> Report:
    """`matmul` of host arrays, with the clock: what the commands report from."""
    call = _understand(M, N, semiring, None, device, precision, False)
    product = call.library.empty(call.shape.product, call.problem.result, "cpu")
    made, times = _execute(call, product, kernel, tile)
    assert product.host is not None
    return Report(product.host, made, times)


def plan(
    M: Any,
    N: Any,
    /,
    *,
    semiring: str | Semiring = "plus_times",
    device: str = "auto",
    kernel: str | None = None,
    tile: int | None = None,
    precision: str = "high",
) -> Plan:
    """What `matmul` would run for these operands, and why. Nothing is multiplied."""
    call = _understand(M, N, semiring, None, device, precision, False)
    return make_plan(call.problem, _machine(call.device, measured=True), kernel, tile)


@dataclass(frozen=True)
class _Call:
    """A call, understood: operands as (stacks of) matrices, and what they make."""

    problem: Problem
    shape: ProductShape
    device: str  # where it runs
    library: Library
    M: Operand
    N: Operand
    out: Operand | None


def _understand(
    M: Any, N: Any, semiring: str | Semiring, out: Any, device: str, precision: str, accumulate: bool
) -> _Call:
    ring = find_semiring(semiring)
    check_precision(precision)
    library = find_library(M)
    _same_library(library, N, "N")
    left, right = library.operand(M, "M"), library.operand(N, "N")
    if left.device != right.device:
        raise DeviceError(f"M is on {left.device} and N is on {right.device}: bring them together first")
    if out is None and accumulate:
        raise UsageError("accumulate=True adds onto out=, and no out was given")
    given = None if out is None else _given_out(out, library, left)
    shape = product_shape(left.shape, right.shape, given.shape if given else None)
    left = left.with_axis(-2) if shape.vector_m else left
    right = right.with_axis(-1) if shape.vector_n else right
    problem = Problem(
        shape.m,
        shape.k,
        shape.n,
        shape.stack,
        left.dtype,
        right.dtype,
        ring,
        left.layout(shape.stack),
        right.layout(shape.stack),
        row_major(shape.m, shape.n, shape.stack),
        accumulate,
        precision,
    )
    if given is not None:
        _check_out_dtype(given, problem.result)
    return _Call(problem, shape, _where(left, device), library, left, right, given)


def _same_library(library: Library, other: Any, role: str) -> None:
    theirs = find_library(other)
    if theirs.name != library.name:
        raise UsageError(
            f"M is of {library.name} and {role} is of {theirs.name}: convert one, so that all are of one kind"
        )


def _given_out(out: Any, library: Library, left: Operand) -> Operand:
    _same_library(library, out, "out")
    if library.name == "jax":
        raise UsageError("JAX arrays are immutable, so they cannot be out=: leave it out and take what is returned")
    if library.name == "numpy" and not isinstance(out, np.ndarray):
        raise DtypeError(f"out must be an array, got {type(out).__name__}")
    given = library.operand(out, "out")
    if not given.writable:
        raise ShapeError("out is read-only: pass an array that can be written")
    if given.device != left.device:
        raise DeviceError(f"out is on {given.device} and M is on {left.device}: bring them together first")
    return given


def _check_out_dtype(given: Operand, result: DType) -> None:
    same = given.dtype == result
    if not same and not (given.library.name == "numpy" and np.can_cast(result.numpy, given.dtype.numpy, "same_kind")):
        raise DtypeError(f"out has dtype {given.dtype}, but the product has {result}: pass an out of dtype {result}")


def _where(left: Operand, device: str) -> str:
    """The device that works: where the operands are, unless host arrays are sent to a card."""
    if not isinstance(device, str):
        raise UsageError(f"device={device!r} must be a word: 'auto', 'cpu', 'cuda' or 'cuda:1'")
    if device == "auto":
        return left.device
    if device == "cpu":
        if left.device != "cpu":
            raise DeviceError(
                f"the operands are on {left.device} and device='cpu' was asked for: copy them to the host first"
            )
        return "cpu"
    asked = f"cuda:{card_number(device)}"
    if left.device not in ("cpu", asked):
        raise DeviceError(
            f"the operands are on {left.device} and device={device!r} was asked for: they do not travel by themselves"
        )
    return asked


def _machine(device: str, measured: bool = False) -> Machine:
    if device == "cpu":
        return measured_machine() if measured else NOMINAL
    from tilewise.engines.cuda.device import describe

    return describe(device)


def _needs_detour(call: _Call) -> bool:
    """Whether the engine must not write to `out` itself: it holds operands, is of another dtype, or broadcasts."""
    out = call.out
    assert out is not None
    folded = any(stride == 0 and size > 1 for stride, size in zip(out.strides, out.shape, strict=True))
    return out.overlaps(call.M) or out.overlaps(call.N) or out.dtype != call.problem.result or out.converted or folded


def _execute(call: _Call, product: Operand, kernel: str | None, tile: int | None) -> tuple[Plan, Times]:
    """Run the call on its device; `product` is written in place. Work on arrays of the card is queued, not timed."""
    target = product.with_axis(-1) if call.shape.vector_n else product
    target = target.with_axis(-2) if call.shape.vector_m else target
    if call.device == "cpu":
        return _on_the_host(call, target, kernel, tile)
    if call.M.device == "cpu":
        return _on_the_card_and_back(call, target, kernel, tile)
    return _on_the_card(call, target, kernel, tile)


def _on_the_host(call: _Call, target: Operand, kernel: str | None, tile: int | None) -> tuple[Plan, Times]:
    M, N, P = _hosts(call.M, call.N, target)
    made = make_plan(replace(call.problem, layout_p=target.layout(call.shape.stack)), NOMINAL, kernel, tile)
    start = time.perf_counter()
    reference.run(made, M, N, P)
    return made, Times(0.0, time.perf_counter() - start, 0.0)


def _on_the_card(call: _Call, target: Operand, kernel: str | None, tile: int | None) -> tuple[Plan, Times]:
    from cuda.core import Stream

    from tilewise.arrays.card import open_card
    from tilewise.engines.cuda import launch

    open_card(call.device)
    problem = replace(call.problem, layout_p=target.layout(call.shape.stack))
    made = make_plan(problem, _machine(call.device), kernel, tile)
    stream = Stream.from_handle(call.library.stream(call.device))
    launch.run(made, call.M.pointer, call.N.pointer, target.pointer, call.device, stream)
    return made, Times(0.0, 0.0, 0.0)


def _on_the_card_and_back(call: _Call, target: Operand, kernel: str | None, tile: int | None) -> tuple[Plan, Times]:
    """Host arrays travel as contiguous copies, so the plan is made for those."""
    from tilewise.engines.cuda.host import multiply_on_device

    p = call.problem
    problem = replace(p, layout_m=travelled(call.M, p.stack), layout_n=travelled(call.N, p.stack))
    made = make_plan(problem, _machine(call.device), kernel, tile)
    M, N, P = _hosts(call.M, call.N, target)
    return made, multiply_on_device(made, M, N, P, call.device)


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


def _copy(source: Operand, target: Operand) -> None:
    """From one operand to another of the same shape, wherever both lie."""
    if target.host is not None and source.host is not None:
        with np.errstate(all="ignore"):
            np.copyto(target.array if target.converted else target.host, source.host, casting="same_kind")
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
