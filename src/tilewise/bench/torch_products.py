"""Products of torch tensors on a card: their operands, the vendor's libraries, the check of each candidate, its rows.

All run on the caller's stream, through `tw.matmul` as people call it. The card waits while a call is queued, so that
a row holds the card's time alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewise.bench.suites import Row, Shape, speed_row
from tilewise.bench.timing import Work, on_card
from tilewise.errors import UsageError

OURS, CUBLAS, CUBLASLT = "tilewise", "cublas", "cublaslt"
CACHE_BYTES = 64 * 2**20  # operands that fit into the card's L2 are evicted from it before each call
SAMPLE = 128  # rows of P that are compared


@dataclass(frozen=True)
class ProductCase:
    """A product: its shape, layouts (N row-major, T column-major), and the first column of a slice."""

    shape: Shape
    layouts: str = "NN"
    offset: int = 0

    @property
    def name(self) -> str:
        m, k, n = self.shape
        size = f"{m}³" if m == k == n else f"{m}×{k}×{n}"
        return size + (f" {self.layouts}" if self.layouts != "NN" else "") + (" sliced" if self.offset else "")


def cubes(*sizes: int, layouts: str = "NN") -> tuple[ProductCase, ...]:
    return tuple(ProductCase((size, size, size), layouts) for size in sizes)


def torch_for(what: str) -> Any:
    try:
        import torch
    except ImportError:
        raise UsageError(f"{what} needs torch: pip install torch") from None
    return torch


def operands(
    torch: Any, case: ProductCase, dtype: Any, stack: tuple[int, ...] = (), draw: Callable[..., Any] | None = None
) -> tuple[Any, Any]:
    """M and N, normally distributed unless `draw` makes them."""
    m, k, n = case.shape
    drawn = dtype if dtype.is_complex or dtype is torch.float64 else torch.float32
    made = []
    for rows, cols, layout in ((m, k, case.layouts[0]), (k, n, case.layouts[1])):
        stored = (cols, rows + case.offset) if layout == "T" else (rows, cols + case.offset)
        whole = draw(*stack, *stored) if draw else torch.randn(*stack, *stored, device="cuda", dtype=drawn)
        part = whole.to(dtype)[..., case.offset :]
        made.append(part.mT if layout == "T" else part)
    return made[0], made[1]


def prepared(what: str, case: ProductCase, dtype: str) -> tuple[Any, Any, Any, Any]:
    """torch, M and N from a fixed seed, and memory for P."""
    torch = torch_for(what)
    torch.manual_seed(0)
    M, N = operands(torch, case, getattr(torch, dtype))
    return torch, M, N, torch.empty(M.shape[0], N.shape[1], device="cuda", dtype=M.dtype)


def is_cold(*tensors: Any) -> bool:
    """Whether operands and product would fit into L2 together."""
    return bool(sum(x.element_size() * x.numel() for x in tensors) < CACHE_BYTES)


def vendors(torch: Any, M: Any, N: Any, P: Any, tf32: bool = False) -> dict[str, Work]:
    """torch.mm by either of the vendor's libraries."""

    def by(library: str) -> Work:
        def multiply() -> Any:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.backends.cuda.preferred_blas_library(library)
            return torch.mm(M, N, out=P)

        return multiply

    return {library: by(library) for library in (CUBLAS, CUBLASLT)}


def relative(got: Any, exact: Any) -> float:
    """‖got − exact‖ / ‖exact‖."""
    wide = exact if exact.is_complex() else exact.double()
    return float((got.to(wide.dtype) - wide).norm() / wide.norm())


def errors_of(
    works: Mapping[str, Work], P: Any, exact: Any, bound: float, where: str, sample: Any = slice(None)
) -> dict[str, float]:
    """The error of each candidate on sampled rows; AssertionError above `bound`. A candidate returns P or writes it."""
    errors = {}
    for name, work in works.items():
        P.fill_(float("nan") if P.is_floating_point() else 77)
        made = work()
        errors[name] = relative((P if made is None else made)[sample], exact)
        if not errors[name] < bound:
            raise AssertionError(f"{name} is wrong at {where}: relative error {errors[name]:.2e}")
    return errors


def measured_rows(
    torch: Any, works: Mapping[str, Work], P: Any, exact: Any, shape: Shape, case: str, dtype: str, rounds: int,
    sample: Any = slice(None), **how: Any,
) -> list[Row]:  # fmt: skip
    """One row for each candidate: all are checked, then timed in rotation; `how` goes to `on_card`."""
    errors = errors_of(works, P, exact, 1e-2, case, sample)
    seconds = on_card(torch, works, rounds, **how)
    return [speed_row(name, shape, dtype, seconds[name], case=case, relative_error=errors[name]) for name in works]
