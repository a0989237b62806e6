"""Dot products along k: of one column or a few, and of two vectors."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.dots import model, text

DOTS = family("dots", model, text.dots_module)
