"""The tiles of the mma.sync kernel, by card and by bytes of an element."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewise.core.machine import arch_number, shared_limit
from tilewise.core.plan import Geometry
from tilewise.kernels.capabilities import AMPERE, HOPPER, TURING

PHASE_BYTES = 128  # of k, of most tiles


@dataclass(frozen=True)
class MmaTile:
    """A tile of P made by warps_m × warps_n warps; `resident` such blocks share a multiprocessor.

    `share` is the part of the mma.sync rate that it reaches inside a large product. `rolling`: a fragment of M is read
    while the one before is multiplied, else all of a step's at once.
    """

    rows: int
    cols: int
    warps_m: int
    warps_n: int
    resident: int
    share: float
    rolling: bool = False
    phase: int = PHASE_BYTES  # bytes of k in a stage: half as many make more stages of the same memory
    along: float = 0.0  # the share where k lies along N's lines, if it is another

    @property
    def threads(self) -> int:
        return 32 * self.warps_m * self.warps_n

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.cols) * self.phase

    def stages(self, arch: str) -> int:
        """As many as fit with `resident` blocks, up to five phases."""
        whole, number = shared_limit(arch), arch_number(arch)
        if number < AMPERE:  # two buffers, through registers; the driver reserves no kilobyte of each block
            return min(2, whole // self.resident // self.stage_bytes)
        each = whole if self.resident == 1 else (whole + 1024) // self.resident - 1024
        return min(5 * PHASE_BYTES // self.phase, each // self.stage_bytes)

    def fits(self, arch: str) -> bool:
        """Whether shared memory holds enough stages to copy one phase while another is multiplied."""
        return self.stages(arch) >= 2 + self.rolling

    def takes(self, n_along_k: bool, vector: int) -> bool:
        """Whether registers suffice: a warp with 64 × 64 sums has none left for the addresses of many small copies,
        nor, with N contiguous along k, on Hopper for all of M's fragments (other cards' tiles have `along`)."""
        crowded = self.rows // self.warps_m * (self.cols // self.warps_n) >= 64 * 64
        if max(self.rows, self.cols) * self.phase // vector > 16 * self.threads:
            return False
        spare = self.rolling or self.phase < PHASE_BYTES or not n_along_k or self.along > 0
        return not crowded or (vector == 16 and spare)

    def shared_bytes(self, arch: str) -> int:
        return self.stages(arch) * self.stage_bytes

    def geometry(self, arch: str, size: int) -> Geometry:
        return Geometry((self.threads, 1), self.rows, self.cols, self.phase // size, self.shared_bytes(arch))


# by bytes of an element, the fastest inside a large product first; none of them spills
SMALL = (
    MmaTile(128, 256, 2, 4, 1, 0.99),
    MmaTile(128, 256, 2, 4, 1, 0.96, True),
    MmaTile(128, 128, 2, 2, 2, 0.85, True),
    MmaTile(128, 128, 2, 4, 1, 0.82),
    MmaTile(64, 128, 2, 2, 2, 0.75),
    MmaTile(64, 64, 2, 2, 3, 0.6),
)
FLOATS = (MmaTile(128, 128, 2, 4, 1, 0.85), *SMALL[4:])  # rounding to tf32 takes registers,
BYTES = FLOATS[:1]  # and so does transposing bytes
DOUBLES = (
    MmaTile(64, 128, 2, 2, 2, 0.92, True),
    MmaTile(128, 128, 2, 4, 1, 0.925, True),
    MmaTile(64, 64, 2, 2, 3, 0.9, True),
    MmaTile(64, 64, 2, 2, 2, 0.8, True),  # where shared memory is small
)
TILES: dict[int, tuple[MmaTile, ...]] = {1: BYTES, 2: SMALL, 4: FLOATS, 8: DOUBLES}  # Hopper's
# Other cards' tiles, with their shares as such cards on an H200 (`tests/cuda/other_cards.py`; of float8 estimated).
# With 163 KB of shared memory a phase has whole lines of 128 bytes: copies of half lines take 2.6 times as many cycles
# of shared memory as their bytes need. With 99 KB that would leave two stages, which is too few.
WIDE, TALL = MmaTile(128, 256, 2, 4, 1, 0.795, along=0.8), MmaTile(256, 128, 4, 2, 1, 0.785, along=0.79)
PAIR = MmaTile(128, 128, 2, 2, 2, 0.74, phase=64, along=0.72)
SQUARE, SMALLER, SMALLEST = (replace(x, share=y) for x, y in zip(SMALL[3:], (0.655, 0.605, 0.49), strict=True))


def _shared(tile: MmaTile, share: float, along: float, phase: int = PHASE_BYTES) -> MmaTile:
    return replace(tile, share=share, along=along, phase=phase)


TILES_80: dict[int, tuple[MmaTile, ...]] = {
    1: (_shared(WIDE, 0.64, 0.7), _shared(SQUARE, 0.51, 0.54, 64)),
    2: (WIDE, TALL, PAIR, SQUARE, SMALLER, SMALLEST),
    4: (
        _shared(WIDE, 0.65, 0.69),
        _shared(PAIR, 0.58, 0.5, 64),
        _shared(SQUARE, 0.49, 0.365),
        _shared(SMALLER, 0.465, 0.53),
        _shared(SMALLEST, 0.41, 0.38),
    ),
    8: DOUBLES,
}
TILES_86: dict[int, tuple[MmaTile, ...]] = {
    1: (_shared(WIDE, 0.63, 0.69, 64), _shared(SQUARE, 0.52, 0.55, 64)),
    2: (
        _shared(WIDE, 0.8, 0.765, 64),
        _shared(TALL, 0.79, 0.78, 64),
        _shared(PAIR, 0.75, 0.715, 64),
        SQUARE,
        _shared(SMALLER, 0.465, 0.435),
        replace(SMALLEST, share=0.37),
    ),
    4: (
        _shared(WIDE, 0.595, 0.46, 64),
        _shared(PAIR, 0.57, 0.5, 64),
        _shared(SQUARE, 0.49, 0.365),
        _shared(SMALLER, 0.38, 0.4),
        _shared(SMALLEST, 0.325, 0.265),
    ),
    8: DOUBLES,
}
TILES_75: dict[int, tuple[MmaTile, ...]] = {
    1: (_shared(TALL, 0.81, 0.79, 64), _shared(PAIR, 0.8, 0.78, 64), replace(SQUARE, share=0.6, phase=64)),
    2: (_shared(PAIR, 0.595, 0.54, 64), _shared(SQUARE, 0.535, 0.55), MmaTile(64, 64, 2, 2, 2, 0.345)),
    4: (),
    8: (),
}
EARLIER = {86: TILES_86, AMPERE: TILES_80, TURING: TILES_75}  # the first that a card reaches
PROMOTED = (
    replace(SQUARE, share=0.45, phase=64, rolling=True),
    replace(SQUARE, share=0.4, phase=64),
)  # sums are held twice


def tiles_of(rate: str, size: int, arch: str) -> tuple[MmaTile, ...]:
    """All tiles of such elements on a card."""
    number = arch_number(arch)
    if rate == "float8":
        return PROMOTED
    every = {HOPPER: TILES} if number == HOPPER else EARLIER
    return next((tiles[size] for first, tiles in every.items() if number >= first), ())
