"""Products of Dask arrays: one task computes one tile of P: it loops over k and reads its panels itself.

Dask's own product makes a task for every pair of blocks and keeps whole operands alive between them. Here a block that
is cheap to compute (read from a store, or by a short graph) is computed inside the task that needs it and dropped after
use: a worker holds tiles, not operands. Blocks that are expensive, or already in the cluster's memory, are
dependencies, one for each step of a chain.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import dtype_given, dtype_of, promote
from tilewise.algebra.structured import Structured
from tilewise.arrays import find_library
from tilewise.arrays.float8_scales import bind_scales
from tilewise.arrays.labelled import check_plain
from tilewise.core.epilogue import check_fits, epilogue_of
from tilewise.core.options import Options
from tilewise.core.problem import problem_of_shape
from tilewise.core.reproducible import CHAIN, check_reproducible
from tilewise.core.shapes import ProductShape, product_shape, written
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.scale.dask_blocks import BlockedOperand
from tilewise.scale.dask_tasks import ArgTask, Blocks, BlockStep, FieldsTask, SumsTask, TileTask, records
from tilewise.scale.sources import is_dask, is_zarr

SPLIT_BLOCKS = 4  # fewest blocks of k in a part, if k is split
SPLIT_TASKS = 4  # tasks per thread of the cluster, at which split-K aims
Matmul = Callable[..., Any]


def dask_matmul(M: Any, N: Any, o: Options, matmul: Matmul | None = None) -> Any:
    """The product as a lazy Dask array; with return_arg also the winning k. `matmul`: multiplies blocks in tasks that
    return the winning k."""
    _check_keywords(o)
    left, right = _operand(M, "M"), _operand(N, "N")
    if o.dtype is not None:
        left, right = _narrowed(left, right, o.dtype)
    shape = product_shape(left.shape, right.shape)
    left, right = _as_stacks(left, right, shape)
    dtypes = dtype_of(left.dtype), dtype_of(right.dtype)
    ring = find_semiring(o.semiring)
    problem = problem_of_shape(
        shape.m, shape.k, shape.n, dtypes[0], ring, dtype_n=dtypes[1], precision=o.precision,
        nonnegative=o.nonnegative, unrounded=True, reproducible=o.reproducible,
    )  # fmt: skip
    if problem.ordered:
        left, right = _in_chains(left, right)
    result = ring.over(problem.dtype).result
    if o.return_arg:
        ring.check_selective()
        o.refuse("and return_arg= exclude each other", "alpha", "bias", "activation", "scales")
        P = Product(left, right, shape, o).array(ArgTask(problem, o.device, matmul), _pair(result.numpy))
        return P["value"], P["arg"]
    bias = None if o.bias is None else _bias(o.bias, shape.n, right.chunks[-1])
    epilogue = epilogue_of(o.alpha, None if bias is None else dtype_of(bias.dtype), o.activation)
    check_fits(epilogue, ring, is_plus_times(ring), result)
    scales = None
    if o.scales is not None:
        o.refuse("and scales= exclude each other: put alpha into a scale", "alpha", "bias", "activation")
        if not is_plus_times(ring):
            raise UsageError(f"scales= needs plus_times, and the semiring is {ring}: leave them out")
        given = replace(problem, unrounded=False, stack=shape.stack)
        scales = bind_scales(o.scales, given, find_library(np.empty(0)), "cpu").on_host
    task = SumsTask(problem, o.device, epilogue, scales)
    return Product(left, right, shape, o, bias).array(task, result.numpy)


def dask_fields(M: Any, N: Any, ring: Structured, o: Options, matmul: Matmul) -> Any:
    """The product of values with fields: a tuple of Dask arrays, or a Dask array of records if M is one."""
    if o.device not in ("auto", "cpu"):
        raise UsageError(f"device={o.device!r}: fields of Dask arrays are multiplied on their workers' CPUs")
    left, right = _records(M, "M", ring), _records(N, "N", ring)
    shape = product_shape(left.shape, right.shape)
    names = ring.fields
    pairs = [[dtype_of(x.dtype[i]) for x in (left, right)] for i in range(len(names))]
    algebra = ring.over([promote(*pair) for pair in pairs])
    left, right = _as_stacks(left, right, shape)
    result = np.dtype([(name, d.numpy) for name, d in zip(names, algebra.dtypes, strict=True)])
    P = Product(left, right, shape, o).array(FieldsTask(algebra, result, matmul), result)
    return P if is_dask(M) else tuple(P[name] for name in names)


def _check_keywords(o: Options) -> None:
    o.refuse("do not go with Dask arrays: store the product, and chunks are the budget", "out", "memory", "accumulate")
    o.refuse("do not go with Dask arrays, whose tasks choose their kernels", "kernel", "tile")
    if check_reproducible(o.reproducible) is not None:
        why = f"and reproducible={o.reproducible!r} exclude each other for Dask arrays: apply them to the product"
        o.refuse(why, "return_arg", "alpha", "bias", "activation", "scales")
    if o.device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"device={o.device!r}: workers take 'auto' (a card where there is one), 'cpu' or 'cuda'")


def _operand(array: Any, name: str) -> Any:
    import dask.array as da

    if not isinstance(array, da.Array):
        check_plain(array, name)
        array = da.from_array(array if is_zarr(array) else np.asarray(array), chunks="auto")
    if type(getattr(array, "_meta", None)).__name__ == "MaskedArray":
        raise DtypeError(f"{name} has masked blocks, and a product would lose their mask: fill them first")
    if any(math.isnan(extent) for extent in array.shape):
        raise ShapeError(f"{name} has chunks of unknown size: call {name}.compute_chunk_sizes() first")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _narrowed(M: Any, N: Any, dtype: Any) -> tuple[Any, Any]:
    wanted, common = dtype_given(dtype), promote(dtype_of(M.dtype), dtype_of(N.dtype))
    if not np.can_cast(common.numpy, wanted.numpy, "same_kind"):
        raise DtypeError(f"dtype={wanted.name!r} cannot hold a product of {common}: convert M and N yourself")
    return M.astype(wanted.numpy), N.astype(wanted.numpy)


def _records(x: Any, role: str, ring: Structured) -> Any:
    """A value with fields as one Dask array of records, block by block."""
    import dask.array as da

    names, many = ", ".join(ring.fields), len(ring.fields)
    if is_dask(x) and x.dtype.names is not None:
        if len(x.dtype.names) != many:
            raise DtypeError(f"{role} has the fields {', '.join(x.dtype.names)}, and a value of {ring} has {names}")
        return _operand(x, role)
    if not isinstance(x, (tuple, list)) or len(x) != many:
        raise UsageError(
            f"{ring} is over values with the fields {names}: pass {role} as a tuple of {many} Dask arrays or as a Dask "
            f"array of records, not {type(x).__name__}"
        )
    fields = [_operand(field, f"{role}[{i}]") for i, field in enumerate(x)]
    for i, field in enumerate(fields):
        if field.shape != fields[0].shape:
            raise ShapeError(
                f"{role}[{i}] is {written(field.shape)} and {role}[0] is {written(fields[0].shape)}: "
                "all fields of a value have one shape"
            )
    fields = [field.rechunk(fields[0].chunks) for field in fields]
    dtype = np.dtype([(f"f{i}", field.dtype) for i, field in enumerate(fields)])
    return da.map_blocks(_join_fields, *fields, dtype=dtype, meta=np.empty((0,) * fields[0].ndim, dtype))


def _join_fields(*fields: Any) -> Any:
    return records(fields[0].shape, [(f"f{i}", field.dtype) for i, field in enumerate(fields)], fields)


def _as_stacks(M: Any, N: Any, shape: ProductShape) -> tuple[Any, Any]:
    """Vectors as matrices of one row or column; N rechunked as M along axes of the stack."""
    M = M[None, :] if shape.vector_m else M
    N = N[:, None] if shape.vector_n else N
    for axis in range(3, min(M.ndim, N.ndim) + 1):
        of_m, of_n = M.chunks[-axis], N.chunks[-axis]
        if of_m != of_n and M.shape[-axis] == N.shape[-axis]:
            N = N.rechunk({N.ndim - axis: of_m})
    return M, N


def _in_chains(M: Any, N: Any) -> tuple[Any, Any]:
    """Both with the same chunks along k, of whole chains: rechunked where a chunk ends inside one."""
    of_m, of_n = M.chunks[-1], N.chunks[-2]
    if not any(end % CHAIN for chunks in (of_m, of_n) for end in np.cumsum(chunks)[:-1].tolist()):
        return M, N
    each = max(1, round(max(*of_m, *of_n) / CHAIN)) * CHAIN
    return M.rechunk({M.ndim - 1: each}), N.rechunk({N.ndim - 2: each})


def _bias(bias: Any, n: int, chunks: tuple[int, ...]) -> Any:
    import dask.array as da

    check_plain(bias, "bias")
    bias = bias if is_dask(bias) else da.from_array(np.asarray(bias), chunks=-1)
    if bias.shape != (n,):
        raise ShapeError(f"bias is {written(bias.shape)}, and P has {n} columns: pass one number for each of them")
    return bias.rechunk((chunks,))


def _pair(value: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("value", value), ("arg", np.int64)])


@dataclass(frozen=True)
class Product:
    """The operands of a product as (stacks of) matrices, and the bias."""

    M: Any
    N: Any
    shape: ProductShape
    o: Options
    bias: Any = None

    def array(self, task: TileTask, result: np.dtype[Any]) -> Any:
        """P, with a task for each tile."""
        import dask.array as da
        from dask.base import tokenize
        from dask.highlevelgraph import HighLevelGraph

        M, N = self.M, self.N
        sides = BlockedOperand(M, "M"), BlockedOperand(N, "N")
        stack = [self._stack_chunks(-axis) for axis in range(len(self.shape.stack) + 2, 2, -1)]
        chunks = (*stack, M.chunks[-2], N.chunks[-1])
        name = f"tilewise-{tokenize(M, N, self.bias, self.o.keywords())}"
        layer: dict[Any, Any] = {}
        steps = list(_steps(M.chunks[-1], N.chunks[-2]))
        parts = [steps] if self.o.reproducible else _parts(steps, math.prod(map(len, chunks)))
        for place in np.ndindex(*map(len, chunks)):
            *above, i, j = place
            extents = tuple(own[at] for own, at in zip(chunks, place, strict=True))
            firsts = tuple(sum(own[:at]) for own, at in zip(chunks[-2:], (i, j), strict=True))
            tile = task.of_tile(extents, firsts)
            indices = (*_stack_block(M, above), i), (*_stack_block(N, above), j)
            ends = [_add_part_tasks(layer, name, (*place, number), tile, sides, indices, part)
                    for number, part in enumerate(parts)]  # fmt: skip
            layer[(name, *place)] = (tile.finish, ends, *(() if self.bias is None else ((self.bias.name, j),)))
        kept = [side.array for side in sides if not side.cheap] + ([] if self.bias is None else [self.bias])
        graph = HighLevelGraph.from_collections(name, layer, dependencies=kept)
        P = da.Array(graph, name, chunks=chunks, meta=np.empty((0,) * len(chunks), result))
        vectors = self.shape.vector_m, self.shape.vector_n
        return P[(..., *(0 if vector else slice(None) for vector in vectors))] if any(vectors) else P

    def _stack_chunks(self, axis: int) -> tuple[int, ...]:
        """P's chunks along an axis of the stack: those of the operand that is not broadcast along it."""
        has = [x for x in (self.M, self.N) if x.ndim >= -axis]
        chunks: tuple[int, ...] = max(has, key=lambda x: int(x.shape[axis])).chunks[axis]
        return chunks


