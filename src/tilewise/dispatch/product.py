"""`matmul` of arrays that no framework traces: signature → prepared call; the first time bind → plan → run."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from tilewise.arrays.numpy_signature import CLASSES
from tilewise.backends.cpu.runtime import pool
from tilewise.core.options import GRADIENT_BYTE, Key, Options
from tilewise.dispatch.bind import Call, bind
from tilewise.dispatch.execute import Outcome, run
from tilewise.dispatch.prepared import PREPARED, SIGNATURES, Constant, MoreThanAProduct, keep, signature_for, tick
from tilewise.dispatch.route import ROUTES, Matmul, Route, is_structured, route_of

LOG = logging.getLogger("tilewise")
DEFAULT_OPTIONS = Options()
PLAIN = frozenset(
    ("semiring", "precision", "accumulate", "nonnegative", "out", "reproducible")
)  # keywords of calls that have a kind
CONSTANT = 4096  # elements of a P that is cached
KINDS: dict[Key, Any] = {}  # see `kinds`: one per pair of dtypes and combination of keywords
pool.on_resize.append(KINDS.clear)


def matmul(M: Any, N: Any, /, **keywords: Any) -> Any:
    """`tw.matmul` for packages below `api`: no gradient is recorded and nothing is traced. `api.matmul` repeats the
    look-up, because calling this function would cost every prepared product 60 ns."""
    sign = SIGNATURES.get(M.__class__) or signature_for(M)
    key = sign(M, N, keywords) if sign is not None else None
    prepared = PREPARED.get(key) if key is not None else None
    if prepared is not None:
        prepared.tick = tick()
        product = prepared(M, N, keywords)
        if product is not None:
            return product
    return first_call(M, N, keywords, key, ROUTES, matmul)


def first_call(
    M: Any, N: Any, keywords: dict[str, Any], key: Key | None, routes: tuple[Route, ...], caller: Matmul
) -> Any:
    """A call without a prepared one: by its route, or bound, planned, run and cached under its signature. `caller`: the
    `matmul` that was called, for calls that this one is reduced to."""
    # a native signature without the gradient mark: no route takes such tensors
    signed = isinstance(key, bytes) and M.__class__ is not np.ndarray and not key[GRADIENT_BYTE]
    on_host = M.is_cpu if signed else M.__class__ in CLASSES and N.__class__ in CLASSES
    kind = _kind_of(M, N, keywords) if on_host and key is not None else None
    if key is not None and kind in KINDS:
        out = keywords.get("out")
        prepared, mirrored = KINDS[kind].prepared(M, N, out, key)
        product = None if prepared is None else prepared.first(M, N, out)
        if product is not None:
            PREPARED.keep(key, prepared, mirrored)
            return product
    if key is None and (M.__class__ is list or N.__class__ is list):
        arrays = _from_lists(M, N, keywords.get("semiring"))
        if arrays is not None:
            return caller(*arrays, **keywords)  # NumPy's arrays have a signature, lists have none
    o = Options.of(keywords) if keywords else DEFAULT_OPTIONS
    route = None if signed else route_of(M, N, o, routes)
    if route is not None:
        return route.product(M, N, o, key, caller)
    call = bind(M, N, o)
    outcome = run(call, o)
    LOG.debug("%r", outcome.done.plan)
    if key is not None and outcome.done.executable is not None:
        keep(key, outcome.done.executable, call.library.name, call.problem, outcome.product.array, M, N)
        plain = not isinstance(outcome.done.executable, MoreThanAProduct)
        plain = plain and outcome.product.dtype == call.problem.result
        if kind is not None and key in PREPARED and outcome.done.plan.blocking is not None and plain:
            from tilewise.dispatch.kinds import Kind  # lazily: products on a card do not load the CPU kernels

            KINDS[kind] = Kind(outcome.done.plan, outcome.product.array.dtype)
    delivered = o.out if o.out is not None else call.library.deliver(outcome.product)
    if key is not None and _is_constant(call, outcome, o):
        PREPARED.keep(key, Constant(delivered))
    return delivered if outcome.arg is None else (delivered, call.library.deliver(outcome.arg))


def _is_constant(call: Call, outcome: Outcome, o: Options) -> bool:
    """Whether a call has the same small P whatever the operands hold."""
    p = call.problem
    few = (p.k == 0 and p.members * p.m * p.n <= CONSTANT) or not p.members * p.m * p.n
    plain = not (p.epilogue or p.accumulate or call.scales) and outcome.arg is o.out is None
    return few and plain and call.device == "cpu" and call.library.name in ("numpy", "torch")


def _kind_of(M: Any, N: Any, keywords: dict[str, Any]) -> Key | None:
    """The key of a call's kind: calls with the same one differ in extents and strides alone; None for calls with
    further keywords."""
    if not keywords:
        return (M.dtype, N.dtype)
    for name, value in keywords.items():
        if name not in PLAIN or not (name == "out" or value.__class__ in (str, bool)):
            return None
    return (M.dtype, N.dtype, *((name, name == "out" or value) for name, value in keywords.items()))


def _from_lists(M: Any, N: Any, semiring: Any) -> tuple[Any, Any] | None:
    """Lists as NumPy arrays; None for lists without numbers, beside other arrays, or of structured values."""
    if is_structured(semiring):
        return None
    arrays = []
    for x in (M, N):
        if x.__class__ is list:
            try:
                x = np.asarray(x)
            except ValueError:
                return None
            if x.dtype.kind not in "biufc":
                return None
        elif x.__class__ is not np.ndarray:
            return None
        arrays.append(x)
    return arrays[0], arrays[1]
