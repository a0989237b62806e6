"""What compute-sanitizer is given on a card: no family is left out."""

from __future__ import annotations

from dataclasses import replace

from sanitized_products import cases
from seeds import next_seed
from tilewise.core.machine import KNOWN_CARDS
from tilewise.kernels.registry import FAMILIES

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a")


def test_every_family_is_sanitized():
    seed = next_seed() % 2**32
    met = {family.name for _, family, _ in cases(seed, H200)}
    stacks_and_groups = {"grouped"}  # `sanitize_many` has them
    assert met | stacks_and_groups == {family.name for family in FAMILIES}, f"seed {seed}"
