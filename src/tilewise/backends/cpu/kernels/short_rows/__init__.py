"""A few rows of one- and two-byte integers."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.interleaved.model import k_pack, packs_k
from tilewise.backends.cpu.kernels.short_rows import model, text

SHORT_ROWS = family("short_rows", model, text.short_rows_module, KC=model.KC, k_pack=k_pack, takes_algebra=packs_k)
