"""The built-in semirings, under GraphBLAS's names and their aliases."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.expression import (
    largest,
    logaddexp,
    logical_and,
    logical_or,
    maximum,
    minimum,
    smallest,
)
from tilewise.algebra.semiring import Semiring, builtin_semiring
from tilewise.algebra.structured import Structured
from tilewise.errors import AlgebraError, DtypeError, UsageError

SEMIRINGS: dict[str, Semiring] = {
    s.name: s
    for s in (
        builtin_semiring("plus_times", lambda x, y: x + y, lambda x, y: x * y, 0),
        builtin_semiring("min_plus", minimum, lambda x, y: x + y, largest),
        builtin_semiring("max_plus", maximum, lambda x, y: x + y, smallest),
        builtin_semiring("min_times", minimum, lambda x, y: x * y, largest),
        builtin_semiring("max_times", maximum, lambda x, y: x * y, smallest),
        builtin_semiring("min_max", minimum, maximum, largest),
        builtin_semiring("max_min", maximum, minimum, smallest),
        builtin_semiring("lor_land", logical_or, logical_and, False, boolean=True),
        builtin_semiring("logaddexp_plus", logaddexp, lambda x, y: x + y, float("-inf")),
    )
}

semirings = SEMIRINGS  # the public name: tw.semirings["min_plus"]
ALIASES = {"tropical": "min_plus", "viterbi": "max_plus", "boolean": "lor_land", "log": "logaddexp_plus"}


STRUCTURED = ("min_count", "max_arg", "dual")  # and 1_best to 8_best: `tilewise.algebra.structured_builtin`


def is_structured_name(name: str) -> bool:
    return name in STRUCTURED or (name.endswith("_best") and name[:-5].isdecimal())


def is_plus_times(semiring: Semiring) -> bool:
    """Whether it is + and ×, under any name."""
    plain = SEMIRINGS["plus_times"]
    return semiring is plain or (semiring.add, semiring.mul, semiring.zero) == (plain.add, plain.mul, plain.zero)


def find_semiring(semiring: str | Semiring) -> Semiring:
    """A semiring by name or alias; a Semiring is returned unchanged."""
    if isinstance(semiring, Semiring):
        return semiring
    if isinstance(semiring, str):
        found = SEMIRINGS.get(ALIASES.get(semiring, semiring))
        if found is not None:
            return found
    if isinstance(semiring, Structured) or (isinstance(semiring, str) and is_structured_name(semiring)):
        raise UsageError(
            f"semiring={str(semiring)!r} is over values with fields: only tw.matmul and tw.closure take it"
        )
    raise UsageError(
        f"semiring={semiring!r} is not known; known are {', '.join(SEMIRINGS)} "
        f"(also {', '.join(ALIASES)}), or a tw.Semiring of your own"
    )


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
