"""How many tiles P has: on and above the diagonal of a symmetric one, as `triangle.cuh` numbers them; by alignment
classes of its rows, as `row_classes.cuh` does."""

from __future__ import annotations


def square_of(rows: int, cols: int) -> int:
    """The side of the squares: the least common multiple of a tile's sides, 1 to 4 times 2ⁿ each."""
    side = max(rows, cols)
    return side if side % min(rows, cols) == 0 else 2 * side if 2 * side % min(rows, cols) == 0 else 3 * side


def upper_tiles(m: int, rows: int, cols: int) -> int:
    """Of `rows` × `cols` each. Squares on the diagonal are computed whole."""
    side = square_of(rows, cols)
    across = -(-m // side)
    return across * (across + 1) // 2 * (side // rows) * (side // cols)


def tiles_of(m: int, n: int, rows: int, cols: int, symmetric: int) -> int:
    """Tiles of P that are computed."""
    return upper_tiles(m, rows, cols) if symmetric else -(-m // rows) * -(-n // cols)


def tiles_in_classes(m: int, n: int, rows: int, cols: int, classes: int) -> int:
    """Tiles of P, each with rows of one alignment class: every so many of them are one."""
    few, longer = m // classes, m % classes
    return (longer * -(-(few + 1) // rows) + (classes - longer) * -(-few // rows)) * -(-n // cols)


def macros(rows: int, cols: int, symmetric: bool) -> dict[str, int]:
    """Whether a text has `triangle.cuh`, and what that wants of a tile."""
    sides = {"UPPER_ROWS": rows, "UPPER_COLS": cols, "SQUARE": square_of(rows, cols)} if symmetric else {}
    return {"SYMMETRIC": int(symmetric), **sides}


def symmetric_note(m: int, rows: int, cols: int) -> str:
    """The note of a plan: the share of P's tiles."""
    share = upper_tiles(m, rows, cols) / (-(-m // rows) * -(-m // cols))
    return f"symmetric: {min(1.0, share):.2f} of the tiles"
