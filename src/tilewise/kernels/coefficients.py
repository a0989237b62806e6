"""The measured numbers of the cost models: `coefficients.json`, each with its unit and meaning."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from tilewise.system.resources import shipped


class Numbers:
    """Those of a kernel, as attributes."""

    def __init__(self, **numbers: Any) -> None:
        self.__dict__.update(numbers)

    def __getattr__(self, name: str) -> float:
        raise AttributeError(name)


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The whole file."""
    return dict(json.loads(shipped("kernels/coefficients.json").read_text(encoding="utf-8")))


@lru_cache(maxsize=64)
def coefficients(kernel: str) -> Any:
    """The numbers of one kernel; `as` names another kernel, whose numbers are the defaults."""
    own = {name: _by_number(value) for name, value in document()[kernel].items()}
    like = own.pop("as", None)
    return Numbers(**{**(vars(coefficients(like)) if like else {}), **own})


def _by_number(value: Any) -> Any:
    """A mapping with integer keys as integers."""
    if isinstance(value, dict):
        return {int(name) if name.isdigit() else name: one for name, one in value.items()}
    return value
