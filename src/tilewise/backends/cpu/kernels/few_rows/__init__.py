"""A handful of rows."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.few_rows import model, text

FEW_ROWS = Family(
    "few_rows", model.IDEA, model.takes, model.suits, model.KC, model.tasks, text.few_rows_module, text.entries
)
