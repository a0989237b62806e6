"""Large products whose M is read where it lies."""

from tilewise.engines.cpu.family import Family
from tilewise.engines.cpu.kernels.packed_n import model, text

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
