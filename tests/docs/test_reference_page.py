"""The reference names every public name, and every function and class has an example there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tilewise as tw

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "making"))
from reference_page import SECTIONS, reference


@pytest.fixture(scope="module")
def page() -> str:
    return reference()


@pytest.mark.parametrize("name", tw.__all__)
def test_every_public_name_is_there(page: str, name: str) -> None:
    assert re.search(rf"\btw\.{name}\b", page), f"tw.{name} is on no section of docs/making/reference_page.py"


@pytest.mark.parametrize("name", [name for names in SECTIONS.values() for name in names])
def test_every_name_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(tw, name).__doc__ or "")
