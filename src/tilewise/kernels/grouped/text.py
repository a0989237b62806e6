"""The text of `grouped.cu` over an algebra."""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.core.problem import Groups
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.groups import offset_type
from tilewise.kernels.shared.text import defined, kernel_text


def grouped_text(algebra: Algebra, groups: Groups, k_along: tuple[bool, bool], accumulate: bool) -> str:
    """Its name; how many groups there are is said when it is launched."""
    by_k = groups.along == "k"
    return render_grouped.named(algebra, by_k, groups.wide and by_k, k_along, accumulate)


@Written
def render_grouped(algebra: Algebra, by_k: bool, wide: bool, k_along: tuple[bool, bool], accumulate: bool) -> str:
    """`k_along`: whether the k of M and of N lie side by side."""
    macros: dict[str, object] = {f"K_ALONG_{name}": int(along) for name, along in zip("MN", k_along, strict=True)}
    macros["BY_K"] = int(by_k)
    head = (*defined(macros), offset_type(wide), "", prelude(algebra, accumulate=accumulate))
    return "\n".join((*head, kernel_text("grouped/tile.cuh"), kernel_text("grouped/grouped.cu")))
