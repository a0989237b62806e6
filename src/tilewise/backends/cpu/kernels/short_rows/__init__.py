"""A few rows of short integers."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.interleaved.model import deep
from tilewise.backends.cpu.kernels.short_rows import model, text

SHORT_ROWS = Family(
    "short_rows",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.short_rows_module,
    lambda a: ("run",),
    deep=deep,
)
