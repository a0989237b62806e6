"""Functions of the library that compute a value from their arguments and have no other effect."""

from __future__ import annotations

PURE = frozenset({
    "sqrt", "sqrtf", "rsqrtf", "fabs", "fabsf", "abs", "exp", "expf", "__expf", "log", "logf", "__logf", "sin", "sinf",
    "cos", "cosf", "tanh", "tanhf", "pow", "powf", "fmod", "fmax", "fmaxf", "fmin", "fminf", "min", "max", "floor",
    "floorf", "ceil", "ceilf", "round",
})  # fmt: skip
