"""Rows of P as sums of rows of N, each times an element of M."""

from tilewise.backends.cpu.family import Family
from tilewise.backends.cpu.kernels.axpy import model, text

AXPY = Family(
    "axpy",
    model.IDEA,
    model.takes,
    model.suits,
    model.KC,
    model.tasks,
    text.axpy_module,
    lambda a: ("run",),
)
