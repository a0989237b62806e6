"""Plan + algebra → one self-contained source text: no includes, no templates, one `extern "C"` kernel.

The text that comes out is what NVRTC compiles and what the interpreter executes: one source, two executions.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import (
    BFLOAT_TO_FLOAT,
    FLOAT8_TO_FLOAT,
    FLOAT_TO_BFLOAT,
    FLOAT_TO_HALF,
    FUNCTION,
    HALF_TO_FLOAT,
    c_name,
    prelude,
)
from tilewise.plans import Plan
from tilewise.rungs import COARSE, register_depth


@lru_cache(maxsize=64)
def kernel_text(name: str) -> str:
    """The kernel file as it lies in the package."""
    return files("tilewise.kernels").joinpath(name).read_text(encoding="utf-8")


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


@lru_cache(maxsize=1024)
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
    return "\n".join(
        (
            *(f"#define {name} {value}" for name, value in defines.items()),
            "",
            prelude(algebra, index=index, accumulate=accumulate),
            kernel_text(f"ladder/{kernel}.cu"),
        )
    )


@lru_cache(maxsize=1024)
def render_pack(source: DType, target: DType, along_rows: bool) -> str:
    """The pack kernel from one dtype to another."""
    head = (f"// pack: {source} to {target}", f"#define ALONG_ROWS {int(along_rows)}")
    return "\n".join((*head, _conversion(source, target), kernel_text("pack.cu")))


@lru_cache(maxsize=64)
def render_round(source: DType, target: DType) -> str:
    """The kernel that rounds sums where they lie; `target` is the narrower."""
    return "\n".join(
        (f"// round_rows: {source} to {target}", _conversion(source, target), kernel_text("round_rows.cu"))
    )


def _conversion(source: DType, target: DType) -> str:
    """Both types, and `convert` from the one to the other."""
    value, helpers = "x", ""
    if source != target:
        if source.name == "float16":
            value, helpers = "half_to_float(x)", HALF_TO_FLOAT
        if source.name == "bfloat16":
            value, helpers = "bfloat_to_float(x)", BFLOAT_TO_FLOAT
        if source.name in FLOAT8_TO_FLOAT:
            value, helpers = "float8_to_float(x)", HALF_TO_FLOAT + FLOAT8_TO_FLOAT[source.name]
        value = _converted(value, source, target)
    return "\n".join(
        (
            f"typedef {c_name(source)} Source;",
            f"typedef {c_name(target)} Target;",
            helpers,
            _half_helpers(target, source),
            f"{FUNCTION} Target convert(Source x) {{ return {value}; }}",
            "",
        )
    )


def _half_helpers(target: DType, source: DType) -> str:
    if source == target:
        return ""
    return {"float16": FLOAT_TO_HALF, "bfloat16": FLOAT_TO_BFLOAT}.get(target.name, "")


def _converted(value: str, source: DType, target: DType) -> str:
    if target.name in ("float16", "bfloat16"):
        return f"{'float_to_half' if target.name == 'float16' else 'float_to_bfloat'}((float){value})"
    if target.kind == "c":
        part = "float" if target.name == "complex64" else "double"
        real, imaginary = ("x.x", "x.y") if source.kind == "c" else (value, "0")
        return f"make_{part}2(({part}){real}, ({part}){imaginary})"
    return f"({c_name(target)}){value}"
