"""Rows of P as sums of rows of N, each times an element of M."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.axpy import model, text

AXPY = family("axpy", model, text.axpy_module, pairs=True)
