"""To do it: arrays → Problem → Plan → engine → arrays. The one straight line from a person's call to a kernel."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import DTYPES, DType, dtype_given, promote
from tilewise.algebra.semiring import Semiring
from tilewise.arrays import HostArray, Library, Operand, find_library
from tilewise.arrays.card import card_number
from tilewise.arrays.torch_library import needs_operator, wants_gradient
from tilewise.engines.cpu.known import KNOWN
from tilewise.engines.cuda.ready import call_key, queue_again, tensor_key
from tilewise.epilogue import check_fits, epilogue_of
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.execution import Call, copy, execute, machine_of, narrowed, needs_detour, side_by_side
from tilewise.float8_scales import understand_scales
from tilewise.machine import Times
from tilewise.planning import make_plan
from tilewise.plans import Plan
from tilewise.problem import Problem, check_precision, row_major
from tilewise.shapes import product_shape, written
from tilewise.sparse.arrays import is_sparse


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
    return_arg: bool = False,
    nonnegative: bool = False,
    memory: int | str | None = None,
    dtype: Any = None,
    scales: Any = None,
    alpha: float = 1.0,
    bias: Any = None,
    activation: str | None = None,
) -> Any:
    """The product of M and N over a semiring, by the rules of `numpy.matmul`.

    M, N: arrays of NumPy, CuPy, PyTorch, JAX, or of any library with DLPack; both of one kind, and P is of that kind.
        scipy.sparse goes with itself and with NumPy.
    semiring: a name (`plus_times`, `min_plus`, …), an alias (`tropical`, `viterbi`, …) or a `tw.Semiring`.
    out: where P goes; may overlap M or N, but not itself.
    device: "auto" works where the operands are; "cuda" or "cuda:1" takes host arrays to a card and back; "simt"
        interprets the card's kernels on host arrays, with no card.
    kernel, tile: pin the rung of the ladder and its TILE_WIDTH (1 to 32) instead of letting the plan choose.
    precision: float32 on a card: "ieee", "high" or "tf32".
    accumulate: add the product onto `out` with the semiring's add, instead of overwriting it.
    return_arg: for min and max: also the k that won each cell (the lowest on a tie), or −1 where nothing beat zero.
    nonnegative: your promise that no element of M or N is below 0 or NaN. float32 under min or max is then compared as
        integers on a card, three at a time, which is faster; a broken promise gives wrong products. Without it, large
        products on a card look through their operands first.
    memory: stream through at most so much of the device's memory ("2GB"), tile by tile; operands may be memmaps and
        Zarr arrays, `out` too. Dask arrays give a Dask array, tile by tile on whichever scheduler computes it.
    dtype: of P, as NumPy has it: both operands are taken to it first. With "int32" the product of 8-bit integers does
        not wrap, and stays on the tensor cores of a card that has them.
    scales: for 8-bit floats: a pair (a, b), and P = a · (M·N) · b before it is rounded. Each is a number, an array of
        one, or an array of one for each row (a) or column (b), float32.
    alpha, bias, activation: P = activation(alpha · M·N + bias), for floats in plus_times; fused into the tensor-core
        kernels. bias: n numbers, added to every row. activation: "relu", "gelu", "gelu_tanh" or "silu". With
        `accumulate`, what `out` holds is added before the activation.

    >>> tw.matmul([[1, 2], [3, 4]], [[1, 0], [0, 2]])
    array([[1, 4],
           [3, 8]])
    >>> tw.matmul([[0.0, 4.0]], [[9.0], [3.0]], semiring="min_plus", return_arg=True)
    (array([[7.]]), array([[1]]))
    """
    if memory is not None or "zarr" in sys.modules or "dask" in sys.modules:
        from tilewise.scale.product import is_larger, larger_matmul

        if is_larger(M, N, out, memory):
            bare = alpha == 1 and bias is None and activation is None
            if kernel or tile or accumulate or return_arg or dtype is not None or not bare:
                raise UsageError(
                    "accumulate=, return_arg=, kernel=, tile=, dtype=, alpha=, bias= and activation= need operands "
                    "that lie in memory whole"
                )
            return larger_matmul(M, N, semiring, out, device, precision, memory)
    if is_sparse(M) or is_sparse(N):
        from tilewise.sparse.product import sparse_matmul

        return sparse_matmul(M, N, semiring, matmul, out, return_arg, device, bias, activation)
    key: tuple[Any, ...] | None = None
    again: tuple[Any, ...] | None = None
    bare = bias is None and activation is None and alpha == 1
    dtype = None if dtype is None else dtype_given(dtype)
    if scales is not None:
        if not bare:
            raise UsageError("scales= and alpha=, bias= or activation= exclude each other: put alpha into a scale")
        call = _understand(M, N, semiring, out, device, precision, accumulate, return_arg, nonnegative, dtype)
        found = understand_scales(scales, call.problem, call.library, call.device)
        return _deliver(replace(call, scales=found, problem=replace(call.problem, scaled=True)), out, kernel, tile)
    if type(M) is type(N) is np.ndarray and kernel is None and tile is None and not return_arg and bare:
        ring = semiring if semiring.__class__ is str else id(semiring)
        key = (M.shape, N.shape, M.strides, N.strides, M.dtype, N.dtype, ring, device, precision, nonnegative, dtype)
        if out is not None:
            key = (*key, getattr(out, "strides", None), accumulate)
        known = KNOWN.get(key)
        if known is not None and (out is None or known.takes(out, M, N)):
            return known.multiply(M, N, out)
    elif "torch" in sys.modules and isinstance(M, sys.modules["torch"].Tensor):
        plain = kernel is None and tile is None and not return_arg
        added = () if bare else _bias_key(bias)
        if plain and out is not None and semiring.__class__ is str and added is not None:
            after = () if bare else (alpha, activation, *added)
            again = call_key(M, N, out, semiring, device, precision, accumulate, nonnegative, dtype, *after)
            if again and queue_again(again):
                return out
        if needs_operator(M, N, out) or (not bare and wants_gradient(bias)):
            if dtype is not None:
                raise UsageError("dtype= takes no part in gradients, torch.compile or autocast: convert M and N first")
            import tilewise  # the operator stands above this room and is reached by its public name

            tilewise.torch.check_call(M, out, device, kernel, tile, accumulate)
            made = tilewise.torch.matmul(
                M, N, semiring=semiring, precision=precision, return_arg=return_arg, nonnegative=nonnegative
            )
            return made if bare else tilewise.torch.finished(made, find_semiring(semiring), alpha, bias, activation)
        if plain and bare:
            ring = semiring if semiring.__class__ is str else id(semiring)
            key = _tensor_key(M, N, out, ring, device, precision, accumulate, nonnegative, dtype)
            known = KNOWN.get(key) if key else None
            if known is not None and (out is None or known.takes(out, M, N)):
                return known.multiply(M, N, out, again)
    elif "jax" in sys.modules:
        from tilewise.arrays.jax_library import traced

        if traced(M, N, out, device, kernel, tile, accumulate):
            import tilewise  # as the operator above

            if not bare:
                raise UsageError(
                    "alpha=, bias= and activation= are not known inside jax.jit: apply them to the product"
                )
            return tilewise.jax.matmul(
                M, N, semiring=semiring, precision=precision, return_arg=return_arg, nonnegative=nonnegative
            )
    call = _understand(M, N, semiring, out, device, precision, accumulate, return_arg, nonnegative, dtype)
    if not bare:
        call = _with_epilogue(call, alpha, bias, activation)
    return _deliver(call, out, kernel, tile, return_arg, key, again)


def _deliver(
    call: Call,
    out: Any,
    kernel: str | None,
    tile: int | None,
    return_arg: bool = False,
    key: tuple[Any, ...] | None = None,
    again: tuple[Any, ...] | None = None,
) -> Any:
    """Run the call, into `out` or something new."""
    product = call.out or call.library.empty(call.shape.product, call.problem.result, call.M.device)
    arg = call.library.empty(call.shape.product, DTYPES["int64"], call.M.device) if return_arg else None
    if call.out is not None and needs_detour(call):
        work = call.library.empty(call.shape.product, call.problem.result, call.M.device)
        if call.problem.accumulate:
            copy(product, work)
        execute(call, work, kernel, tile, arg)
        copy(work, product)
    else:
        execute(call, product, kernel, tile, arg, key, again)
    delivered = out if out is not None else call.library.deliver(product)
    return delivered if arg is None else (delivered, call.library.deliver(arg))


@dataclass(frozen=True)
class Report:
    """A product with what ran and how long it took."""

    product: HostArray
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
    M: HostArray,
    N: HostArray,
    *,
    semiring: str | Semiring = "plus_times",
    device: str = "cpu",
    kernel: str | None = None,
    tile: int | None = None,
    precision: str = "high",
    alpha: float = 1.0,
    bias: HostArray | None = None,
    activation: str | None = None,
) -> Report:
    """`matmul` of host arrays, with the clock: what the commands report from."""
    call = _understand(M, N, semiring, None, device, precision, False, False)
    call = _with_epilogue(call, alpha, bias, activation)
    product = call.library.empty(call.shape.product, call.problem.result, "cpu")
    made, times = execute(call, product, kernel, tile)
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
    return_arg: bool = False,
    nonnegative: bool = False,
    dtype: Any = None,
    alpha: float = 1.0,
    bias: Any = None,
    activation: str | None = None,
) -> Plan:
    """What `matmul` would run for these operands, and why. Nothing is multiplied.

    >>> tw.plan(np.ones((1000, 500)), np.ones((500, 700)))
    Plan(1000x500x700 float64 plus_times -> cpu:packed...)
    """
    wanted = None if dtype is None else dtype_given(dtype)
    call = _understand(M, N, semiring, None, device, precision, False, return_arg, nonnegative, wanted)
    call = _with_epilogue(call, alpha, bias, activation)
    return make_plan(call.problem, machine_of(call.device, measured=True), kernel, tile)


def _tensor_key(M: Any, N: Any, out: Any, *how: Any) -> tuple[Any, ...] | None:
    key = tensor_key(M, N, out)
    return None if key is None else (*key, *how)


def _understand(
    M: Any,
    N: Any,
    semiring: str | Semiring,
    out: Any,
    device: str,
    precision: str,
    accumulate: bool,
    return_arg: bool,
    nonnegative: bool = False,
    dtype: DType | None = None,
) -> Call:
    ring = find_semiring(semiring)
    check_precision(precision)
    library = find_library(M)
    _same_library(library, N, "N")
    left, right = library.operand(M, "M"), library.operand(N, "N")
    if dtype is not None:
        _reachable(dtype, promote(left.dtype, right.dtype))
        left, right = narrowed(left, dtype), narrowed(right, dtype)
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
        return_arg,
        nonnegative,
        wanted=dtype,
    )
    if given is not None:
        _check_out_dtype(given, problem.result)
    where = _where(left, device)
    if return_arg:
        _check_return_arg(ring, where, accumulate)
    return Call(problem, shape, where, library, left, right, given)


def _reachable(wanted: DType, common: DType) -> None:
    """NumPy's rule: a dtype of the same kind, or of one that holds it."""
    if not np.can_cast(common.numpy, wanted.numpy, "same_kind"):
        raise DtypeError(f"dtype={wanted.name!r} cannot hold a product of {common}: convert M and N yourself")


