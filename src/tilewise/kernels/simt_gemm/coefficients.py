"""The measured numbers of the cost models: `coefficients.json`, each with its unit and meaning."""

from __future__ import annotations

import json
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from tilewise.system.resources import shipped


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The whole file."""
    return dict(json.loads(shipped("kernels/simt_gemm/coefficients.json").read_text(encoding="utf-8")))


@lru_cache(maxsize=16)
def coefficients(kernel: str) -> Any:
    """The numbers of one kernel, as attributes."""
    return SimpleNamespace(**document()[kernel])
