"""Large products whose M is read where it lies."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.packed_n import model, text

PACKED_N = Family(
    "packed_n",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.packed_n_module,
    text.entries,
    group=12,
)
