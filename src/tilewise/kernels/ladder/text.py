"""Plan + algebra → one self-contained source text: no includes, no templates, one `extern "C"` kernel.

The text that comes out is what NVRTC compiles and what the interpreter executes: one source, two executions.
"""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.core.plan import Plan
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.ladder.model import COARSE, register_depth
from tilewise.kernels.shared.text import assembled


def render(plan: Plan) -> str:
    """The source text that a plan runs."""
    return render_rung(
        plan.kernel,
        plan.problem.algebra,
        plan.tile,
        index=plan.index,
        accumulate=plan.problem.accumulate,
        aligned=plan.aligned,
    )


@KeyedRenderer
def render_rung(
    kernel: str, algebra: Algebra, tile: int, *, index: str = "int", accumulate: bool = False, aligned: bool = False
) -> str:
    """A rung of the ladder over an algebra at a tile width."""
    defines = {"TILE_WIDTH": tile}
    if kernel == "coarsened":
        defines["COARSE"] = COARSE
    if kernel == "register_tiled":
        defines["PHASE_DEPTH"] = register_depth(algebra.partial.itemsize)
        defines["ELEMENT_QUAD"] = min(16, 4 * algebra.element.itemsize)
        defines["PARTIAL_QUAD"] = min(16, 4 * algebra.partial.itemsize)
        defines["ALIGNED"] = int(aligned)
    return assembled(defines, "", prelude(algebra, index=index, accumulate=accumulate), f"ladder/{kernel}.cu")
