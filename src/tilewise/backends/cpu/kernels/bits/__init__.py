"""Truth values, eight columns to a byte."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.bits import model, text

BITS = Family(
    "bits",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.bits_module,
    lambda a: ("run", "reduce"),
    columns=8,
    MC=256,
)
