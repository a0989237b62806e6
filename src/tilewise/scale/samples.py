"""A checksum over samples of an operand, by which a resumed product detects that the operand has changed.

Size and modification time reveal nearly every change. For the others (a disk image written underneath, a clock set
back) samples of the bytes are compared: a 48th of a large operand, under 3 % of the time of reading it once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

SAMPLE_BYTES = 64 * 1024
LEAST, MOST = 256, 2**16  # samples; a small operand is covered completely by LEAST
SHARE = 48  # otherwise one of this many bytes is read

Read = Callable[[memoryview, int], int]  # fills memory from an offset; returns the number of bytes


def checksum(read: Read, size: int) -> int:
    """The CRC of the first and the last sample, and of evenly spaced ones between them."""
    count, last = min(MOST, max(LEAST, size // (SHARE * SAMPLE_BYTES))), max(0, size - SAMPLE_BYTES)
    value, sample = 0, memoryview(bytearray(SAMPLE_BYTES))
    for place in sorted({last, *(last * i // count for i in range(count))}):
        value = zlib.crc32(sample[: read(sample, place)], value)
    return value
