"""The one table of which dtype works in which semiring, and what comes out."""

from __future__ import annotations

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DTYPES
from tilewise.errors import AlgebraError, DtypeError


def dtype_table() -> dict[str, dict[str, str]]:
    """semiring → dtype → the product's dtype, or `refused: …` with the reason. NumPy's conversions come first."""
    table: dict[str, dict[str, str]] = {}
    for name, semiring in SEMIRINGS.items():
        row = table[name] = {}
        for dtype in DTYPES.values():
            try:
                row[dtype.name] = semiring.over(dtype).result.name
            except (DtypeError, AlgebraError) as error:
                row[dtype.name] = f"refused: {error}"
    return table
