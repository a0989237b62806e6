"""Products whose call costs more than their arithmetic."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.tiny import model, text

TINY = Family(
    "tiny",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.tiny_module,
    lambda a: ("run", "enter"),
    keeps_gil=True,
)
