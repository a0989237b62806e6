"""Products that lie in the caches whole."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.little import model, text

LITTLE = family("little", model, text.little_module, KC=model.KC)
