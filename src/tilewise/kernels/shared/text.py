"""Assembling CUDA texts from files and macros; conversions between dtypes; the texts of packing and rounding."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import (
    BFLOAT_TO_FLOAT,
    FLOAT8_TO_FLOAT,
    FLOAT_TO_BFLOAT,
    FLOAT_TO_HALF,
    FUNCTION,
    HALF_TO_FLOAT,
    c_name,
)
from tilewise.kernels.keys import KeyedRenderer
from tilewise.system.resources import shipped


@lru_cache(maxsize=64)
def kernel_text(name: str) -> str:
    """A file of `kernels/`."""
    return shipped(f"kernels/{name}").read_text(encoding="utf-8")


def with_half_conversions(text: str) -> str:
    """The text after definitions of the conversions to halves that it calls and does not define."""
    helpers = {"float_to_half": FLOAT_TO_HALF, "float_to_bfloat": FLOAT_TO_BFLOAT}
    missing = [code for name, code in helpers.items() if f"{name}(" in text and f"{name}(float value)" not in text]
    return "".join(missing) + text


def without(text: str, macro: str) -> str:
    """The text as if it had no `#if MACRO … #else  // MACRO … #endif  // MACRO`: what is left for MACRO = 0."""
    kept, dropping = list[str](), False
    for line in text.splitlines(keepends=True):
        if line.rstrip() == f"#if {macro}":
            dropping = True
        elif line.rstrip() in (f"#else  // {macro}", f"#endif  // {macro}"):
            dropping = False
        elif not dropping:
            kept.append(line)
    return "".join(kept)


def of_tile(tile: object, *names: str) -> dict[str, object]:
    """Macros of a tile's fields."""
    return {{"rows": "BLOCK_M", "cols": "BLOCK_N"}.get(name, name.upper()): getattr(tile, name) for name in names}


def assembled(*parts: str | Mapping[str, object]) -> str:
    """A kernel's text from parts: a mapping of macros, names of files, or text."""
    made = list[str]()
    for part in parts:
        if not isinstance(part, str):
            made += [f"#define {name} {int(x) if isinstance(x, bool) else x}" for name, x in part.items()]
        else:
            made += map(kernel_text, part.split()) if part.endswith((".cu", ".cuh")) else [part]
    return "\n".join(made)


@KeyedRenderer
def render_pack(source: DType, target: DType, transposes: bool) -> str:
    """The pack kernel from one dtype to another."""
    return assembled(
        f"// pack: {source} to {target}",
        {"TRANSPOSES": transposes},
        _conversion(source, target),
        "shared/dependent_launch.cuh transforms/pack.cu",
    )


@KeyedRenderer
def render_round(source: DType, target: DType) -> str:
    """The kernel that rounds sums where they lie; `target` is the narrower."""
    return assembled(f"// round_rows: {source} to {target}", _conversion(source, target), "transforms/round_rows.cu")


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
            _half_helpers(target) if source != target else "",
            f"{FUNCTION} Target convert(Source x) {{ return {value}; }}",
            "",
        )
    )


def _half_helpers(target: DType) -> str:
    return {"float16": FLOAT_TO_HALF, "bfloat16": FLOAT_TO_BFLOAT}.get(target.name, "")


def _converted(value: str, source: DType, target: DType) -> str:
    if target.name in ("float16", "bfloat16"):
        return f"{'float_to_half' if target.name == 'float16' else 'float_to_bfloat'}((float){value})"
    if target.kind == "c":
        part = "float" if target.name == "complex64" else "double"
        real, imaginary = ("x.x", "x.y") if source.kind == "c" else (value, "0")
        return f"make_{part}2(({part}){real}, ({part}){imaginary})"
    return f"({c_name(target)}){value}"
