"""A few columns of short integers, by dot products."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.interleaved.model import deep
from tilewise.backends.cpu.kernels.short_dots import model, text

SHORT_DOTS = Family(
    "short_dots",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.short_dots_module,
    lambda a: ("run",),
    deep=deep,
)
