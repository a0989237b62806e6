"""The machine a kernel is written for: instruction set, vector width, registers.

A CPU is probed once (`probed`), and every target of code that runs here is made from that list: a target names no
instructions that the CPU does not report, and disables those that LLVM's name for a CPU implies and this one lacks.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import part
from tilewise.errors import UsageError
from tilewise.system.llvm_lock import LLVM
from tilewise.system.once import once

INSTRUCTION_SETS = ("avx512", "avx2", "neon", "generic")
BYTE_DOTS = {64: "avx512vnni", 32: "avxvnni", 16: "dotprod"}  # vpdpbusd and sdot, by bytes of a vector
AMX = ("amx-tile", "amx-int8", "amx-bf16", "avx512bf16")  # what its microkernel needs beside AVX-512
ONE_VPDPWSSD = "fast-dpwssd"  # a tuning flag: without it LLVM splits each vpdpwssd into two instructions
# features that LLVM does not detect on ARM, by the flags of /proc/cpuinfo; its names for CPUs imply them
UNDETECTED = {
    "asimddp": "dotprod", "asimdhp": "fullfp16", "asimdfhm": "fp16fml", "asimdrdm": "rdm", "lrcpc": "rcpc",
    "fcma": "complxnum", "i8mm": "i8mm", "bf16": "bf16", "sve2": "sve2", "sha3": "sha3",
}  # fmt: skip
# further features that LLVM's names for typical CPUs imply and that kernels could use
IMPLIED = {
    "haswell": ("bmi", "bmi2", "lzcnt", "movbe", "popcnt", "crc32", "pclmul"),
    "skylake-avx512": ("lzcnt", "movbe", "popcnt", "crc32", "pclmul", "adx", "aes"),
}


@dataclass(frozen=True)
class Cpu:
    """A CPU as it is probed: LLVM's name for it, and which features it has."""

    name: str
    features: Mapping[str, bool] = field(hash=False)
    arm: bool

    def has(self, features: str) -> bool:
        """Whether it has all features that a target's string requires."""
        return all(self.features.get(x[1:], False) for x in features.split(",") if x.startswith("+"))


@dataclass(frozen=True)
class Target:
    """One instruction set. `cpu` and `features` are LLVM's; an empty `triple` is this machine's."""

    name: str
    vector_bytes: int
    registers: int
    cpu: str
    features: str
    triple: str = ""
    converts_half: bool = False  # float16 to float32 and back in hardware
    has_vrange: bool = False  # vrangeps: min and max that skip NaN on either side
    masks: bool = False  # has masked loads and stores
    by_lane: bool = False  # has multiply by lane (NEON), so M is loaded by whole vectors
    has_fminnm: bool = False  # fminnm: min and max that skip quiet NaN on either side

    @property
    def cheap_masks(self) -> bool:
        """Whether masked loads take no vector port (AVX-512): one kind of tile serves whole and partial vectors."""
        return self.masks and self.vector_bytes == 64

    @once
    def byte_dots(self) -> bool:
        """Whether it has 4-way byte dot products: vpdpbusd, sdot."""
        return f"+{BYTE_DOTS[self.vector_bytes]}" in self.features.split(",")

    @once
    def amx(self) -> bool:
        """Multiplies tiles of bytes and of bfloat16. The system's permission is another question."""
        return {f"+{name}" for name in AMX} <= set(self.features.split(","))

    def lanes(self, dtype: DType) -> int:
        """Lanes of one vector of the dtype's (real) parts."""
        return self.vector_bytes // part(dtype).itemsize


def known_target(name: str) -> Target:
    """A target by name, for a typical CPU that has it."""
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
            has_fminnm=True,
        )
    if name == "generic":
        return _generic(is_arm())
    raise UsageError(f"instruction set {name!r} is not known; known are {', '.join(INSTRUCTION_SETS)}")


def _generic(arm: bool) -> Target:
    """The baseline of an architecture."""
    return replace(known_target("neon"), triple="") if arm else Target("generic", 16, 16, "x86-64", "", "")


@lru_cache(maxsize=1)
def host_target() -> Target:
    """The best this machine has, or the value of TILEWISE_INSTRUCTION_SET."""
    setting = os.environ.get("TILEWISE_INSTRUCTION_SET")
    if not setting:
        return best_target(probed())
    known_target(setting)
    if setting not in executable():
        here = f"this machine ({platform.machine()}), which executes {', '.join(executable())}"
        raise UsageError(f"TILEWISE_INSTRUCTION_SET={setting!r} is not for {here}")
    return plain_target(setting, probed())


def executable() -> tuple[str, ...]:
    """The instruction sets that this machine executes, the best first."""
    return sets_of(probed())


def sets_of(cpu: Cpu) -> tuple[str, ...]:
    """The instruction sets that a CPU executes, the best first."""
    if cpu.arm:
        return ("neon", "generic")
    return (*(name for name in ("avx512", "avx2") if cpu.has(known_target(name).features)), "generic")


def best_target(cpu: Cpu) -> Target:
    """The best instruction set of a CPU, with all of the CPU's other features."""
    best = sets_of(cpu)[0]
    if best == "generic":
        return _generic(cpu.arm)
    flat = ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(cpu.features.items()))
    target = replace(known_target(best), cpu=cpu.name, features=flat, triple="")
    if target.byte_dots and not cpu.arm:
        target = replace(target, features=f"{flat},+{ONE_VPDPWSSD}")
    return target


def plain_target(name: str, cpu: Cpu, *, byte_dots: bool = False, amx: bool = False) -> Target:
    """An instruction set without the further features of this CPU, but with byte dot products or AMX."""
    target = _generic(cpu.arm) if name == "generic" else replace(known_target(name), triple="")
    features = target.features.split(",") if target.features else []
    if byte_dots:
        features += [f"+{BYTE_DOTS[target.vector_bytes]}", *([] if cpu.arm else [f"+{ONE_VPDPWSSD}"])]
    features += [f"+{x}" for x in AMX] if amx else []
    features += [f"-{x}" for x in IMPLIED.get(target.cpu, ()) if not cpu.features.get(x, False)]
    return replace(target, features=",".join(features))


def has_byte_dots(name: str, cpu: Cpu) -> bool:
    """Whether a CPU has byte dot products in this vector width: AVX-512 VNNI does not imply AVX-VNNI."""
    vector_bytes = plain_target(name, cpu).vector_bytes
    return name != "generic" and cpu.features.get(BYTE_DOTS[vector_bytes], False)


def is_arm() -> bool:
    return platform.machine().lower() in ("aarch64", "arm64")


@lru_cache(maxsize=1)
def probed() -> Cpu:
    """This machine's CPU, with no features where LLVM cannot detect them (it may fail on some systems)."""
    with LLVM:
        import llvmlite.binding as llvm

        try:
            name, features = llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
        except RuntimeError:
            return Cpu("generic" if is_arm() else "x86-64", {}, is_arm())
    return Cpu(name, features | (undetected() if is_arm() else {}), is_arm())


def undetected(cpuinfo: str = "/proc/cpuinfo") -> dict[str, bool]:
    """Which features that LLVM does not detect every core of an ARM CPU has. All Apple silicon has sdot and udot."""
    if platform.system() == "Darwin":
        return {"dotprod": True}
    try:
        with open(cpuinfo, encoding="ascii", errors="replace") as file:
            flags = [line.partition(":")[2].split() for line in file if line.startswith("Features")]
    except OSError:
        flags = []
    return {name: bool(flags) and all(flag in each for each in flags) for flag, name in UNDETECTED.items()}