def _with_epilogue(call: Call, alpha: float, bias: Any, activation: str | None) -> Call:
    """The same call with what becomes of the product before it is stored."""
    added = None
    if bias is not None:
        _same_library(call.library, bias, "bias")
        added = side_by_side(call.library.operand(bias, "bias"))
        if added.shape != (call.problem.n,):
            raise ShapeError(
                f"bias is {written(added.shape)}, and P has {call.problem.n} columns: pass one number for each of them"
            )
        if added.device != call.M.device:
            raise DeviceError(f"bias is on {added.device} and M is on {call.M.device}: bring them together first")
    epilogue = epilogue_of(alpha, None if added is None else added.dtype, activation)
    check_fits(epilogue, call.problem.semiring, is_plus_times(call.problem.semiring), call.problem.result)
    return replace(call, problem=replace(call.problem, epilogue=epilogue), bias=added)


def _bias_key(bias: Any) -> tuple[Any, ...] | None:
    """What a torch tensor of biases is known by; None where it is copied first, for that copy is gone the next time."""
    if bias is None:
        return ()
    if not isinstance(bias, sys.modules["torch"].Tensor) or not bias.is_contiguous():
        return None
    return (bias.data_ptr(), bias.shape, bias.dtype, bias.device)


def _check_return_arg(ring: Semiring, device: str, accumulate: bool) -> None:
    if not ring.selective:
        raise UsageError(f"return_arg=True asks which k won, and {ring} picks none: use a min or max semiring")
    if device == "simt":
        raise DeviceError("return_arg=True has no kernel in the interpreter: pass device='cpu' or 'cuda'")
    if accumulate:
        raise UsageError("return_arg=True and accumulate=True exclude each other: what was in out has no k")


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
    if given.overlaps_itself:
        raise ShapeError("several of its cells are one place in memory: out is expanded or broadcast, pass a fresh one")
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
        raise UsageError(f"device={device!r} must be a word: 'auto', 'cpu', 'simt', 'cuda' or 'cuda:1'")
    if device == "auto":
        return left.device
    if device in ("cpu", "simt"):
        if left.device != "cpu":
            raise DeviceError(
                f"the operands are on {left.device} and device={device!r} was asked for: copy them to the host first"
            )
        return device
    asked = f"cuda:{card_number(device)}"
    if left.device not in ("cpu", asked):
        raise DeviceError(
            f"the operands are on {left.device} and device={device!r} was asked for: they do not travel by themselves"
        )
    return asked