def _stack_block(x: Any, above: list[int]) -> tuple[int, ...]:
    """The indices of an operand's block in the stack: 0 along broadcast axes."""
    depth = x.ndim - 2
    places = above[len(above) - depth :]
    return tuple(0 if x.numblocks[axis] == 1 else at for axis, at in enumerate(places))


def _steps(chunks_m: tuple[int, ...], chunks_n: tuple[int, ...]) -> Iterator[BlockStep]:
    """The ranges of k within one block of both operands, whose chunks need not match."""
    edges = [np.concatenate(([0], np.cumsum(chunks))).astype(int) for chunks in (chunks_m, chunks_n)]
    for start, stop in pairwise(np.union1d(edges[0], edges[1]).tolist()):
        blocks = [int(np.searchsorted(edge, start, "right")) - 1 for edge in edges]
        parts = [slice(start - int(edge[at]), stop - int(edge[at])) for edge, at in zip(edges, blocks, strict=True)]
        yield BlockStep(start, blocks[0], parts[0], blocks[1], parts[1])


def _parts(steps: list[BlockStep], tiles: int) -> list[list[BlockStep]]:
    """The steps of k in one part if there are enough tiles for all threads, else split into several."""
    wanted = math.ceil(SPLIT_TASKS * _threads() / max(1, tiles))
    count = max(1, min(wanted, len(steps) // SPLIT_BLOCKS))
    size = math.ceil(len(steps) / count) if steps else 1
    return [steps[first : first + size] for first in range(0, len(steps), size)]


def _threads() -> int:
    """Threads of the current cluster, or of this machine."""
    try:
        from distributed import get_client

        return max(1, int(sum(get_client().nthreads().values())))
    except (ImportError, ValueError):
        return os.cpu_count() or 1


def _add_part_tasks(
    layer: dict[Any, Any],
    name: str,
    place: tuple[int, ...],
    tile: TileTask,
    sides: tuple[BlockedOperand, BlockedOperand],
    indices: tuple[tuple[int, ...], tuple[int, ...]],
    steps: list[BlockStep],
) -> Any:
    """Add the tasks of one part of k for one tile; returns the last key. `indices`: of M's and N's blocks without k."""
    (*above_m, i), (*above_n, j) = indices
    pairs = [((*above_m, i, step.block_m), (*above_n, step.block_n, j)) for step in steps]
    key: Any
    if all(side.cheap for side in sides):
        key = (f"{name}-part", *place)
        blocks = [(step, *(side.block(at) for side, at in zip(sides, pair, strict=True)))
                  for step, pair in zip(steps, pairs, strict=True)]  # fmt: skip
        layer[key] = (tile.multiply_all, Blocks(blocks))
        return key
    previous: Any = None
    for number, (step, pair) in enumerate(zip(steps, pairs, strict=True)):
        key = (f"{name}-step", *place, number)
        declared = [side.declared(at) for side, at in zip(sides, pair, strict=True)]
        given = [side.block(at) for side, at in zip(sides, pair, strict=True)]
        layer[key] = (tile.step, previous, Blocks([step, *declared]), *given)
        previous = key
    return previous
