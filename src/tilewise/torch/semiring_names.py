"""Semirings by name: an operator's schema takes strings, so a user's own semiring is registered when first used."""

from __future__ import annotations

from tilewise.algebra.builtin import SEMIRINGS, find_semiring
from tilewise.algebra.semiring import BY_FINGERPRINT, Semiring
from tilewise.torch.constants import constant_in_traces

OWN: dict[str, Semiring] = {}  # users' semirings, by the name that operators take


def name_of(semiring: str | Semiring) -> str:
    """The operator's name for a semiring."""
    if isinstance(semiring, str):
        return semiring
    return _registered(semiring.fingerprint if isinstance(semiring, Semiring) else find_semiring(semiring).fingerprint)


@constant_in_traces
def _registered(own: str) -> str:
    """A string, not the semiring: older compilers take no object as a constant, and none guards its value."""
    ring = BY_FINGERPRINT[own]
    if SEMIRINGS.get(ring.name) == ring:
        return ring.name
    OWN.setdefault(own, ring)
    return own


@constant_in_traces
def is_selective(name: str) -> bool:
    """Whether its add picks one operand (min, max)."""
    return semiring_of(name).selective


def semiring_of(name: str) -> Semiring:
    return OWN[name] if name in OWN else find_semiring(name)
