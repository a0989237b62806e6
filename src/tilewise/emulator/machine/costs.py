"""Performance costs per warp: bank conflicts, sectors per request, divergence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

WARP = 32
BANKS = 32
BANK_BYTES = 4
SECTOR_BYTES = 32


def distinct(keys: np.ndarray) -> np.ndarray:
    """Sorted unique values. np.unique imports numpy.ma: slow for a small trace, and impossible in the sandbox."""
    ordered = np.sort(keys)
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return np.compress(first, ordered)


@dataclass
class SiteCost:
    """Costs of one access in the source; `requests` counts warps."""

    requests: int = 0
    units: int = 0  # wavefronts for shared memory, sectors for global memory
    least: int = 0  # with the best layout of the same access
    worst: int = 0


@dataclass
class Costs:
    """Counts per site; a pattern of addresses that repeats up to a shift is counted once and tallied again."""

    threads: int
    shared: dict[int, SiteCost] = field(default_factory=dict)
    globals: dict[int, SiteCost] = field(default_factory=dict)
    branches: dict[int, list[int]] = field(default_factory=dict)  # [warps that met the branch, that split]
    _seen: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    _warps: dict[int, tuple[np.ndarray, int]] = field(default_factory=dict)

    def _warp_of_lane(self, n: int) -> tuple[np.ndarray, int]:
        known = self._warps.get(n)
        if known is None:
            per_block = -(-self.threads // WARP)
            lanes = np.arange(n)
            warp = lanes // self.threads * per_block + lanes % self.threads // WARP
            known = self._warps[n] = (warp, int(warp[-1]) + 1 if n else 0)
        return known

    def request(self, site: int, space: str, index: Any, mask: Any, n: int, itemsize: int, leaves: int) -> None:
        """An access of all lanes in `mask` at cell `index` (lane-wise or uniform)."""
        table = self.shared if space == "shared" else self.globals
        seen = self._seen.get(site)
        alignment, pattern = 0, None
        if isinstance(index, np.ndarray):
            first = int(index[0])
            alignment = 0 if space == "shared" else first % max(1, SECTOR_BYTES // itemsize)
            if seen is not None and (seen[1] is not mask or seen[3] != alignment):
                seen = None
            pattern = None if seen is not None and seen[0] is index else index - first
            if seen is not None and (pattern is None or (seen[4] is not None and np.array_equal(seen[4], pattern))):
                self._tally(table, site, seen[2])
                return
        else:
            index = np.full(n, int(index))
        counted = self._count(space, index, mask, n, itemsize, leaves)
        self._seen[site] = (index, mask, counted, alignment, pattern)
        self._tally(table, site, counted)

    @staticmethod
    def _tally(table: dict[int, SiteCost], site: int, counted: tuple[int, int, int, int]) -> None:
        cost = table.get(site)
        if cost is None:
            cost = table[site] = SiteCost()
        cost.requests += counted[0]
        cost.units += counted[1]
        cost.least += counted[2]
        cost.worst = max(cost.worst, counted[3])

    def _count(
        self, space: str, index: np.ndarray, mask: Any, n: int, itemsize: int, leaves: int
    ) -> tuple[int, int, int, int]:
        warp, warps = self._warp_of_lane(n)
        bytes_ = index * itemsize
        width = itemsize * leaves
        if mask is not None:
            warp, bytes_ = warp[mask], bytes_[mask]
        if not len(warp):
            return 0, 0, 0, 0
        active = np.bincount(warp, minlength=warps)
        requests = int(np.count_nonzero(active))
        if space == "shared":
            word = bytes_ // BANK_BYTES
            words = max(1, width // BANK_BYTES)
            key = distinct(warp * (1 << 40) + word)  # distinct words of a warp: a broadcast counts once
            owner, bank = key >> 40, key % BANKS
            per_bank = np.bincount(owner * BANKS + bank, minlength=warps * BANKS).reshape(warps, BANKS)
            waves = per_bank.max(axis=1) * words
            least = -(-np.bincount(owner, minlength=warps) * words // BANKS)
            return requests, int(waves.sum()), int(least.sum()), int(waves.max())
        keys = [warp * (1 << 40) + bytes_ // SECTOR_BYTES]
        if width > 1:
            keys.append(warp * (1 << 40) + (bytes_ + width - 1) // SECTOR_BYTES)
        touched = distinct(np.concatenate(keys))
        per_warp = np.bincount(touched >> 40, minlength=warps)
        requested = distinct(warp * (1 << 40) + bytes_)
        ideal = -(-np.bincount(requested >> 40, minlength=warps) * width // SECTOR_BYTES)
        return requests, int(per_warp.sum()), int(ideal.sum()), int(per_warp.max())

    def branch(self, site: int, taken: np.ndarray, mask: Any, n: int) -> None:
        """A condition that differs between lanes; `taken` is within `mask`."""
        warp, warps = self._warp_of_lane(n)
        yes = np.bincount(warp[taken], minlength=warps) > 0
        rest = ~taken if mask is None else mask & ~taken
        no = np.bincount(warp[rest], minlength=warps) > 0
        counts = self.branches.setdefault(site, [0, 0])
        counts[0] += int(np.count_nonzero(yes | no))
        counts[1] += int(np.count_nonzero(yes & no))
