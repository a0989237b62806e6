"""The notes' algorithm in NumPy, tile by tile and phase by phase: the definition all other engines are held against."""

from tilewise.backends.reference.phases import run

__all__ = ["run"]
