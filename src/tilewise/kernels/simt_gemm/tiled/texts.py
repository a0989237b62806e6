"""Every text of the plain kernels for a dtype: by layouts, alignment and split-K."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine, shared_limit
from tilewise.kernels.shared.stacked import stacked, with_member_loop
from tilewise.kernels.simt_gemm.tiled.configs import Config, config_of
from tilewise.kernels.simt_gemm.tiled.text import Form, pack_text, render_join, render_plain
from tilewise.kernels.simt_gemm.tiled.tiles import GUARD_TILE, PlainTile, tiles_of
from tilewise.kernels.transforms.sums import combine_text

POINTERS = ("M", "N", "P")
ARGUMENTS = (*POINTERS, "m", "k", "n", "ldm", "ldn", "ldp", "k_each", "verdict", "wanted")  # without TAIL and ARG


def common_vectors(m_along_k: bool, n_along_k: bool, vector_m: int, vector_n: int) -> tuple[int, int]:
    """Words of a copy of M and of N; if both are contiguous across k, the lesser for both."""
    both = min(vector_m, vector_n)
    return (vector_m, vector_n) if m_along_k or n_along_k else (both, both)


def layouts_of(config: Config) -> list[tuple[bool, bool, int, int]]:
    """(M contiguous along k, N contiguous along k, words of a copy of each) of all products."""
    full = 16 // config.word_bytes
    vectors = (full, 1) if full > 1 else (full,)
    if config.converts:
        return [(False, False, full, full)]  # packed first
    return [
        (True, True, 1, 1),
        *((True, False, 1, vector) for vector in vectors),
        *((False, True, vector, 1) for vector in vectors),
        *((False, False, vector, vector) for vector in vectors),
    ]


def with_stack_loop(text: str) -> str:
    """The text of blocks that loop over a stack's members."""
    return with_member_loop.key(text, ARGUMENTS, POINTERS)


def stack_fallbacks(algebra: Algebra, machine: Machine) -> Iterator[str]:
    """The texts of the fallbacks of stacks."""
    config = config_of(algebra, machine)
    for lie in layouts_of(config):
        if lie[2:] == (1, 1):
            yield with_stack_loop(render_plain.key(algebra, GUARD_TILE, Form(config, *lie, False, False)))


def texts(algebra: Algebra, machine: Machine) -> Iterator[str]:
    """With accumulate, sums go to planes first, and `combine` adds them onto P."""
    config = config_of(algebra, machine)
    yield from (combine_text(algebra, share) for share in (1, 8))
    for side in "MN":
        for along_k in (False, True):
            yield pack_text(algebra, config, side, along_k)
    for tile in tiles_of(config):
        if tile.shared_bytes(config.word_bytes) <= shared_limit(machine.arch):
            yield from _of_tile(algebra, config, tile)


def _of_tile(algebra: Algebra, config: Config, tile: PlainTile) -> Iterator[str]:
    rounded = algebra.partial != algebra.result
    for lie in layouts_of(config):
        for aligned in (False, True):
            yield stacked.key(render_plain.key(algebra, tile, Form(config, *lie, aligned, False)), POINTERS)
            if tile.resident == 1 and not rounded:  # with a split tail
                yield stacked.key(
                    render_plain.key(algebra, tile, Form(config, *lie, aligned, False, tail=True)), POINTERS
                )
        if rounded:
            yield stacked.key(render_plain.key(algebra, tile, Form(config, *lie, True, False, split=True)), POINTERS)
    if tile.resident == 1 and not rounded:
        yield render_join.key(algebra, config, tile)
