"""Products that lie in the caches whole."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.little import model, text

LITTLE = Family(
    "little",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.little_module,
    lambda a: ("run", "enter", "reduce"),
)
