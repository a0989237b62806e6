"""cuFFT, computed by NumPy on the card's memory."""

from __future__ import annotations

import math

import numpy as np

from tilewise.emulator.host.runtime.cuda_libraries import array
from tilewise.emulator.host.runtime.session import Session, runtime

R2C, C2R, C2C, D2Z, Z2D, Z2Z = 42, 44, 41, 106, 108, 105
INVALID_PLAN, INVALID_TYPE, EXEC_FAILED = 1, 3, 6
MAX_ELEMENTS = 1 << 27  # of a transform


@runtime("__cufft_plan")
def plan(s: Session, kind: int, rank: int, a: int, b: int, c: int, batch: int) -> int:
    """The number of a plan; 0 for invalid sizes."""
    shape = (a, b, c)[: min(3, max(1, rank))]
    if min(*shape, batch, 1) < 1 or math.prod(shape) * batch > MAX_ELEMENTS:
        return 0
    plans = s.state.setdefault("cufft plans", [])
    plans.append((kind, (batch, *shape)))
    return len(plans)


@runtime("__cufft", needs="numpy.fft")
def execute(s: Session, number: int, kind: int, source: int, to: int, direction: int) -> int:
    plans = s.state.get("cufft plans", [])
    if not 1 <= number <= len(plans):
        return INVALID_PLAN
    planned, shape = plans[number - 1]
    if planned != kind:
        return INVALID_TYPE
    double = kind in (D2Z, Z2D, Z2Z)
    real, imaginary = (np.float64, np.complex128) if double else (np.float32, np.complex64)
    half = (*shape[:-1], shape[-1] // 2 + 1)  # the non-redundant half of a real signal's transform
    in_shape, in_type = (half if kind in (C2R, Z2D) else shape), (real if kind in (R2C, D2Z) else imaginary)
    out_shape, out_type = (half if kind in (R2C, D2Z) else shape), (real if kind in (C2R, Z2D) else imaginary)
    given = array(s, source, in_type, math.prod(in_shape), "the input of cuFFT")
    place = array(s, to, out_type, math.prod(out_shape), "the output of cuFFT")
    if given is None or place is None:
        return EXEC_FAILED
    axes = tuple(range(1, len(shape)))
    with np.errstate(all="ignore"):
        found = _transformed(given.reshape(in_shape), kind, shape, axes, direction)
        place[:] = found.astype(out_type).ravel()
    s.memory.change(to, place.nbytes, give=2)
    block = s.memory.find(to)
    if block is not None:
        block.written, block.stored = True, s.line
    size = math.prod(shape)
    s.cuda.computed(5 * size * max(1.0, math.log2(max(2, size))) / (2 * s.cuda.machine.step_rates[""]))
    return 0


def _transformed(
    signal: np.ndarray, kind: int, shape: tuple[int, ...], axes: tuple[int, ...], direction: int
) -> np.ndarray:
    whole = math.prod(shape[1:])
    if kind in (R2C, D2Z):
        return np.fft.rfftn(signal, axes=axes)
    if kind in (C2R, Z2D):
        return np.fft.irfftn(signal, s=shape[1:], axes=axes) * whole
    return np.fft.fftn(signal, axes=axes) if direction < 0 else np.fft.ifftn(signal, axes=axes) * whole
