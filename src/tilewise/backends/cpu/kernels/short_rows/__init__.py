"""A few rows of short integers."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.interleaved.model import deep, is_deep
from tilewise.backends.cpu.kernels.short_rows import model, text

SHORT_ROWS = family("short_rows", model, text.short_rows_module, KC=model.KC, deep=deep, numbers=is_deep)
