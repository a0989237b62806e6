"""Large products whose M is read in place."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.packed_n import model, text

PACKED_N = family("packed_n", model, text.packed_n_module, KC=model.KC, k_order=True, group=12, pairs=True)
