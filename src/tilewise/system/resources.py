"""Data files of the package: kernels, headers, messages, pages, tables.

They are always files: llvmlite's library could not be loaded from a zip either, and importlib.resources, which could,
takes 10 to 20 ms of every start of the command line.
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def shipped(name: str) -> Path:
    """A file or folder by its path inside the package: `i18n/languages/en.json`."""
    return PACKAGE / name


def environment() -> dict[str, str]:
    """The environment of a process that must import this same package."""
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), *([before] if before else [])])}
