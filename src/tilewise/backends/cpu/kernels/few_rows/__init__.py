"""A handful of rows."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.few_rows import model, text

FEW_ROWS = family("few_rows", model, text.few_rows_module, KC=model.KC)
