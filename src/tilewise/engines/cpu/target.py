"""The machine a kernel is written for: instruction set, vector width, registers; and the tile they allow."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import part
from tilewise.engines.cpu.llvm_lock import LLVM
from tilewise.errors import UsageError

INSTRUCTION_SETS = ("avx512", "avx2", "neon", "generic")


@dataclass(frozen=True)
class Target:
    """One instruction set. `cpu` and `features` are LLVM's words; an empty `triple` is this machine's."""

    name: str
    vector_bytes: int
    registers: int
    cpu: str
    features: str
    triple: str = ""
    converts_half: bool = False  # float16 to float32 and back in hardware
    ranges: bool = False  # vrangeps: min and max that skip NaN on either side

    def lanes(self, dtype: DType) -> int:
        """Lanes of one vector of the dtype's (real) parts."""
        return self.vector_bytes // part(dtype).itemsize


def known_target(name: str) -> Target:
    """A target by name, for this machine where it can be, for a typical one where it cannot."""
    if name == "avx512":
        features = "+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx512cd,+fma,+avx2,+f16c,+bmi,+bmi2"
        return Target("avx512", 64, 32, "skylake-avx512", features, "x86_64-unknown-linux-gnu", True, True)
    if name == "avx2":
        return Target("avx2", 32, 16, "haswell", "+avx2,+fma,+f16c,-avx512f", "x86_64-unknown-linux-gnu", True)
    if name == "neon":
        return Target("neon", 16, 32, "generic", "+neon,+fp-armv8", "aarch64-unknown-linux-gnu")
    if name == "generic":
        arm = platform.machine().lower() in ("aarch64", "arm64")
        return replace(known_target("neon"), triple="") if arm else Target("generic", 16, 16, "x86-64", "", "")
    raise UsageError(f"instruction set {name!r} is not known; known are {', '.join(INSTRUCTION_SETS)}")


@lru_cache(maxsize=1)
def host_target() -> Target:
    """The best this machine has, or what TILEWISE_INSTRUCTION_SET says."""
    asked = os.environ.get("TILEWISE_INSTRUCTION_SET")
    if asked:
        return replace(known_target(asked), triple="")
    with LLVM:
        import llvmlite.binding as llvm

        features = llvm.get_host_cpu_features()
        flat, cpu = features.flatten(), llvm.get_host_cpu_name()
    if all(features.get(f) for f in ("avx512f", "avx512dq", "avx512bw", "avx512vl")):
        return Target("avx512", 64, 32, cpu, flat, "", True, True)
    if features.get("avx2") and features.get("fma"):
        return Target("avx2", 32, 16, cpu, flat, "", bool(features.get("f16c")))
    if platform.machine().lower() in ("aarch64", "arm64"):
        return Target("neon", 16, 32, cpu, flat)
    return known_target("generic")
