"""Semirings as words: an operator's schema takes strings, so one's own are kept under a word when first used."""

from __future__ import annotations

from tilewise.algebra.builtin import SEMIRINGS, find_semiring
from tilewise.algebra.semiring import BY_WORD, Semiring
from tilewise.interop.torch.constants import constant_in_traces

OWN: dict[str, Semiring] = {}  # people's own semirings, by the word the operator takes


def word_of(semiring: str | Semiring) -> str:
    """What the operator calls this semiring."""
    if isinstance(semiring, str):
        return semiring
    return _word_kept(semiring.word if isinstance(semiring, Semiring) else find_semiring(semiring).word)


@constant_in_traces
def _word_kept(own: str) -> str:
    """By its word, not by itself: older compilers take no object as a constant, and none would notice another one."""
    ring = BY_WORD[own]
    if SEMIRINGS.get(ring.name) == ring:
        return ring.name
    OWN.setdefault(own, ring)
    return own


@constant_in_traces
def picks(word: str) -> bool:
    return ring_of(word).selective


def ring_of(word: str) -> Semiring:
    return OWN[word] if word in OWN else find_semiring(word)
