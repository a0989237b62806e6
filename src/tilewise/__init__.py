"""Tiled matrix multiplication without cliffs: every shape, every algebra, every size, and nothing hidden."""

__version__ = "0.1.0.dev0"
