"""Conversions from floating point to integers: on the host as x86-64 does, in kernels as the GPU does.

x86-64's cvttsd2si gives INT_MIN for values that do not fit; unsigned int is converted through 64 bits. The GPU's
cvt.rzi saturates; types shorter than 32 bits take the low bits of the 32-bit result: as unsigned char, -3.7f is 0 on
the GPU and 253 on the host, 300.5f is 44 on both."""

from __future__ import annotations

from tilewise.emulator.host.lower.function_text import FunctionText
from tilewise.emulator.parse.types import Scalar


def on_host(b: FunctionText, text: str, source: Scalar, type_: Scalar) -> str:
    bits = 32 if type_.size < 4 or (type_.size == 4 and type_.signed) else 64
    if source.size < 8:
        text = b.make(f"fpext {source.llvm} {text} to double")
    if type_.size == 8 and not type_.signed:
        big = b.make(f"fcmp oge double {text}, 9223372036854775808.0")
        less = b.make(f"fsub double {text}, 9223372036854775808.0")
        chosen = b.make(f"select i1 {big}, double {less}, double {text}")
        number = _truncated(b, chosen, 64)
        flipped = b.make(f"xor i64 {number}, -9223372036854775808")
        return b.make(f"select i1 {big}, i64 {flipped}, i64 {number}")
    number = _truncated(b, text, bits)
    if bits > type_.size * 8:
        number = b.make(f"trunc i{bits} {number} to {type_.llvm}")
    return number


def _truncated(b: FunctionText, text: str, bits: int) -> str:
    least, most = -(1 << (bits - 1)), 1 << (bits - 1)
    low = b.make(f"fcmp {'ogt' if bits == 32 else 'oge'} double {text}, {float(least - (bits == 32)):.1f}")
    high = b.make(f"fcmp olt double {text}, {float(most):.1f}")
    fits = b.make(f"and i1 {low}, {high}")
    safe = b.make(f"select i1 {fits}, double {text}, double 0.0")
    number = b.make(f"fptosi double {safe} to i{bits}")
    return b.make(f"select i1 {fits}, i{bits} {number}, i{bits} {least}")


def lanes_type(llvm: str, width: int) -> str:
    """LLVM type of a scalar, or of a vector of them if `width` is above 1."""
    return f"<{width} x {llvm}>" if width > 1 else llvm


def splat(llvm: str, value: int, width: int) -> str:
    return f"splat ({llvm} {value})" if width > 1 else str(value)


def on_card(b: FunctionText, text: str, source: Scalar, type_: Scalar, width: int = 1) -> str:
    if source.size == 2:
        text = b.make(f"fpext {lanes_type(source.llvm, width)} {text} to {lanes_type('float', width)}")
    floating, kind = ("double", "f64") if source.size == 8 else ("float", "f32")
    bits = 64 if type_.size == 8 else 32
    lanes = f"v{width}" if width > 1 else ""
    name = f"llvm.fpto{'s' if type_.signed else 'u'}i.sat.{lanes}i{bits}.{lanes}{kind}"
    whole, given = lanes_type(f"i{bits}", width), lanes_type(floating, width)
    b.program.external(name, f"declare {whole} @{name}({given})")
    made = b.make(f"call {whole} @{name}({given} {text})")
    if bits == 64 or source.size == 8:  # NaN becomes 0 from float to 32 bits, else only the sign bit is set
        odd = b.make(f"fcmp uno {given} {text}, {text}")
        least = splat(f"i{bits}", -(1 << (bits - 1)), width)
        made = b.make(f"select {lanes_type('i1', width)} {odd}, {whole} {least}, {whole} {made}")
    if bits > type_.size * 8:
        made = b.make(f"trunc {whole} {made} to {lanes_type(type_.llvm, width)}")
    return made
