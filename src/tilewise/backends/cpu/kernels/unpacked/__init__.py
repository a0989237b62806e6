"""Products that fit the caches."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.unpacked import model, text

UNPACKED = family("unpacked", model, text.unpacked_module, KC=model.KC, k_order=True, pairs=True)
