"""To do it: understand → prepared(signature) → run(addresses): the one straight line from a call to a kernel."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from tilewise.algebra.names import ActivationName, SemiringName
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.structured import Structured
from tilewise.arrays import HostArray
from tilewise.core.machine import Times
from tilewise.core.options import GRADIENT_BYTE, Key, Keywords, KeywordsButArg, Options
from tilewise.core.plan import Plan
from tilewise.dispatch.bind import understand
from tilewise.dispatch.execute import execute, machine_of, run
from tilewise.dispatch.prepared import PREPARED, SIGNATURES, from_lists, keep, signature_for, tick
from tilewise.dispatch.route import above, road_of
from tilewise.planning.choose import make_plan
from tilewise.system.imported import imported

if TYPE_CHECKING:
    from torch import Tensor

LOG = logging.getLogger("tilewise")
NDARRAY = np.ndarray


def compiling() -> bool:
    """Whether torch.compile traces this call; `tw.torch` puts torch's own question here, which is quicker."""
    torch = imported("torch")
    return torch is not None and torch.compiler.is_compiling()


@overload
def matmul(
    M: HostArray, N: HostArray, /, *, return_arg: Literal[True], **keywords: Unpack[KeywordsButArg]
) -> tuple[HostArray, HostArray]: ...
@overload
def matmul(
    M: HostArray, N: HostArray, /, *, return_arg: Literal[False] = False, **keywords: Unpack[KeywordsButArg]
) -> HostArray: ...
@overload
def matmul(
    M: Tensor, N: Tensor, /, *, return_arg: Literal[True], **keywords: Unpack[KeywordsButArg]
) -> tuple[Tensor, Tensor]: ...
@overload
def matmul(
    M: Tensor, N: Tensor, /, *, return_arg: Literal[False] = False, **keywords: Unpack[KeywordsButArg]
) -> Tensor: ...
@overload
def matmul(
    M: Sequence[HostArray], N: Sequence[HostArray], /, *, semiring: Structured, device: str = "auto"
) -> tuple[HostArray, ...]: ...
@overload
def matmul(M: HostArray, N: HostArray, /, *, semiring: Structured, device: str = "auto") -> HostArray: ...
@overload
def matmul(
    M: Sequence[Tensor], N: Sequence[Tensor], /, *, semiring: Structured, device: str = "auto"
) -> tuple[Tensor, ...]: ...
@overload
def matmul(M: Any, N: Any, /, **keywords: Unpack[Keywords]) -> Any: ...
def matmul(M: Any, N: Any, /, **keywords: Any) -> Any:
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
    if M.__class__ is not NDARRAY and compiling():  # first: every step traced is a guard later
        product = above("torch").traced_matmul(M, N, keywords)
        if product is not None:
            return product
        sign = None  # machine code is nothing that a compiler traces
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
    elif M.__class__ is list or N.__class__ is list:
        arrays = from_lists(M, N, keywords.get("semiring"))
        if arrays is not None:
            return matmul(*arrays, **keywords)  # what NumPy makes of lists has a signature
    options = Options.of(keywords) if keywords else NOTHING_ASKED
    signed = isinstance(key, bytes) and M.__class__ is not NDARRAY and not key[GRADIENT_BYTE]
    road = None if signed else road_of(M, N, options)  # what machine code signs without that mark no road takes
    return _first_call(M, N, options, key) if road is None else road.product(M, N, options, key, matmul)


NOTHING_ASKED = Options()
matmul.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *(inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in "MN"),
        *(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default) for f in fields(Options)),
    ]
)


def _first_call(M: Any, N: Any, o: Options, key: Key | None) -> Any:
    """A call that no prepared one serves: understood, planned, run, and kept under its signature."""
    call = understand(M, N, o)
    made = run(call, o)
    LOG.debug("%r", made.done.plan)
    if key is not None and made.done.again is not None:
        keep(key, made.done.again, call.library.name, made.product.array, M, N)
    delivered = o.out if o.out is not None else call.library.deliver(made.product)
    return delivered if made.arg is None else (delivered, call.library.deliver(made.arg))


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
    alpha: float = 1.0,
    bias: np.ndarray[Any, np.dtype[Any]] | None = None,
    activation: str | None = None,
) -> Report:
    """`matmul` of host arrays, with the clock: what the commands report from."""
    o = Options(semiring, None, device, kernel, tile, precision, alpha=alpha, bias=bias, activation=activation)
    call = understand(M, N, o)
    product = call.library.empty(call.shape.product, call.problem.result, "cpu")
    done = execute(call, product, kernel, tile)
    assert product.host is not None
    return Report(product.host, done.plan, done.times)


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
) -> Plan:
    """What `matmul` would run for these operands, and why. Nothing is multiplied.

    >>> tw.plan(np.ones((1000, 500)), np.ones((500, 700)))
    Plan(1000x500x700 float64 plus_times -> cpu:packed...)
    """
    o = Options(
        semiring, None, device, kernel, tile, precision, False, return_arg, nonnegative,
        dtype=dtype, alpha=alpha, bias=bias, activation=activation,
    )  # fmt: skip
    call = understand(M, N, o)
    return make_plan(call.problem, machine_of(call.device, measured=True), kernel, tile)
