"""Programs are started warm here: half of what their tests took was starting Python."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from warm_starts import Nursery

from tilewise.emulator.host import process


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery | None]:
    if not (hasattr(os, "fork") and hasattr(os, "memfd_create")):
        yield None
        return
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def warm_starts(nursery: Nursery | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if nursery is not None:
        monkeypatch.setattr(process, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": nursery.start}))
