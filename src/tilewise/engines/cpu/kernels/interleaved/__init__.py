"""Integers of one and two bytes, several k to a lane."""

from tilewise.engines.cpu.family import Family
from tilewise.engines.cpu.kernels.interleaved import model, text
from tilewise.engines.cpu.kernels.packed.text import entries

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
