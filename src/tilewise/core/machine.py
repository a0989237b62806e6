"""A machine's rates, as the cost models need them. Plain values; nothing is probed here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tilewise.core.tuning import TunedTable
from tilewise.system.once import once


@dataclass(frozen=True)
class Machine:
    """One device. Rates are multiply-add steps a second on the ordinary cores."""

    kind: str  # "cpu" or "cuda"
    name: str
    units: int  # cores, or streaming multiprocessors
    bandwidth: float  # bytes a second between the device's memory and its cores
    step_rates: dict[str, float] = field(hash=False)  # by dtype; "" is any other
    arch: str = ""  # sm_90, …; empty on a CPU
    source: str = "datasheet"  # or "measured here"
    resident_threads: int = 2048  # threads a unit holds at once
    tensor_rates: dict[str, float] = field(default_factory=dict, hash=False)  # steps a second on tensor cores, by dtype
    vector_bytes: int = 0  # width of a CPU's vector registers; 0 where no kernel can be compiled
    registers: int = 0
    byte_dots: bool = False  # has 4-way byte dot products (VNNI, dotprod)
    matrix_tiles: bool = False  # has AMX, and this process may use it
    refused: str = ""  # why this process may not use AMX, where the CPU has it
    launch_seconds: float = 0.0  # of one kernel, at most about that; 0: any. A display waits for kernels
    tuned: TunedTable | None = field(default=None, hash=False)  # measured on this model of card

    def __hash__(self) -> int:
        """Computed once: a machine is part of many cache keys."""
        return self._hash

    @once
    def _hash(self) -> int:
        return hash((self.kind, self.name, self.units, self.arch))

    def __getstate__(self) -> dict[str, Any]:
        """Without the hash: strings hash differently in another process."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_hash", "_peak_rates")}

    def step_rate(self, dtype: str) -> float:
        return self.step_rates.get(dtype, self.step_rates[""])

    def tensor_rate(self, dtype: str) -> float:
        return self.tensor_rates.get(dtype, 0.0)

    def floor(self, steps: int, least_bytes: int, dtype: str) -> tuple[float, str]:
        """The roofline bound in seconds, and which of the two limits sets it."""
        compute, memory = steps / self.peak_rate(dtype), least_bytes / self.bandwidth
        return (compute, "arithmetic") if compute >= memory else (memory, "memory")

    def peak_rate(self, dtype: str) -> float:
        """The higher of the ordinary and the tensor-core rate."""
        return self._peak_rates.get(dtype) or max(self.step_rate(dtype), self.tensor_rate(dtype))

    @once
    def _peak_rates(self) -> dict[str, float]:
        """The higher of the ordinary and the tensor-core rate, by dtype."""
        return {dtype: max(self.step_rate(dtype), rate) for dtype, rate in self.tensor_rates.items()}


@dataclass(frozen=True)
class Times:
    """Seconds that a product took: to the device, on it, and back."""

    copy_in: float
    kernel: float
    copy_out: float


@lru_cache(maxsize=64)
def arch_number(arch: str) -> int:
    digits = re.match(r"sm_(\d+)", arch)
    return int(digits.group(1)) if digits else 0


def shared_limit(arch: str) -> int:
    """Bytes of shared memory that a block may have, by compute capability."""
    number = arch_number(arch)
    if number in (80, 87) or 90 <= number < 120:
        return (163 if number < 90 else 227) * 1024
    return 99 * 1024 if number > 80 else 64 * 1024


def resident_threads(arch: str) -> int:
    """Threads that a multiprocessor holds at once, by compute capability."""
    number = arch_number(arch)
    if number == 75:
        return 1024
    return 1536 if number in (86, 87, 89) or number >= 120 else 2048


def has_dependent_launch(arch: str) -> bool:
    """Whether a card can start a kernel while the one queued before it ends (programmatic dependent launch)."""
    return arch_number(arch) >= 90


def card(
    name: str,
    arch: str,
    units: int,
    clock: float,
    bandwidth: float,
    *,
    lanes: int = 128,
    double: float = 1 / 64,
    tensor: int = 512,
    halved: bool = False,
) -> Machine:
    """A card from its datasheet: float32 lanes of a multiprocessor, what share of them float64 has, and the steps a
    cycle of its tensor cores for 2-byte floats; `halved` (GeForce): half as many where sums are float32. Where float64
    has half the lanes, tensor cores double its rate."""
    rate, tensor_rate = units * lanes * clock, units * tensor * clock * (0.5 if halved else 1.0)
    number, tensor_rates = arch_number(arch), {"float16": tensor_rate, "int8": 2 * units * tensor * clock}
    if number >= 80:
        tensor_rates |= {"bfloat16": tensor_rate, "tf32": tensor_rate / 2}
    if number >= 89:
        tensor_rates["float8"] = 2 * tensor_rate
    if double >= 1 / 2:
        tensor_rates["float64"] = 2 * double * rate
    return Machine(
        "cuda",
        name,
        units,
        bandwidth,
        {"": rate, "float64": rate * double, "int64": rate / 4, "complex64": rate / 4, "complex128": rate * double / 4},
        arch,
        resident_threads=resident_threads(arch),
        tensor_rates=tensor_rates,
    )


# For planning where no card is present: figures from the vendors' datasheets; docs/cards.md says which were measured.
KNOWN_CARDS = {
    "t4": card("Tesla T4", "sm_75", 40, 1.59e9, 320e9, lanes=64, double=1 / 32),
    "a10": card("NVIDIA A10", "sm_86", 72, 1.695e9, 600e9),
    "a100": card("NVIDIA A100", "sm_80", 108, 1.41e9, 1555e9, lanes=64, double=1 / 2, tensor=1024),
    "rtx3060": card("GeForce RTX 3060", "sm_86", 28, 1.777e9, 360e9, halved=True),
    "rtx3090": card("GeForce RTX 3090", "sm_86", 82, 1.695e9, 936e9, halved=True),
    "rtx4070": card("GeForce RTX 4070", "sm_89", 46, 2.475e9, 504e9, halved=True),
    "rtx4090": card("GeForce RTX 4090", "sm_89", 128, 2.52e9, 1008e9, halved=True),
    "rtx5090": card("GeForce RTX 5090", "sm_120", 170, 2.407e9, 1792e9, halved=True),
    "l4": card("NVIDIA L4", "sm_89", 58, 2.04e9, 300e9),
    "l40s": card("NVIDIA L40S", "sm_89", 142, 2.52e9, 864e9),
    "h100": card("NVIDIA H100", "sm_90", 132, 1.98e9, 3350e9, double=1 / 2, tensor=2048),
    "h200": card("NVIDIA H200", "sm_90", 132, 1.98e9, 4800e9, double=1 / 2, tensor=2048),
    "b200": card("NVIDIA B200", "sm_100", 148, 1.85e9, 8000e9, double=1 / 2, tensor=4096),
}
