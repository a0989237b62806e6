"""How many tiles a symmetric P has on and above its diagonal, as `triangle.cuh` numbers them."""

from __future__ import annotations


def upper_tiles(m: int, rows: int, cols: int) -> int:
    """Of `rows` × `cols` each, one a multiple of the other. Squares on the diagonal are computed whole."""
    side = max(rows, cols)
    across = -(-m // side)
    return across * (across + 1) // 2 * (side // rows) * (side // cols)


def tiles_of(m: int, n: int, rows: int, cols: int, symmetric: int) -> int:
    """Tiles of P that are computed."""
    return upper_tiles(m, rows, cols) if symmetric else -(-m // rows) * -(-n // cols)


def symmetric_note(m: int, rows: int, cols: int) -> str:
    """The note of a plan: the share of P's tiles."""
    share = upper_tiles(m, rows, cols) / (-(-m // rows) * -(-m // cols))
    return f"symmetric: {min(1.0, share):.2f} of the tiles"
