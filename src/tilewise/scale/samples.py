"""Checksums over samples of an operand, by which a resumed product detects that the operand has changed.

Size and modification time reveal nearly every change; for the others (a disk image written underneath, a clock that was
set back) samples of the bytes are compared. Samples form rings: the first is always read, and each further one has four
times as many, at other offsets. All of them are read when a product starts: a 48th of the operand at most, under 2 % of
the time of reading it once. When it is resumed, more rings are compared the longer it was idle.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

SAMPLES, SAMPLE_BYTES = 256, 64 * 1024  # of the first ring; an operand that they cover is checked whole
WIDER = 4  # samples of a ring over those of the one before
SHARE = 64  # the largest further ring reads one in so many bytes of an operand
PATIENCE = (60.0, 600.0, 3600.0, 6 * 3600.0)  # idle seconds from which one more ring is read
ALL = len(PATIENCE)

Read = Callable[[memoryview, int], int]  # fill memory from a place; how many bytes there were


def rings_after(idle: float) -> int:
    """The number of further rings to read after so many idle seconds; all if the clock went back."""
    return ALL if idle < 0 else sum(idle >= least for least in PATIENCE)


def checksums(read: Read, size: int, rings: int) -> list[int]:
    """A checksum for the first ring, and for up to `rings` further ones if the operand is large enough."""
    further = range(1, rings + 1)
    counts = [SAMPLES] + [n for n in (SAMPLES * WIDER**ring for ring in further) if n * SAMPLE_BYTES * SHARE <= size]
    return [_checksum(read, size, ring, count) for ring, count in enumerate(counts)]


def _checksum(read: Read, size: int, ring: int, count: int) -> int:
    last = max(0, size - SAMPLE_BYTES)
    if ring == 0:
        places = {0, last, *(last * i // count for i in range(count))}
    else:  # a third between two offsets: never an offset of an earlier ring
        places = {last * (3 * i + 1) // (3 * count) for i in range(count)}
    checksum, sample = 0, memoryview(bytearray(SAMPLE_BYTES))
    for place in sorted(places):
        checksum = zlib.crc32(sample[: read(sample, place)], checksum)
    return checksum


def same(before: Any, now: Any) -> bool:
    """Two identities agree: in everything, and in the samples as far as both have them."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return bool(before == now)
    ours, theirs = ({key: value for key, value in x.items() if key != "sampled"} for x in (before, now))
    return ours == theirs and all(a == b for a, b in zip(_rings(before), _rings(now), strict=False))


def _rings(identity: dict[str, Any]) -> list[Any]:
    sampled = identity.get("sampled", [])
    return sampled if isinstance(sampled, list) else [sampled]  # one number, in journals of older versions
