"""`matmul` and `plan`: signature → prepared call → addresses → launches; the first time bind → plan → recipe → run."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, Unpack, overload

import numpy as np

from tilewise.algebra.names import ActivationName, BooleanName, SemiringName
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.structured import Structured
from tilewise.arrays import ArrayOf, HostArray, Kind, Number, Other, torch_library
from tilewise.core.options import AnySemiring, DTypeArg, Key, MatmulDetails, Numeric, Options
from tilewise.core.plan import Plan
from tilewise.dispatch.bind import bind
from tilewise.dispatch.execute import machine_of
from tilewise.dispatch.prepared import PREPARED, SIGNATURES, signature_for, tick
from tilewise.dispatch.product import first_call
from tilewise.dispatch.route import ROUTES, Matmul, Route, is_structured
from tilewise.planning.choose import make_plan
from tilewise.system.imported import imported

NDARRAY = np.ndarray


@overload  # of NumPy's arrays: the dtype requested, bool, or that of the operands
def matmul(
    M: HostArray, N: HostArray, /, *, dtype: type[Other] | np.dtype[Other], semiring: AnySemiring = ...,
    return_arg: Literal[False] = False, **keywords: Unpack[MatmulDetails],
) -> ArrayOf[Other]: ...  # fmt: skip
@overload
def matmul(
    M: HostArray, N: HostArray, /, *, dtype: DTypeArg, semiring: AnySemiring = ..., return_arg: Literal[False] = False,
    **keywords: Unpack[MatmulDetails],
) -> HostArray: ...  # fmt: skip
@overload
def matmul(
    M: HostArray, N: HostArray, /, *, semiring: BooleanName, return_arg: Literal[False] = False,
    **keywords: Unpack[MatmulDetails],
) -> ArrayOf[np.bool_]: ...  # fmt: skip
@overload
def matmul(
    M: ArrayOf[Number], N: ArrayOf[Number], /, *, semiring: Numeric = ..., dtype: None = None,
    return_arg: Literal[False] = False, **keywords: Unpack[MatmulDetails],
) -> ArrayOf[Number]: ...  # fmt: skip
@overload
def matmul(
    M: ArrayOf[Number], N: ArrayOf[Number], /, *, return_arg: Literal[True], semiring: Numeric = ...,
    dtype: None = None, **keywords: Unpack[MatmulDetails],
) -> tuple[ArrayOf[Number], ArrayOf[np.int64]]: ...  # fmt: skip
@overload  # values with fields
def matmul(
    M: Sequence[HostArray], N: Sequence[HostArray], /, *, semiring: Structured, device: str = "auto"
) -> tuple[HostArray, ...]: ...
@overload
def matmul(
    M: Sequence[Kind], N: Sequence[Kind], /, *, semiring: Structured, device: str = "auto"
) -> tuple[Kind, ...]: ...
@overload
def matmul(M: Kind, N: Kind, /, *, semiring: Structured, device: str = "auto") -> Kind: ...
@overload  # arrays of other libraries
def matmul(
    M: Kind, N: Kind, /, *, semiring: AnySemiring = ..., dtype: DTypeArg | None = None,
    return_arg: Literal[False] = False, **keywords: Unpack[MatmulDetails],
) -> Kind: ...  # fmt: skip
@overload
def matmul(
    M: Kind, N: Kind, /, *, return_arg: Literal[True], semiring: AnySemiring = ..., dtype: DTypeArg | None = None,
    **keywords: Unpack[MatmulDetails],
) -> tuple[Kind, Kind]: ...  # fmt: skip
@overload  # lists, and arrays of two kinds
def matmul(
    M: Any, N: Any, /, *, semiring: AnySemiring = ..., dtype: DTypeArg | None = None,
    return_arg: Literal[False] = False, **keywords: Unpack[MatmulDetails],
) -> HostArray: ...  # fmt: skip
@overload
def matmul(
    M: Any, N: Any, /, *, return_arg: Literal[True], semiring: AnySemiring = ..., dtype: DTypeArg | None = None,
    **keywords: Unpack[MatmulDetails],
) -> tuple[HostArray, ArrayOf[np.int64]]: ...  # fmt: skip
def matmul(M: Any, N: Any, /, **keywords: Any) -> Any:
    """The product of M and N over a semiring, by the rules of `numpy.matmul`.

    M, N: arrays of NumPy, CuPy, PyTorch, JAX, or of any library with DLPack; both of one kind, and P is of that kind.
        scipy.sparse goes with itself and with NumPy.
    semiring: a name (`plus_times`, `min_plus`, …), an alias (`tropical`, `viterbi`, …) or a `tw.Semiring`.
    out: where P goes; may overlap M or N, but not itself.
    device: "auto" runs where the operands are; "cuda" or "cuda:1" takes host arrays to a card and back; "simt"
        interprets the card's kernels on host arrays, with no card.
    kernel, tile: pin the rung of the ladder and its TILE_WIDTH (1 to 32) instead of letting the plan choose.
    precision: float32 on a card: "ieee", "high" or "tf32".
    accumulate: add the product onto `out` with the semiring's add, instead of overwriting it.
    return_arg: for min and max: also the k that won each cell (the lowest on a tie), or −1 where nothing beat zero.
    nonnegative: your promise that no element of M or N is below 0 or NaN. float32 under min or max is then compared as
        integers on a card, three at a time, which is faster; a broken promise gives wrong products. Without it, large
        products on a card check their operands first.
    memory: stream through at most this much of the device's memory ("2GB"), tile by tile; operands may be memmaps and
        Zarr arrays, `out` too. It counts tiles, panels, their copies and pages of mapped files, but no array of the
        caller's in memory, no P that is returned, and no code. Dask arrays give a Dask array, tile by tile on whichever
        scheduler computes it.
    dtype: of P, as NumPy has it: both operands are converted to it first. With "int32" the product of 8-bit integers
        does not wrap, and stays on the tensor cores of a card that has them.
    scales: for 8-bit floats: a pair (a, b), and P = a · (M·N) · b before it is rounded. Each is a number, an array of
        one, or an array of one for each row (a) or column (b), float32.
    alpha, bias, activation: P = activation(alpha · M·N + bias), for floats in plus_times; fused into the tensor-core
        kernels. bias: n numbers, added to every row. activation: "relu", "gelu", "gelu_tanh" or "silu". With
        `accumulate`, what `out` holds is added before the activation.
    axes, order, casting: as in `numpy.matmul`; `out` may be a tuple of one.
    reproducible: "everywhere": the bits of P follow from the operands alone, by a definition in the documents, whatever
        the machine, threads, strides and layout. "batch": a row of P depends on that row of M, N, k and the dtype
        alone, on one kind of machine. Integers have both without it.

    >>> tw.matmul([[1, 2], [3, 4]], [[1, 0], [0, 2]])
    array([[1, 4],
           [3, 8]])
    >>> tw.matmul([[0.0, 4.0]], [[9.0], [3.0]], semiring="min_plus", return_arg=True)
    (array([[7.]]), array([[1]]))
    """
    if M.__class__ is not NDARRAY and torch_library.compiling():  # first: dynamo makes a guard of each line it traces
        from tilewise.torch.operator import compiled_matmul

        product = compiled_matmul(M, N, keywords)
        if product is not None:
            return product
        sign = None  # torch.compile does not trace machine code
    else:
        sign = SIGNATURES.get(M.__class__) or signature_for(M)
    key = sign(M, N, keywords) if sign is not None else None
    if key is not None:
        prepared = PREPARED.get(key)
        if prepared is not None:
            prepared.tick = tick()
            product = prepared(M, N, keywords)
            if product is not None:
                return product
    return first_call(M, N, keywords, key, ALL_ROUTES, matmul)


matmul.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *(inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in "MN"),
        *(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default) for f in fields(Options)),
    ]
)


def plan(
    M: Any,
    N: Any,
    /,
    *,
    semiring: SemiringName | Semiring = "plus_times",
    device: str = "auto",
    kernel: str | None = None,
    tile: int | None = None,
    precision: str = "high",
    return_arg: bool = False,
    nonnegative: bool = False,
    dtype: Any = None,
    alpha: float = 1.0,
    bias: Any = None,
    activation: ActivationName | None = None,
    reproducible: str | None = None,
) -> Plan:
    """What `matmul` would run for these operands, and why. Nothing is multiplied.

    >>> tw.plan(np.ones((1000, 500)), np.ones((500, 700)))
    Plan(1000x500x700 float64 plus_times -> cpu:packed...)
    """
    o = Options(
        semiring, None, device, kernel, tile, precision, False, return_arg, nonnegative,
        dtype=dtype, alpha=alpha, bias=bias, activation=activation, reproducible=reproducible,
    )  # fmt: skip
    call = bind(M, N, o)
    return make_plan(call.problem, machine_of(call.device, measured=True), kernel, tile)


def torch_follows(x: Any, other: Any, out: Any = None, bias: Any = None) -> bool:
    """Whether torch differentiates, traces, transforms or casts what is computed from these tensors."""
    torch = imported("torch")
    return torch is not None and isinstance(x, torch.Tensor) and torch_library.followed(x, other, out, bias)


def jax_traces(*arrays: Any) -> bool:
    """Whether one of these is a value that jit, grad or vmap traces."""
    jax = imported("jax")
    return jax is not None and any(isinstance(x, jax.core.Tracer) for x in arrays)


class FollowedByTorch:
    """Tensors whose product torch differentiates, traces, transforms or casts: by our operator."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        if is_structured(o.semiring):
            pairs = zip(M, N, strict=False) if isinstance(M, list | tuple) and isinstance(N, list | tuple) else ()
            return any(torch_follows(x, y) for x, y in pairs)
        if o.scales is not None and torch_library.compiling():
            return False  # the graph breaks, and the kernel applies them
        return torch_follows(M, N, o.out, o.bias)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.torch.followed import followed_matmul

        return followed_matmul(M, N, o)


class TracedByJax:
    """Tracers of jit, grad and vmap."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        if is_structured(o.semiring) and isinstance(M, list | tuple) and isinstance(N, list | tuple):
            return jax_traces(*M, *N)
        return jax_traces(M, N, o.bias)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.jax.traced import traced_matmul

        return traced_matmul(M, N, o)


ALL_ROUTES: tuple[Route, ...] = (FollowedByTorch(), TracedByJax(), *ROUTES)
