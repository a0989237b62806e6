"""A handful of columns."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.few_columns import model, text

FEW_COLUMNS = family("few_columns", model, text.few_columns_module, KC=model.KC)
