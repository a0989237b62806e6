"""Semirings by name: an operator's schema takes strings, so a user's own semiring is registered when first used."""

from __future__ import annotations

from typing import Any

from tilewise.algebra.builtin import SEMIRINGS, find_semiring, is_structured_name
from tilewise.algebra.semiring import BY_FINGERPRINT, Semiring
from tilewise.algebra.structured import Structured
from tilewise.arrays.torch_graph import constant_in_traces
from tilewise.dispatch.structured.product import structured_ring

OWN: dict[str, Any] = {}  # users' semirings, by the name that operators take


def name_of(semiring: str | Semiring | Structured) -> str:
    """The operator's name for a semiring."""
    if isinstance(semiring, str):
        return semiring
    if isinstance(semiring, Structured):
        return _kept(semiring, semiring.fingerprint)
    return _registered(semiring.fingerprint if isinstance(semiring, Semiring) else find_semiring(semiring).fingerprint)


@constant_in_traces
def _kept(ring: Structured, own: str) -> str:
    """`own` is what guards it."""
    OWN.setdefault(own, ring)
    return own


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
    return bool(semiring_of(name).selective)


def semiring_of(name: str) -> Any:
    """The semiring of such a name, or with fields where that is one's."""
    if name in OWN:
        return OWN[name]
    return structured_ring(name) if is_structured_name(name) else find_semiring(name)
