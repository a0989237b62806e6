"""Products whose call costs more than their arithmetic."""

from tilewise.backends.cpu.family import family
from tilewise.backends.cpu.kernels.tiny import model, text

TINY = family(
    "tiny", model, text.tiny_module, keeps_gil=True, k_order=True, takes_algebra=lambda problem, tile: problem.in_place
)
