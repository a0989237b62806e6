"""Streamed products of the caller's arrays: sources and a target → Schedule → execution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Semiring
from tilewise.arrays import find_library
from tilewise.arrays.card import card_number
from tilewise.arrays.operand import out_operand
from tilewise.core.options import Options
from tilewise.core.shapes import written
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.scale import host
from tilewise.scale.budget import budget
from tilewise.scale.files import SPARE, problem_of
from tilewise.scale.schedule import Schedule
from tilewise.scale.sources import ArraySource, MatrixSource, ZarrSource, is_dask, is_zarr
from tilewise.scale.targets import ArrayTarget, MatrixTarget, ZarrArrayTarget
from tilewise.system.memory import usual_budget


def needs_streaming(M: Any, N: Any, out: Any, memory: Any) -> bool:
    """Whether a product streams: memory= was given, or an operand is a Zarr or Dask array."""
    return memory is not None or is_dask(M) or is_dask(N) or any(is_zarr(x) for x in (M, N, out))


def streaming_matmul(M: Any, N: Any, o: Options, matmul: Callable[..., Any]) -> Any:
    """`tw.matmul` of operands larger than memory: a Dask array, `out`, or an array of the operands' library. `matmul`:
    multiplies blocks of Dask arrays."""
    if is_dask(M) or is_dask(N):
        from tilewise.scale.dask_product import dask_matmul

        return dask_matmul(M, N, o, matmul)
    o.refuse(
        "need operands that lie in memory whole",
        *("accumulate", "return_arg", "kernel", "tile", "dtype", "scales", "alpha", "bias", "activation"),
    )
    semiring, out, device, precision, memory = o.semiring, o.out, o.device, o.precision, o.memory
    libraries = [None if is_zarr(x) else find_library(x) for x in (M, N)]
    library = libraries[0] or libraries[1] or find_library(np.empty(0))
    left, right = (_source(x, name, own) for x, name, own in zip((M, N), "MN", libraries, strict=True))
    where = "cpu" if device in ("auto", "cpu") else f"cuda:{card_number(device)}"
    room = None if memory is None else budget(memory)
    grain = (int(out.chunks[0]), int(out.chunks[1])) if is_zarr(out) and len(out.shape) == 2 else None
    job = plan_stream(left, right, semiring, room, where, precision, grain, o.reproducible)
    p = job.schedule.problem
    shape, result = (p.m, p.n), p.semiring.over(p.dtype).result
    if out is None:
        product = library.empty(shape, result, "cpu")
        job.run(ArrayTarget(product.memory))
        return library.deliver(product)
    if is_zarr(out):
        job.run(ZarrArrayTarget(out, shape, result))
        return out
    job.run(ArrayTarget(_out_array(out, library, shape, result, (left, right))))
    return out


def _source(array: Any, name: str, library: Any) -> MatrixSource:
    if library is None:
        return ZarrSource(array, name)
    operand = library.operand(array, name)
    if operand.host is None:
        raise DeviceError(f"{name} is on {operand.device}: memory= streams from the host, where it must be")
    return ArraySource(operand.host, name)


def _out_array(
    out: Any, library: Any, shape: tuple[int, int], result: DType, sources: tuple[MatrixSource, MatrixSource]
) -> Any:
    """The caller's `out` as a NumPy array, if P can be written to it tile by tile."""
    given = out_operand(library, out)
    if given.shape != shape:
        raise ShapeError(f"out is {written(given.shape)}, but the product is {written(shape)}")
    if given.host is None:
        raise DeviceError(f"out is on {given.device}: memory= streams from the host, where it must be")
    if not np.can_cast(result.numpy, given.dtype.numpy, "same_kind"):
        raise DtypeError(f"out has dtype {given.dtype}, but the product has {result}: pass an out of dtype {result}")
    for source in sources:
        if isinstance(source, ArraySource) and np.may_share_memory(source.array, given.host):
            raise UsageError("out overlaps an operand, which is read while tiles are written: pass another out")
    return given.array if given.converted else given.host


@dataclass(frozen=True)
class StreamPlan:
    """A planned product with its operands."""

    schedule: Schedule
    device: str
    M: MatrixSource
    N: MatrixSource

    def run(self, P: MatrixTarget, progress: host.Progress | None = None) -> None:
        if self.device == "cpu":
            host.stream(self.schedule, self.M, self.N, P, progress=progress)
        else:
            from tilewise.scale import card

            card.stream(self.schedule, self.M, self.N, P, device=self.device, progress=progress)


def plan_stream(
    M: MatrixSource,
    N: MatrixSource,
    semiring: str | Semiring,
    memory: int | None,
    device: str,
    precision: str = "high",
    grain: tuple[int, int] | None = None,
    reproducible: str | None = None,
) -> StreamPlan:
    """The schedule for these operands; the default budget is `usual_budget`, or 0.8 of a card's free memory."""
    problem = problem_of(M, N, semiring, precision, reproducible)
    grain = grain or (64, 64)
    if device == "cpu":
        room = memory if memory is not None else usual_budget()
        spare = sum(2 * x.chunk_bytes for x in (M, N) if isinstance(x, ZarrSource))
        level = host.DISK if spare else host.MEMORY  # nominal: no time is shown
        if room > SPARE and any(isinstance(x, ArraySource) and x.mapped for x in (M, N)):
            spare += min(SPARE, room // 3)  # pages of mapped files, and packed panels
        return StreamPlan(host.host_schedule(problem, level, room, spare=spare, grain=grain), device, M, N)
    if problem.ordered:
        raise UsageError(f"reproducible={reproducible!r} streams through memory of the host: pass device='cpu'")
    if not device.startswith("cuda"):
        raise DeviceError(f"device={device!r} has no memory to stream through: use 'cpu' or 'cuda'")
    from tilewise.arrays.card import memory as card_memory
    from tilewise.scale import card

    room = memory if memory is not None else int(0.8 * card_memory(device)[0])
    return StreamPlan(card.card_schedule(problem, M, N, device, room, grain), device, M, N)
