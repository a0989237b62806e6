"""Products over groups of rows: on a card one launch reads the offsets itself, on the host a product per group."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilewise.algebra.semiring import Semiring
from tilewise.arrays import Operand
from tilewise.compose.groups.bind import GroupedCall, bind_groups
from tilewise.compose.groups.host import into, multiply_groups, multiply_prepared_groups, numpy_groups
from tilewise.compose.groups.prepared import keep, prepared, signature
from tilewise.compose.groups.rows import take_rows
from tilewise.core.plan import Plan
from tilewise.dispatch.execute import hosts, machine_of
from tilewise.errors import UsageError
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import launcher_of


class GroupOptions(NamedTuple):
    """The keywords of `tw.grouped_matmul`."""

    along: str = "rows"
    rows: Any = None
    semiring: str | Semiring = "plus_times"
    out: Any = None
    precision: str = "high"
    kernel: str | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return self.along, self.semiring, self.precision, self.kernel


def grouped_matmul(x: Any, w: Any, offsets: Any, **keywords: Any) -> Any:
    """`tw.grouped_matmul` of arrays that no framework traces."""
    o = GroupOptions(**keywords)
    made = prepared_product(x, w, offsets, o)
    return first_product(x, w, offsets, o) if made is None else made


def prepared_product(x: Any, w: Any, offsets: Any, o: GroupOptions) -> Any:
    """P of NumPy arrays, or by a prepared call; None if there is neither."""
    made = numpy_groups(x, w, offsets, *o)
    if made is not None or o.rows is not None:
        return made
    return prepared(signature(x, w, offsets, o.out, o.key), {"M": x, "N": w, "offsets": offsets}, o.out)


def first_product(x: Any, w: Any, offsets: Any, o: GroupOptions) -> Any:
    """Bind, plan and run a call, and keep it prepared under its signature."""
    if o.rows is not None:
        return grouped_matmul(take_rows(x, o.rows), w, offsets, **o._replace(rows=None)._asdict())
    call = bind_groups(x, w, offsets, o.along, o.semiring, o.precision, o.out)
    product = call.out or call.library.empty(call.shape, call.problem.result, call.device)
    if call.device == "cpu":
        _on_the_host(call, product, o.kernel)
    else:
        keep(signature(x, w, offsets, o.out, o.key), _on_the_card(call, product, o.kernel), product.array)
    return o.out if o.out is not None else call.library.deliver(product)


def reproducible_product(x: Any, w: Any, offsets: Any, o: GroupOptions, level: str | None) -> Any:
    """P of arrays on the host with `reproducible=level`: a product for each group."""
    x = x if o.rows is None else take_rows(x, o.rows)
    call = bind_groups(x, w, offsets, o.along, o.semiring, o.precision, o.out)
    if call.device != "cpu":
        raise UsageError(
            f"reproducible={level!r} of groups runs on the host, and x is on {call.device}: multiply each group by "
            "tw.matmul, whose bits are the same there"
        )
    product = call.out or call.library.empty(call.shape, call.problem.result, call.device)
    _on_the_host(call, product, o.kernel, level)
    return o.out if o.out is not None else call.library.deliver(product)


def grouped_plan(
    x: Any,
    w: Any,
    offsets: Any,
    /,
    *,
    along: str = "rows",
    semiring: str | Semiring = "plus_times",
    precision: str = "high",
    kernel: str | None = None,
) -> Plan:
    """The plan of `grouped_matmul` for operands on a card.

    >>> x, w = tw.to_device(np.ones((4, 8))), tw.to_device(np.ones((2, 8, 8)))  # with a card
    >>> tw.grouped_plan(x, w, tw.to_device(np.array([2, 4]))).engine
    'cuda'
    """
    call = bind_groups(x, w, offsets, along, semiring, precision, None)
    return make_plan(call.problem, machine_of(call.device), kernel)


def _on_the_host(call: GroupedCall, product: Operand, kernel: str | None, reproducible: str | None = None) -> None:
    M, N, P, ends = hosts(call.M, call.N, product, call.offsets)
    p = call.problem
    M, N = (x.astype(p.dtype.numpy, copy=False) for x in (M, N))
    keywords: dict[str, Any] = {"semiring": p.semiring, "precision": p.precision, "kernel": kernel}
    keywords |= {} if reproducible is None else {"reproducible": reproducible}
    with np.errstate(all="ignore"):
        zero = np.asarray(p.algebra.zero).astype(P.dtype)
    args = M, N, P, ends.tolist(), call.by_k, zero
    pinned = kernel is not None or reproducible is not None
    if pinned or not multiply_prepared_groups(*args, p.semiring, p.precision):
        multiply_groups(*args, lambda _: partial(into, **keywords))


def _on_the_card(call: GroupedCall, product: Operand, kernel: str | None) -> Any:
    """Queue on the caller's stream without synchronising; returns the launcher."""
    from tilewise.backends.cuda.scratch import scratch

    made = make_plan(call.problem, machine_of(call.device), kernel)
    spans = tuple((low - x.pointer, high - x.pointer) for x in (call.M, call.N, product) for low, high in (x.extent,))
    launcher = launcher_of(made, call.device, None, spans)
    stream = call.library.stream(call.device)
    given = {"M": call.M, "N": call.N, "P": product, "offsets": call.offsets}
    with scratch(launcher.scratch_bytes, call.library.name, call.device, stream) as held:
        launcher(stream, scratch=held, **{name: x.pointer for name, x in given.items()})
    return launcher
