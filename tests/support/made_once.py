"""An expensive value that several workers of a run need: the first computes it, the others wait for it."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONG = 240  # seconds, after which a worker makes it for itself


def made_once(path: Path, make: Callable[[], Any]) -> Any:
    """What `make` gives, pickled at `path`, which all workers know."""
    begun = path.with_suffix(".begun")
    try:
        begun.mkdir()
    except FileExistsError:
        end = time.monotonic() + LONG
        while begun.exists() and not path.exists() and time.monotonic() < end:
            time.sleep(0.05)
        if path.exists():
            return pickle.loads(path.read_bytes())
    try:
        value = make()
    except BaseException:
        begun.rmdir()
        raise
    whole = path.with_suffix(f".{os.getpid()}")
    whole.write_bytes(pickle.dumps(value))
    whole.rename(path)
    return value
