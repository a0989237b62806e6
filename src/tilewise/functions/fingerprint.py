"""`tw.fingerprint`: one line that two parties compare instead of a product; and products whose line is known.

The digest covers dtype, shape and the bits of every element, little-endian and in row-major order. Products are drawn
by a generator of integers alone, so that every machine draws the same operands.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, dtype_named
from tilewise.api import matmul
from tilewise.arrays import find_library
from tilewise.core.problem import parse_shape
from tilewise.core.reproducible import DEFINITION
from tilewise.errors import DeviceError, FileError
from tilewise.system.resources import shipped

KNOWN = "functions/known_bits.json"  # 200 products and their fingerprints
EXPONENTS = 8  # drawn floats are below 1 by up to so many powers of two
SIGNIFICANDS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def fingerprint(P: Any, /) -> str:
    """The version of the definition of `reproducible="everywhere"`, and a digest of an array's dtype, shape and bits.

    >>> tw.fingerprint(tw.matmul(np.ones((2, 3)), np.ones((3, 2)), reproducible="everywhere"))
    'bits1-95b07e51368984afc3933e12d69665b0'
    """
    operand = find_library(P).operand(P, "P")
    if operand.host is None:
        raise DeviceError(f"P is on {operand.device}: copy it to the host, its fingerprint is that of its bytes")
    host = operand.array if isinstance(operand.array, np.ndarray) else operand.host
    contiguous = np.ascontiguousarray(host).reshape(host.shape)
    if sys.byteorder == "big" and contiguous.dtype.isnative:
        contiguous = contiguous.byteswap()
    elif not contiguous.dtype.isnative:
        contiguous = contiguous.astype(contiguous.dtype.newbyteorder("<"))
    head = f"{operand.dtype.name} {'x'.join(map(str, host.shape))}\n".encode()
    return f"bits{DEFINITION}-{hashlib.sha256(head + contiguous.tobytes()).hexdigest()[:32]}"


def drawn(count: int, dtype: str, seed: int) -> Array:
    """`count` numbers: splitmix64 of seed · 2³² + i. An integer is its lowest bits; a float has its highest ones as
    significand, the lowest one as sign, and the three above that as exponent."""
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    number = dtype_named(dtype)
    if number.is_integer:
        return z.astype(f"u{number.itemsize}").view(number.numpy)
    width = SIGNIFICANDS[dtype]
    significand = (z >> np.uint64(64 - width)).astype(np.float64)
    exponent = -((z >> np.uint64(1)) % np.uint64(EXPONENTS)).astype(np.int64) - width
    sign = 1 - 2 * (z & np.uint64(1)).astype(np.float64)
    made: Array = (sign * np.ldexp(significand, exponent)).astype(number.numpy)
    return made


@dataclass(frozen=True)
class KnownProduct:
    """A product of drawn operands: M of `seed`, N of the next one."""

    shape: str
    dtype: str
    semiring: str
    seed: int
    fingerprint: str = ""

    def operands(self) -> tuple[Array, Array]:
        m, k, n = parse_shape(self.shape)
        real = {"complex64": "float32", "complex128": "float64"}.get(self.dtype, self.dtype)
        parts = 1 if real == self.dtype else 2
        M, N = drawn(parts * m * k, real, self.seed), drawn(parts * k * n, real, self.seed + 1)
        if parts == 2:
            M, N = (x.view(self.dtype) for x in (M, N))
        return M.reshape(m, k), N.reshape(k, n)

    def made(self, **keywords: Any) -> str:
        """The fingerprint of the product as it is here."""
        how: dict[str, Any] = {"semiring": self.semiring, "reproducible": "everywhere", **keywords}
        return fingerprint(matmul(*self.operands(), **how))


def known_products(text: str | None = None) -> Iterator[KnownProduct]:
    """The products of a document, or of the one in the package."""
    try:
        document = json.loads(shipped(KNOWN).read_text(encoding="utf-8") if text is None else text)
        if document["definition"] != DEFINITION:
            raise FileError(f"the fingerprints are of definition {document['definition']}, and this is {DEFINITION}")
        yield from (KnownProduct(*row) for row in document["products"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"not a document of known products: {error}") from None
