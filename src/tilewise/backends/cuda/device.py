"""The planner's `Machine` of a card, from its driver's attributes."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import lru_cache

from tilewise.arrays.card import card_attributes, card_number
from tilewise.core.machine import Machine, card
from tilewise.core.tuning import table_for
from tilewise.errors import UsageError
from tilewise.system.cache import cache_folder

# by compute capability: float32 lanes of a multiprocessor, float64's rate relative to float32's, and tensor cores'
# multiply-adds of 2-byte floats a cycle
LANES = {
    (7, 0): (64, 1 / 2, 512),
    (7, 5): (64, 1 / 32, 512),
    (8, 0): (64, 1 / 2, 1024),
    (9, 0): (128, 1 / 2, 2048),
    (10, 0): (128, 1 / 2, 4096),
}
DISPLAY_SECONDS = 0.5
USUAL = (128, 1 / 64, 512)  # consumer cards since Ampere


@lru_cache(maxsize=16)
def describe(device: str) -> Machine:
    """Units, peak rate and bandwidth of one card."""
    found = card_attributes(device)
    lanes, double, tensor = LANES.get(found.capability, USUAL)
    made = card(
        found.name,
        arch_of(device),
        found.units,
        found.clock * 1e3,
        2 * found.memory_clock * 1e3 * found.bus_bits / 8,
        lanes=lanes,
        double=double,
        tensor=tensor,
        halved="GeForce" in found.name,
    )
    return replace(made, tuned=table_for(made.name, cache_folder()), launch_seconds=launch_seconds(found.has_time_out))


def launch_seconds(has_time_out: bool) -> float:
    """The bound on one launch: TILEWISE_LAUNCH_SECONDS, else DISPLAY_SECONDS where the driver ends long kernels."""
    given = os.environ.get("TILEWISE_LAUNCH_SECONDS")
    if not given:
        return DISPLAY_SECONDS if has_time_out else 0.0
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise UsageError(f"TILEWISE_LAUNCH_SECONDS={given!r} must be a number of seconds, or 0 for no bound")
    return seconds


ARCHS = {
    "sm_75": "Turing (as T4)",
    "sm_80": "Ampere (as A100)",
    "sm_86": "Ampere, consumer",
    "sm_89": "Ada",
    "sm_90a": "Hopper",
    "sm_100": "Blackwell, data centre",
    "sm_120": "Blackwell, consumer",
}  # names of machines without a card, to build kernels for


def machine_of_arch(arch: str) -> Machine:
    """A machine for choosing kernels without a card: the tiles that fit, and relative rates."""
    if arch not in ARCHS:
        raise UsageError(f"arch={arch!r} is not known; known are {', '.join(ARCHS)}")
    digits = arch.removeprefix("sm_").rstrip("a")
    lanes, double, tensor = LANES.get((int(digits[:-1]), int(digits[-1])), USUAL)
    return card(ARCHS[arch], arch, 100, 1.5e9, 1e12, lanes=lanes, double=double, tensor=tensor)


@lru_cache(maxsize=16)
def arch_of(device: str) -> str:
    """The arch to compile for: sm_90a on Hopper, whose own instructions need the a."""
    major, minor = card_attributes(device).capability
    name = f"sm_{major}{minor}"
    return name + "a" if name == "sm_90" else name


def full_name(device: str) -> str:
    """ "cuda" as "cuda:0"."""
    return f"cuda:{card_number(device)}"
