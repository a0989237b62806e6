"""Dot products along k: of one column or a few, and of two vectors."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.dots import model, text

DOTS = Family(
    "dots",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.dots_module,
    lambda a: ("run", "enter", "reduce"),
)
