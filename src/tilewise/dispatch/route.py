"""Products that do not go bind → plan → run: NumPy's call forms, structured values, sparse matrices, operands larger
than memory, lazy reduction modulo p. The first route whose `takes` accepts a call computes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol, cast

from tilewise.algebra.builtin import is_structured_name
from tilewise.algebra.modular import ModularProduct as Reduced
from tilewise.algebra.modular import modular_dtype
from tilewise.algebra.modular import takes as lazy
from tilewise.algebra.structured import Structured
from tilewise.arrays.numpy_signature import BESIDE
from tilewise.core.options import DEFAULTS, Key, Options
from tilewise.dispatch.forms import NumpysForms
from tilewise.dispatch.prepared import PREPARED, SIGNATURES
from tilewise.dispatch.sparse.arrays import is_sparse
from tilewise.errors import UsageError
from tilewise.system.imported import imported

Matmul = Callable[..., Any]


class Route(Protocol):
    """A kind of call that is not bound, planned and run by kernels."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        """Whether the call is of its kind."""

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        """P; a UsageError names keywords that the route does not take. `key`: the call's signature; `matmul`: for
        products of dense parts."""


def is_structured(semiring: object) -> bool:
    """Whether values of a semiring have fields."""
    return isinstance(semiring, Structured) or (isinstance(semiring, str) and is_structured_name(semiring))


def check_fields(o: Options) -> None:
    """Refuse the keywords that values with fields do not have."""
    names = [name for name in DEFAULTS if name not in ("semiring", "device", "precision")]
    o.refuse(f"do not go with {o.semiring}, whose values have fields", *names)


class StructuredValues:
    """Structured semirings: tuples of arrays, or structured arrays."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        return is_structured(o.semiring)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.dispatch.structured.product import structured_matmul, structured_ring

        check_fields(o)
        ring = structured_ring(cast(Any, o.semiring))
        if "dask" in sys.modules and (_on_dask(M) or _on_dask(N)):
            from tilewise.scale.dask_product import dask_fields

            return dask_fields(M, N, ring, o, matmul)
        return structured_matmul(M, N, ring, o.device)


def _on_dask(x: Any) -> bool:
    """Whether a value, or a field of it, is a Dask array."""
    from tilewise.scale.sources import is_dask

    return any(map(is_dask, x)) if isinstance(x, (tuple, list)) else is_dask(x)


class SparseMatrices:
    """scipy.sparse, alone or beside NumPy."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        return is_sparse(M) or is_sparse(N)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.dispatch.sparse.product import prepared_sparse, sparse_matmul, sparse_signature

        o.refuse(
            "need dense operands: pass M.toarray()",
            *("out", "accumulate", "return_arg", "kernel", "tile", "memory", "dtype", "scales", "alpha", "bias"),
            *("activation", "reproducible"),
        )
        if o.device not in ("auto", "cpu"):
            raise UsageError(f"device={o.device!r} needs dense operands: pass M.toarray(), or leave it out")
        product = sparse_matmul(M, N, o.semiring, matmul)
        stored = M if is_sparse(M) else N
        SIGNATURES[stored.__class__] = BESIDE[stored.__class__] = sparse_signature
        if key is not None and (prepared := prepared_sparse(M, N, o.semiring, matmul)) is not None:
            PREPARED.keep(key, prepared)
        return product


class LargerThanMemory:
    """Products that are streamed: within a memory budget, from files, Zarr or Dask."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        if o.memory is None and "zarr" not in sys.modules and "dask" not in sys.modules:
            return False
        from tilewise.scale.product import needs_streaming

        return needs_streaming(M, N, o.out, o.memory)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.scale.product import streaming_matmul

        return streaming_matmul(M, N, o, matmul)


class LazilyReduced:
    """Products modulo p whose sums a wider dtype holds exactly: reduced once, at the end."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        others = (name for name in DEFAULTS if name not in ("semiring", "precision"))
        return bool(lazy(o.semiring, M, N)) and not o.given(*others)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.backends.cpu.kernels.modular.run import few_modulo

        p: int = o.semiring.modulus  # type: ignore[union-attr]
        reduced: Any = few_modulo(M, N, p, modular_dtype(M, N, p)) or Reduced(M, N, p, matmul)
        if key is not None:
            PREPARED.keep(key, reduced)
        return reduced(M, N)


class LazilyConjugated:
    """Views of PyTorch that are conjugated or negated when they are read: kernels read memory, so they are copied."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        return _is_lazy_view(M) or _is_lazy_view(N)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        left, right = (x.resolve_conj().resolve_neg() if _is_lazy_view(x) else x for x in (M, N))
        return matmul(left, right, **o.keywords())


def _is_lazy_view(x: Any) -> bool:
    torch = imported("torch")
    return torch is not None and isinstance(x, torch.Tensor) and bool(x.is_conj() or x.is_neg())


ROUTES: tuple[Route, ...] = (
    NumpysForms(), StructuredValues(), SparseMatrices(), LargerThanMemory(), LazilyReduced(), LazilyConjugated(),
)  # fmt: skip


def route_of(M: Any, N: Any, o: Options, routes: tuple[Route, ...]) -> Route | None:
    """The first route that takes the call; None where it is bound, planned and run."""
    for route in routes:  # a loop: older versions of torch.compile do not trace next(…, None)
        if route.takes(M, N, o):
            return route
    return None
