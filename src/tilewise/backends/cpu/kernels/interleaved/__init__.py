"""Integers of one and two bytes, several k to a lane."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.interleaved import model, text
from tilewise.backends.cpu.kernels.packed.text import entries

INTERLEAVED = Family(
    "interleaved",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.interleaved_module,
    entries,
    deep=model.deep,
)
