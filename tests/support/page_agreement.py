"""Pages that compute, against `check`: right kernels with one thing changed, drawn, at drawn shapes, tile widths and
without drawn checks and barriers. The same kind, line, array, count, and block, thread, phase and cell of the first.

    python tests/support/page_agreement.py SECONDS [SEED]        counts, as JSON, at last; the kernels that differ above
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import mutant_kernels
from page_steps import chromium, opened
from page_variants import computed, of_check, of_page, variant
from tilewise.emulator.limits import Limits
from tilewise.errors import TilewiseError
from tilewise.teaching.page import compute
from tilewise.teaching.page.exploring import explore

CASES = 6  # of a kernel


def differences(driver: Any, page: Any, draw: random.Random) -> list[str]:
    out = []
    for _ in range(CASES):
        sides = [draw.choice((1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17)) for _ in range(3)]
        shape = (sides[0],) * 3 if page.compute["square"] else tuple(sides)
        left_out = [name for name in page.drops if draw.random() < 0.25]
        tile = draw.choice(page.compute["tiles"])
        own = {} if tile == page.trace.run.tile else {"tile": tile}
        try:
            expected = variant(page, left_out, shape=shape, grid=None, block=None, adversarial=False, **own).run
        except TilewiseError:  # a launch that fails
            continue
        found = sorted(of_page(f) for f in computed(driver, shape, drops=left_out, **own)["findings"])
        wanted = sorted(of_check(f, expected) for f in expected.faults)
        out.append("" if found == wanted else f"{shape} tile {tile} without {left_out}:\n  {found}\n  {wanted}")
    return out


def main(seconds: float, seed: int) -> None:
    draw = random.Random(seed)
    kernels = mutant_kernels.right_kernels()
    compute.TILES = (2, 4)
    counts: Counter[str] = Counter()
    until = time.time() + seconds
    with tempfile.TemporaryDirectory() as folder, chromium() as driver:
        path = Path(folder) / "page.html"
        while time.time() < until:
            text = mutant_kernels.mutant(draw.choice(kernels), draw)
            try:
                page = explore(text, shape=(3, 3, 3), limits=Limits(seconds=60))
            except TilewiseError:
                counts["refused"] += 1
                continue
            if page.compute is None:
                counts["recorded"] += 1
                continue
            opened(driver, page.save(path).as_uri())
            counts["kernels"] += 1
            found = differences(driver, page, draw)
            counts["cases"] += len(found)
            counts["differ"] += sum(map(bool, found))
            if any(found):
                print(text, *filter(None, found), sep="\n", flush=True)
    print(json.dumps({"seed": seed, **counts}))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
