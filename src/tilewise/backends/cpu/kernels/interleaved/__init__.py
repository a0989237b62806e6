"""Integers of one and two bytes, several k per lane (VNNI layout)."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.interleaved import model, text

INTERLEAVED = family(
    "interleaved", model, text.interleaved_module, KC=model.KC, k_pack=model.k_pack, takes_algebra=model.packs_k
)
