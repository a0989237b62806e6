"""Booleans, eight columns to a byte."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.bits import model, text

BITS = family("bits", model, text.bits_module, columns=8, MC=256, takes_algebra=model.is_or_and)
