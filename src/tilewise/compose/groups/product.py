"""Products over groups of rows: on a card a launch finds the groups itself, on the host they come one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.semiring import Semiring
from tilewise.arrays import Operand
from tilewise.compose.groups.host import by_sizes, multiply_in_turn, plain_groups
from tilewise.compose.groups.prepared import gradient_wanted, keep, prepared, signature
from tilewise.compose.groups.understanding import GroupedCall, understand_groups
from tilewise.core.plan import Plan
from tilewise.dispatch.execute import machine_of
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import launcher_of
from tilewise.system.imported import imported


def grouped_matmul(
    x: Any,
    w: Any,
    offsets: Any,
    /,
    *,
    along: str = "rows",
    rows: Any = None,
    semiring: str | Semiring = "plus_times",
    out: Any = None,
    precision: str = "high",
    kernel: str | None = None,
) -> Any:
    """Each group of x's rows times its own matrix: P[a:b] = x[a:b] · w[g] for every group g of rows a to b.

    x: rows × k; w: groups × k × n; arrays of one library, on the host or on a card.
    offsets: int32 or int64, one for each group: the row behind its last. The first group begins at row 0, the others
        where the one before ends; a group may be empty. On a card they are read there, in the launch itself: nothing
        waits for them, and a captured CUDA graph may find others each time. Rows behind the last group get the
        semiring's zero.
    along: "rows", or "k" for gradients of weights: x is rows × m, w is rows × n, and P[g] = x[a:b]ᵀ · w[a:b].
    rows: x's row of each row of the groups, so that x need not be permuted first: P[i] is made of x[rows[i]].
    semiring, out, precision, kernel: as in `tw.matmul`.

    >>> x, w = np.arange(6.0).reshape(3, 2), np.stack([np.eye(2), 10 * np.eye(2)])
    >>> tw.grouped_matmul(x, w, np.array([1, 3]))
    array([[ 0.,  1.],
           [20., 30.],
           [40., 50.]])
    """
    if along == "rows" and rows is None and out is None and kernel is None:
        plain = plain_groups(x, w, offsets, semiring, precision)
        if plain is not None:
            return plain
    key = None
    if rows is None and not gradient_wanted(x, w):
        key = signature(x, w, offsets, out, (along, semiring, precision, kernel))
    made = prepared(key, x, w, offsets, out)
    if made is not None:
        return made
    torch = imported("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        from tilewise.arrays.torch_library import followed

        if followed(x, w, out):
            import tilewise  # the operator stands above this room and is reached by its public name

            return tilewise.torch.followed_grouped_matmul(x, w, offsets, along, rows, semiring, out, precision, kernel)
    if rows is not None:
        from tilewise.compose.groups.rows import take_rows

        how: dict[str, Any] = {"along": along, "semiring": semiring, "out": out, "precision": precision}
        return grouped_matmul(take_rows(x, rows), w, offsets, kernel=kernel, **how)  # prepared, from the second time on
    call = understand_groups(x, w, offsets, along, semiring, precision, out)
    product = call.out or call.library.empty(call.shape, call.problem.result, call.device)
    if call.device == "cpu":
        _on_the_host(call, product, kernel)
    else:
        keep(key, _on_the_card(call, product, kernel), product.array)
    return out if out is not None else call.library.deliver(product)


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
    """What `grouped_matmul` would launch for operands on a card."""
    call = understand_groups(x, w, offsets, along, semiring, precision, None)
    return make_plan(call.problem, machine_of(call.device), kernel)


def _on_the_host(call: GroupedCall, product: Operand, kernel: str | None) -> None:
    M, N, P, ends = call.M.host, call.N.host, product.host, call.offsets.host
    assert M is not None
    assert N is not None
    assert P is not None
    assert ends is not None
    p = call.problem
    keywords: dict[str, Any] = {"semiring": p.semiring, "precision": p.precision, "kernel": kernel}
    with np.errstate(all="ignore"):
        zero = np.asarray(p.algebra.zero).astype(P.dtype)
    told = M, N, P, ends.tolist(), call.by_k, zero
    if kernel is not None or not by_sizes(*told, p.semiring, p.precision):
        multiply_in_turn(*told, keywords)


def _on_the_card(call: GroupedCall, product: Operand, kernel: str | None) -> Any:
    """Queued on the caller's stream, nothing is waited for; what can be launched again."""
    from tilewise.backends.cuda.scratch import scratch

    made = make_plan(call.problem, machine_of(call.device), kernel)
    spans = tuple((low - x.pointer, high - x.pointer) for x in (call.M, call.N, product) for low, high in (x.extent,))
    launcher = launcher_of(made, call.device, None, spans)
    stream = call.library.stream(call.device)
    given = {"M": call.M, "N": call.N, "P": product, "offsets": call.offsets}
    with scratch(launcher.scratch_bytes, call.library.name, call.device, stream) as held:
        launcher(stream, scratch=held, **{name: x.pointer for name, x in given.items()})
    return launcher
