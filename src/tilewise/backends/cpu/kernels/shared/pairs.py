"""Complex numbers read in place, as pairs of real ones."""

from __future__ import annotations

from tilewise.algebra.to_llvm import vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.system.llvm_text import IRFunction


def folded(f: IRFunction, a: Arithmetic, parts: list[str], lanes: int) -> str:
    """Combine the sums by real and by imaginary parts, exchanging neighbouring lanes of the latter: i·(x + iy) = ix -
    y."""
    kind = vector(a.kind, lanes)
    other = f.shuffle(kind, parts[1], "poison", [lane ^ 1 for lane in range(lanes)])
    less, more = (f.op(f"{op} {kind} {parts[0]}, {other}") for op in ("fsub", "fadd"))
    return f.shuffle(kind, less, more, [lane + lanes * (lane % 2) for lane in range(lanes)])
