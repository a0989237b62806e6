"""A handful of columns."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.few_columns import model, text

FEW_COLUMNS = Family(
    "few_columns",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.few_columns_module,
    lambda a: ("run",),
)
