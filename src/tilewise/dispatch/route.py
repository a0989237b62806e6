"""Products that another room makes: one table, in the order in which it is asked.

A road says whether it takes a call and then makes the product, `matmul` in hand for the products inside it. What no
road takes goes straight on: understood, planned, run (`api`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol, cast

from tilewise.algebra.builtin import is_structured_name
from tilewise.algebra.modular import ModularProduct as Reduced
from tilewise.algebra.modular import remainders
from tilewise.algebra.modular import takes as lazy
from tilewise.algebra.structured import Structured
from tilewise.core.options import DEFAULTS, Key, Options
from tilewise.dispatch.prepared import PREPARED
from tilewise.dispatch.sparse.arrays import is_sparse
from tilewise.errors import UsageError
from tilewise.system.imported import imported

Matmul = Callable[..., Any]


class Road(Protocol):
    """One way for a call to leave the straight line."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        """Whether the call is of its kind."""

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        """P; keywords that do not go with it are refused. `key`: what it may be kept under."""


class ValuesWithFields:
    """Structured semirings: tuples of arrays, or structured arrays."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        ring: object = o.semiring
        return isinstance(ring, Structured) or (isinstance(ring, str) and is_structured_name(ring))

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.dispatch.structured.product import structured_matmul, structured_ring

        names = [name for name in DEFAULTS if name not in ("semiring", "device", "precision")]
        o.refuse(f"does not go with {o.semiring}, whose values have fields", *names)
        return structured_matmul(M, N, structured_ring(cast(Any, o.semiring)), o.device)


class SparseMatrices:
    """scipy.sparse, alone or beside NumPy."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        return is_sparse(M) or is_sparse(N)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.dispatch.sparse.product import sparse_matmul

        o.refuse(
            "need dense operands: pass M.toarray()",
            *("out", "accumulate", "return_arg", "kernel", "tile", "memory", "dtype", "scales", "alpha", "bias"),
            "activation",
        )
        if o.device not in ("auto", "cpu"):
            raise UsageError(f"device={o.device!r} needs dense operands: pass M.toarray(), or leave it out")
        return sparse_matmul(M, N, o.semiring, matmul)


class LargerThanMemory:
    """What is streamed: within a budget, from files, Zarr or Dask."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        if o.memory is None and "zarr" not in sys.modules and "dask" not in sys.modules:
            return False
        from tilewise.scale.product import is_larger

        return is_larger(M, N, o.out, o.memory)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.scale.product import larger_matmul

        o.refuse(
            "need operands that lie in memory whole",
            *("accumulate", "return_arg", "kernel", "tile", "dtype", "scales", "alpha", "bias", "activation"),
        )
        return larger_matmul(M, N, o.semiring, o.out, o.device, o.precision, o.memory)


class LazilyReduced:
    """Products modulo a number that wider ones hold: reduced once, at the end."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        others = (name for name in DEFAULTS if name not in ("semiring", "precision"))
        return bool(lazy(o.semiring, M, N)) and not o.given(*others)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.backends.cpu.kernels.modular.run import few_modulo

        p: int = o.semiring.modulus  # type: ignore[union-attr]
        reduced: Any = few_modulo(M, N, p, remainders(M, N, p)) or Reduced(M, N, p, matmul)
        if key is not None:
            PREPARED.keep(key, reduced)
        return reduced(M, N)


class FollowedByTorch:
    """Tensors whose product torch differentiates, traces, transforms or casts: by our operator."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        torch = imported("torch")
        if torch is None or not isinstance(M, torch.Tensor) or o.scales is not None:
            return False
        from tilewise.arrays.torch_library import followed

        return followed(M, N, o.out, o.bias)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        return above("torch").followed_matmul(M, N, o)


class TracedByJax:
    """What stands for arrays inside jit, grad and vmap."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        jax = imported("jax")
        return jax is not None and isinstance(M, jax.core.Tracer) | isinstance(N, jax.core.Tracer)

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        return above("jax").traced_matmul(M, N, o)


class PromotedByJax:
    """JAX's arrays of two dtypes: JAX has other rules for their common one than NumPy."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        jax = imported("jax")
        if jax is None or o.dtype is not None or not isinstance(M, jax.Array):
            return False
        from tilewise.arrays.jax_library import alike

        left, right = alike((M, N))
        return left is not M or right is not N

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Matmul) -> Any:
        from tilewise.arrays.jax_library import alike

        left, right = alike((M, N))
        return matmul(left, right, **o.keywords())


ROADS: tuple[Road, ...] = (
    ValuesWithFields(), SparseMatrices(), LargerThanMemory(), LazilyReduced(), FollowedByTorch(), TracedByJax(),
    PromotedByJax(),
)  # fmt: skip


def above(framework: str) -> Any:
    """`tw.torch` or `tw.jax`: they stand above this room and are reached by their public names, once they are met."""
    import tilewise  # by its name: a compiler of torch traces this line, and no import by a string

    return getattr(tilewise, framework)


def road_of(M: Any, N: Any, o: Options) -> Road | None:
    """The first road that takes the call; None where it goes straight on."""
    for road in ROADS:  # a loop: older compilers of torch do not follow next(…, None)
        if road.takes(M, N, o):
            return road
    return None
