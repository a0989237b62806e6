"""Comparisons with a reference that cannot fail: reported at the end of the program, from the values they compared."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tilewise.emulator.host.runtime.session import Session
from tilewise.emulator.machine.findings import Kind

MIN_VALUES = 16  # compared values of a comparison of arrays
MIN_INPUT = 64  # bytes of an array copied to the card that is checked for being constant


def check_comparisons(s: Session) -> None:
    passed = False
    for made in s.program.comparisons:
        largest, limit, count, failed, nan = struct.unpack("<ddQQQ", s.memory.view(made.address, 40).tobytes())
        if not made.has_limit or count < MIN_VALUES or failed:
            continue
        passed = True
        if nan:
            s.faults.add(
                Kind.COMPARISON, made.line,
                f"{nan} of the values compared here are NaN, and none of them counts as different",
                "every comparison with NaN is false: write if (!(difference <= limit)), or look for them with isnan",
                access="comparison",
            )  # fmt: skip
        elif made.truncated and made.floating:
            s.faults.add(
                Kind.COMPARISON, made.line,
                "this comparison takes the difference of floats as an integer: whatever is less than 1 counts as equal",
                "keep the difference in a float: float difference = fabsf(a - b)", access="comparison",
            )  # fmt: skip
        elif 0 < largest <= limit:
            s.faults.add(
                Kind.COMPARISON, made.line,
                f"this comparison cannot fail: differences up to {limit:g} pass, and no value compared is larger than "
                f"{largest:g}",
                "take a limit that is small beside the values: 1e-4f * fabsf(expected), say", access="comparison",
            )  # fmt: skip
        elif largest == 0:
            s.faults.notes.append(f"line {made.line}: every value compared here is 0, on both sides")
    if passed:
        _constant_inputs(s)


def _constant_inputs(s: Session) -> None:
    """If all inputs are constant arrays, note that swapped rows and columns would not be found."""
    inputs = list(s.cuda.inputs.values())
    if len(inputs) < 2 or not all(constant for _, constant in inputs):
        return
    names = ", ".join(dict.fromkeys(name for name, _ in inputs if name))
    s.faults.notes.append(
        f"every element of what was copied to the card ({names}) is the same: mixed-up indices would pass the "
        "comparison, too; give each element a value of its own"
    )


def record_input(s: Session, block: Any, source: int, size: int) -> None:
    """Record whether an array that is copied to the card has the same value everywhere."""
    if size < MIN_INPUT or size % 4:
        return
    data = s.memory.view(source, size).view(np.uint32) if source % 4 == 0 else None
    constant = data is not None and bool((data[: 1 << 20] == data[0]).all())
    before = s.cuda.inputs.get(block.address, ("", True))[1]
    s.cuda.inputs[block.address] = (block.name, constant and before)
