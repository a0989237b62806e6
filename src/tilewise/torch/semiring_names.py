"""Semirings by name: an operator's schema takes strings, so a user's own semiring is registered when first used."""

from __future__ import annotations

from typing import Any

from tilewise.algebra.builtin import SEMIRINGS, find_semiring, is_structured_name
from tilewise.algebra.semiring import BY_FINGERPRINT, Semiring
from tilewise.algebra.structured import Structured
from tilewise.arrays.torch_graph import constant_in_traces
from tilewise.dispatch.structured.product import structured_ring

REGISTERED: dict[str, Any] = {}  # user-defined semirings by fingerprint


def name_of(semiring: str | Semiring | Structured) -> str:
    """The operator's name for a semiring."""
    if isinstance(semiring, str):
        return semiring
    if isinstance(semiring, Structured):
        return _register_structured(semiring, semiring.fingerprint)
    return _register(semiring.fingerprint if isinstance(semiring, Semiring) else find_semiring(semiring).fingerprint)


@constant_in_traces
def _register_structured(ring: Structured, fingerprint: str) -> str:
    """Register a structured semiring; the compiler guards on `fingerprint`."""
    REGISTERED.setdefault(fingerprint, ring)
    return fingerprint


@constant_in_traces
def _register(fingerprint: str) -> str:
    """Register a user's semiring. The argument is a string: compilers do not guard the value of an object."""
    ring = BY_FINGERPRINT[fingerprint]
    if SEMIRINGS.get(ring.name) == ring:
        return ring.name
    REGISTERED.setdefault(fingerprint, ring)
    return fingerprint


@constant_in_traces
def is_selective(name: str) -> bool:
    """Whether its add picks one operand (min, max)."""
    return bool(semiring_of(name).selective)


def semiring_of(name: str) -> Any:
    """The semiring of such a name, or with fields where that is one's."""
    if name in REGISTERED:
        return REGISTERED[name]
    return structured_ring(name) if is_structured_name(name) else find_semiring(name)
