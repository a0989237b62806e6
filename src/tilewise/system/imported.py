"""Optional libraries, only if the program has imported them, as it has if it passes one of their arrays."""

from __future__ import annotations

import sys
from typing import Any


def imported(name: str) -> Any:
    """The module; None where it is not imported, or while another thread is importing it."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module
