"""M times one column, by dot products."""

from tilewise.engines.cpu.family import Family
from tilewise.engines.cpu.kernels.dots import model, text

DOTS = Family("dots", model.IDEA, model.takes, model.suits, model.KC, model.tasks, text.dots_module, lambda a: ("run",))
