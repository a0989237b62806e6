"""`simt_support`, `fuzz` and `warm_starts` for the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / part) for part in ("", "frontend", "host")]
