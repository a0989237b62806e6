"""Modules of others, only where they are imported already: whoever has an array of theirs has imported them."""

from __future__ import annotations

import sys
from typing import Any


def imported(name: str) -> Any:
    """The module; None where it is not imported, or where another thread is importing it and half of it is there."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module
