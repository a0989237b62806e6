"""Large products, any strides and dtypes."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.packed import model, text

PACKED = Family("packed", model.IDEA, model.takes, model.suits, model.KC, model.tasks, text.packed_module, text.entries)
