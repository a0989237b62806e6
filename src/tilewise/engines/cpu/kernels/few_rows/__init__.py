"""A handful of rows."""

from tilewise.engines.cpu.family import Family
from tilewise.engines.cpu.kernels.few_rows import model, text

FEW_ROWS = Family(
    "few_rows", model.IDEA, model.takes, model.suits, model.KC, model.tasks, text.few_rows_module, text.entries
)
