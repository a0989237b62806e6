"""Dot-product instructions: a lane has four bytes or two 16-bit numbers, whose products are added to a 32-bit sum.
Nothing is rounded or saturates: sums wrap, as NumPy's do.

x86's vpdpbusd takes one operand as unsigned bytes, the other as signed ones. Where only the lowest byte of a sum is
stored, signs do not matter; where both operands are signed, M is packed with +128 (`Arithmetic.compensates`).
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.system.llvm_text import IRFunction


def one_instruction(a: Arithmetic) -> bool:
    """Whether the instruction that multiplies also adds to the sum, so that LLVM cannot reassociate additions."""
    return a.k_pack > 1 and a.target.byte_dots


def dot(f: IRFunction, a: Arithmetic, total: str, m: str, n: str) -> str:
    """The sums plus the dot product of every lane of m and n."""
    if a.target.by_lane:
        sign = "u" if a.source_m.kind == a.source_n.kind == "u" else "s"
        kind = f"<{4 * a.lanes} x i8>"
        bytes_m, bytes_n = (f.op(f"bitcast {a.vector} {x} to {kind}") for x in (m, n))
        name = f"llvm.aarch64.neon.{sign}dot.v{a.lanes}i32.v{4 * a.lanes}i8"
        return f.call(a.vector, name, [(a.vector, total), (kind, bytes_n), (kind, bytes_m)])
    bits = 8 * a.target.vector_bytes
    if a.k_pack == 4:
        swapped = a.source_n.kind == "u" and a.source_m.kind == "i"
        unsigned, signed = (n, m) if swapped else (m, n)
        operands = [(a.vector, total), (a.vector, unsigned), (a.vector, signed)]
        return f.call(a.vector, f"llvm.x86.avx512.vpdpbusd.{bits}", operands)
    if a.target.byte_dots:
        return f.call(a.vector, f"llvm.x86.avx512.vpdpwssd.{bits}", [(a.vector, x) for x in (total, m, n)])
    kind = f"<{2 * a.lanes} x i16>"
    halves = [(kind, f.op(f"bitcast {a.vector} {x} to {kind}")) for x in (m, n)]
    name = {64: "avx512.pmaddw.d.512", 32: "avx2.pmadd.wd", 16: "sse2.pmadd.wd"}[a.target.vector_bytes]
    return f.op(f"add {a.vector} {total}, {f.call(a.vector, f'llvm.x86.{name}', halves)}")
