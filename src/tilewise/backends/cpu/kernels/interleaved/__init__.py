"""Several k per 32-bit word (VNNI layout): integers of one and two bytes, and with AMX bfloat16."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.interleaved import model, text

INTERLEAVED = family(
    "interleaved", model, text.interleaved_module, KC=model.KC, k_pack=model.k_of_word, takes_algebra=model.packs_words
)
