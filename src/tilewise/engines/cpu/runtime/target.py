"""The machine a kernel is written for: instruction set, vector width, registers; and the tile they allow."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import part
from tilewise.errors import UsageError
from tilewise.system.llvm_lock import LLVM

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
    masks: bool = False  # loads and stores some lanes of a vector in one instruction
    by_lane: bool = False  # multiplies by one lane of a vector (NEON), so M is best loaded by whole vectors
    min_number: bool = False  # fminnm: min and max that skip quiet NaN on either side

    @property
    def cheap_masks(self) -> bool:
        """A masked load takes no vector port (AVX-512), so that one kind of tile serves whole and broken vectors."""
        return self.masks and self.vector_bytes == 64

    @property
    def byte_dots(self) -> bool:
        """Multiplies bytes and adds them up by fours in one instruction: vpdpbusd, sdot."""
        word = {64: "+avx512vnni", 32: "+avxvnni"}.get(self.vector_bytes, "+dotprod")
        return word in self.features.split(",")

    def lanes(self, dtype: DType) -> int:
        """Lanes of one vector of the dtype's (real) parts."""
        return self.vector_bytes // part(dtype).itemsize


def known_target(name: str) -> Target:
    """A target by name, for this machine where it can be, for a typical one where it cannot."""
    if name == "avx512":
        features = "+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx512cd,+fma,+avx2,+f16c,+bmi,+bmi2"
        return Target("avx512", 64, 32, "skylake-avx512", features, "x86_64-unknown-linux-gnu", True, True, masks=True)
    if name == "avx2":
        return Target(
            "avx2", 32, 16, "haswell", "+avx2,+fma,+f16c,-avx512f", "x86_64-unknown-linux-gnu", True, masks=True
        )
    if name == "neon":
        return Target(
            "neon",
            16,
            32,
            "generic",
            "+neon,+fp-armv8",
            "aarch64-unknown-linux-gnu",
            True,
            by_lane=True,
            min_number=True,
        )
    if name == "generic":
        return replace(known_target("neon"), triple="") if is_arm() else Target("generic", 16, 16, "x86-64", "", "")
    raise UsageError(f"instruction set {name!r} is not known; known are {', '.join(INSTRUCTION_SETS)}")


@lru_cache(maxsize=1)
def host_target() -> Target:
    """The best this machine has, or what TILEWISE_INSTRUCTION_SET says."""
    asked = os.environ.get("TILEWISE_INSTRUCTION_SET")
    if asked:
        target = replace(known_target(asked), triple="")
        if asked not in executable():
            here = f"this machine ({platform.machine()}), which executes {', '.join(executable())}"
            raise UsageError(f"TILEWISE_INSTRUCTION_SET={asked!r} is not for {here}")
        return target
    best = executable()[0]
    if best == "generic":
        return known_target("generic")
    cpu, features = _host()
    flat = ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(features.items()))
    target = replace(known_target(best), cpu=cpu, features=flat, triple="")
    if target.byte_dots and not is_arm():  # else LLVM makes two instructions of each vpdpwssd
        target = replace(target, features=f"{flat},+fast-dpwssd")
    return target


def executable() -> tuple[str, ...]:
    """The instruction sets that this machine executes, the best first."""
    if is_arm():
        return ("neon", "generic")
    has = _host()[1]
    wanted = {"avx512": ("avx512f", "avx512dq", "avx512bw", "avx512vl"), "avx2": ("avx2", "fma", "f16c")}
    found = [name for name, features in wanted.items() if all(has.get(feature) for feature in features)]
    return (*found, "generic")


def is_arm() -> bool:
    return platform.machine().lower() in ("aarch64", "arm64")


@lru_cache(maxsize=1)
def _host() -> tuple[str, dict[str, bool]]:
    """LLVM's name for this CPU and what it has; neither where LLVM cannot tell (it may refuse on some systems)."""
    with LLVM:
        import llvmlite.binding as llvm

        try:
            name, features = llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
        except RuntimeError:
            return "generic" if is_arm() else "x86-64", {}
    return name, features | ({"dotprod": True} if is_arm() and _has_dots() else {})


def _has_dots(cpuinfo: str = "/proc/cpuinfo") -> bool:
    """Whether an ARM CPU has sdot and udot, which LLVM leaves out of the features it finds. All Apple silicon has."""
    if platform.system() == "Darwin":
        return True
    try:
        with open(cpuinfo, encoding="ascii", errors="replace") as file:
            flags = [line.partition(":")[2].split() for line in file if line.startswith("Features")]
    except OSError:
        return False
    return bool(flags) and all("asimddp" in each for each in flags)
