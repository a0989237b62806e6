"""Every text of the plain kernels that a product of a dtype may name: how operands lie, and what becomes of sums."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine, shared_limit
from tilewise.kernels.shared.stacked import in_turns, stacked
from tilewise.kernels.simt_gemm.tiled.configs import Config, config_of
from tilewise.kernels.simt_gemm.tiled.text import (
    Form,
    pack_text,
    render_join,
    render_plain,
)
from tilewise.kernels.simt_gemm.tiled.tiles import GUARD_TILE, PlainTile, tiles_of
from tilewise.kernels.transforms.sums import render_combine

POINTERS = ("M", "N", "P")
ARGUMENTS = (*POINTERS, "m", "k", "n", "ldm", "ldn", "ldp", "k_each", "verdict", "wanted")  # of the plainest kernel


def alike(m_along_k: bool, n_along_k: bool, vector_m: int, vector_n: int) -> tuple[int, int]:
    """Words of a copy of M and of N: of two operands with k across their lines the lesser for both."""
    both = min(vector_m, vector_n)
    return (vector_m, vector_n) if m_along_k or n_along_k else (both, both)


def lies(config: Config) -> list[tuple[bool, bool, int, int]]:
    """(k along M's lines, along N's, words of a copy of each) that a product may have."""
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


def by_turns(text: str) -> str:
    """The plainest kernel's text for blocks that take a stack's members in turn."""
    return in_turns.named(text, ARGUMENTS, POINTERS)


def behind_stacks(algebra: Algebra, machine: Machine) -> Iterator[str]:
    """The fallback that is queued behind another kernel's stacks."""
    config = config_of(algebra, machine)
    for lie in lies(config):
        if lie[2:] == (1, 1):
            yield by_turns(render_plain.named(algebra, GUARD_TILE, Form(config, *lie, False, False)))


def texts(algebra: Algebra, machine: Machine, onto: tuple[bool, ...]) -> Iterator[str]:
    """Where P is added onto, sums go to planes first, so no kernel but `combine` knows of it."""
    config = config_of(algebra, machine)
    for share in (1, 8):
        for accumulate in onto:
            yield render_combine.named(algebra, accumulate, share)
    for side in "MN":
        for along_k in (False, True):
            yield pack_text(algebra, config, side, along_k)
    for tile in tiles_of(config):
        if tile.shared_bytes(config.word_bytes) <= shared_limit(machine.arch):
            yield from _of_tile(algebra, config, tile)


def _of_tile(algebra: Algebra, config: Config, tile: PlainTile) -> Iterator[str]:
    rounded = algebra.partial != algebra.result
    for lie in lies(config):
        for aligned in (False, True):
            yield stacked.named(render_plain.named(algebra, tile, Form(config, *lie, aligned, False)), POINTERS)
            if tile.resident == 1 and not rounded:  # the last tiles may come in pieces of k
                yield stacked.named(
                    render_plain.named(algebra, tile, Form(config, *lie, aligned, False, tail=True)), POINTERS
                )
        if rounded:
            yield stacked.named(
                render_plain.named(algebra, tile, Form(config, *lie, True, False, split=True)), POINTERS
            )
    if tile.resident == 1 and not rounded:
        yield render_join.named(algebra, config, tile)
