"""Programs as machine code and as WebAssembly: the same output, status and findings.

Drawn from the programs of the tests, these with a few tokens changed, generated host programs and generated kernels
(with no time for the interpreter, so that they run compiled). Differences are printed with the program's file.

    python tests/support/webassembly_agreement.py COUNT SECONDS [SEED]     counts as a last line of JSON
"""
# ruff: noqa: E402 — imports from beside this file

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "emulator" / "host")]

import generated_kernels
import generated_programs
from test_fuzz import spoilt

from small_programs import small_programs
from tilewise.emulator.host import process
from tilewise.emulator.host.options import NATIVE, WASM, Options
from tilewise.emulator.host.process import run_program
from warm_starts import Nursery

LIMIT = 20.0  # seconds of a program
ADDRESS = re.compile(r"0x[0-9a-f]+")  # machine code has others in each run
# what a limit stopped depends on the speed of the code
BY_TIME = ("limit",)


def drawn(number: int, draw: random.Random) -> tuple[str, str, float]:
    """The kind of a program, its text, the seconds of the interpreter."""
    kind = ("small", "spoilt", "spoilt", "host", "kernels")[number % 5]
    if kind == "host":
        return kind, f"{generated_programs.INCLUDES}\n{generated_programs.Draw(draw.getrandbits(31)).body('main')}", 4.0
    if kind == "kernels":
        return kind, generated_kernels.program(draw.getrandbits(31), 3), 0.0
    text = draw.choice(small_programs())
    return kind, text if kind == "small" else spoilt(text, draw), draw.choice([4.0, 0.0])


def outcome(path: Path, target: str, interpret: float) -> tuple[object, ...]:
    options = Options(target=target, interpret=interpret, seconds=LIMIT, wall=4 * LIMIT)
    report = run_program(path, options=options, capture=True)
    findings = sorted(
        ADDRESS.sub("0x…", json.dumps({**f.to_json(), "touches": []}, sort_keys=True, default=asdict))
        for f in report.findings
    )
    return report.ended, report.status, report.output, report.errors, report.message, findings


def main(count: int, seconds: float, seed: int) -> int:
    draw, began = random.Random(seed), time.monotonic()
    nursery = Nursery()
    process.subprocess = SimpleNamespace(  # type: ignore[attr-defined]
        **{**vars(process.subprocess), "Popen": nursery.start}
    )
    counts: Counter[str] = Counter()
    kept = Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="webassembly-"))
    for number in range(count):
        if time.monotonic() - began > seconds:
            break
        kind, text, interpret = drawn(number, draw)
        path = kept / f"program{number}.cu"
        path.write_text(text)
        native = outcome(path, NATIVE, interpret)
        if native[0] == "refused":  # not lowered: there is nothing to compare
            counts[f"{kind}: refused"] += 1
            path.unlink()
            continue
        wasm = outcome(path, WASM, interpret)
        if native == wasm or (native[0] in BY_TIME and wasm[0] in BY_TIME):
            counts[f"{kind}: {native[0]}{', with findings' if native[-1] else ''}"] += 1
            path.unlink()
            continue
        counts[f"{kind}: different"] += 1
        print(f"{path} (interpret {interpret}, seed {seed}, number {number})")
        for one, other in zip(native, wasm, strict=True):
            if one != other:
                print(f"  native: {str(one)[:600]}\n  wasm:   {str(other)[:600]}", flush=True)
    print(json.dumps(counts))
    return sum(n for what, n in counts.items() if what.endswith("different"))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1) > 0)
