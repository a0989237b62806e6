"""A few columns of one- and two-byte integers, by dot products."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.interleaved.model import k_pack, packs_k
from tilewise.backends.cpu.kernels.short_dots import model, text

SHORT_DOTS = family("short_dots", model, text.short_dots_module, k_pack=k_pack, takes_algebra=packs_k)
