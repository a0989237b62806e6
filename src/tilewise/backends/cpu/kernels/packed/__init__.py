"""Large products, any strides and dtypes."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.packed import model, text

PACKED = family("packed", model, text.packed_module, KC=model.KC, k_order=True)
