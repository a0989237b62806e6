"""Programs as machine code and as WebAssembly: the same output, status and findings, each with its threads and cells.

Drawn from the programs of the tests, these with a few tokens changed, generated host programs and generated kernels
(with no time for the interpreter, so that they run compiled); or mutants of right kernels, a quarter of them compiled;
or the programs of a list of paths. Differences are printed with the program's file.

    python tests/support/webassembly_agreement.py COUNT SECONDS [SEED [mutants | LIST]]     counts, as JSON, at last
"""
# ruff: noqa: E402 — imports from beside this file

from __future__ import annotations

import gc
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "emulator" / "host")]

import generated_kernels
import generated_programs
from test_fuzz import spoilt

import fuzzed_programs
import mutant_kernels
from small_programs import small_programs
from tilewise.emulator.host import running, translation_unit
from tilewise.emulator.host.options import NATIVE, OFF, WASM, Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.program_report import ProgramReport, received
from tilewise.emulator.host.translation_unit import Copies
from tilewise.errors import TilewiseError

LIMIT = 20.0  # seconds of a program
ADDRESS = re.compile(r"0x[0-9a-f]+")  # machine code has others in each run
# what a limit stopped depends on the speed of the code
BY_TIME = ("limit",)
FINDINGS = 5  # of an outcome come behind its ending, status, output, errors and message
COMPILED = 4  # one of so many mutants runs compiled
MAIN = r"""
#include <cstdio>
int main() {
  const int m = %d, k = %d, n = %d; static float M[m * k], N[k * n], P[m * n]; float *a, *b, *c;
  for (int i = 0; i < m * k; i++) M[i] = i %% 7 - 3;
  for (int i = 0; i < k * n; i++) N[i] = i %% 5 - 2;
  cudaMalloc(&a, sizeof M); cudaMalloc(&b, sizeof N); cudaMalloc(&c, sizeof P);
  cudaMemcpy(a, M, sizeof M, cudaMemcpyHostToDevice);
  cudaMemcpy(b, N, sizeof N, cudaMemcpyHostToDevice);
  %s;
  printf("%%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaMemcpy(P, c, sizeof P, cudaMemcpyDeviceToHost);
  for (int i = 0; i < m * n; i++) printf("%%.9g ", P[i]);
  cudaFree(a); cudaFree(b); cudaFree(c);
}
"""
Drawn = tuple[str, str, float]  # the kind of a program, its text, the seconds of the interpreter


def drawn(draw: random.Random) -> Iterator[Drawn]:
    number = -1
    while True:
        number += 1
        kind = ("small", "spoilt", "spoilt", "host", "kernels")[number % 5]
        if kind == "host":
            body = generated_programs.Draw(draw.getrandbits(31)).body("main")
            yield kind, f"{generated_programs.INCLUDES}\n{body}", 4.0
        elif kind == "kernels":
            yield kind, generated_kernels.program(draw.getrandbits(31), 3), 0.0
        else:
            text = draw.choice(small_programs())
            yield kind, text if kind == "small" else spoilt(text, draw), draw.choice([4.0, 0.0])


def mutants(draw: random.Random) -> Iterator[Drawn]:
    kernels, number = mutant_kernels.right_kernels(), 0
    while True:
        number += 1
        text = mutant_kernels.mutant(draw.choice(kernels), draw)
        m, k, n = (draw.choice([1, 3, 4, 5, 8, 9, 13, 17]) for _ in range(3))
        square = "host(" in text
        call = "host(a, b, c, n)" if square else "launch(a, b, c, m, k, n)"
        main = MAIN % ((n, n, n, call) if square else (m, k, n, call))
        yield ("mutant, compiled", text + main, 0.0) if number % COMPILED == 0 else ("mutant", text + main, 4.0)


def outcome(report: ProgramReport) -> tuple[object, ...]:
    findings = sorted(json.dumps(f.to_json(), sort_keys=True, default=asdict) for f in report.findings)
    texts = (report.output or "", report.errors or "", report.message, *findings)
    return report.ended, report.status, *(ADDRESS.sub("0x…", text) for text in texts)


def began_alike(one: str, other: str) -> bool:
    """Whether one output is the beginning of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def options_of(target: str, interpret: float) -> Options:
    return Options(target=target, interpret=interpret, seconds=LIMIT, wall=4 * LIMIT, sandbox=OFF)


def both(path: Path, interpret: float) -> tuple[tuple[object, ...], tuple[object, ...]] | None:
    """As machine code and as WebAssembly, read once; None of a program that is refused."""
    try:
        read = running._read(path, options_of(NATIVE, interpret), [], Copies())
    except (TilewiseError, RecursionError):
        return None
    made = []
    kept, running._read = running._read, lambda *_: read  # type: ignore[assignment]
    for target in (NATIVE, WASM):
        options, shown = options_of(target, interpret), path.with_suffix(".output")
        status, report, _ = fuzzed_programs.forked(path, options, shown)
        done = received(str(path), os.waitstatus_to_exitcode(status), report, False, options)
        done.output = shown.read_text(errors="replace")
        shown.unlink()
        made.append(outcome(done))
    running._read = kept
    return None if made[0][0] == "refused" else (made[0], made[1])


def listed(path: Path, interpret: float) -> tuple[tuple[object, ...], tuple[object, ...]] | None:
    """The same in new processes, with the broker of files."""
    made = []
    for target in (NATIVE, WASM):
        options = options_of(target, interpret)
        options.sandbox = "required"
        made.append(outcome(run_program(path, options=options, capture=True)))
    return None if made[0][0] == "refused" else (made[0], made[1])


def main(count: int, seconds: float, seed: int, which: str) -> int:
    began, draw = time.monotonic(), random.Random(seed)
    counts: Counter[str] = Counter()
    kept = Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="webassembly-"))
    kept.mkdir(parents=True, exist_ok=True)
    from_list = which not in ("", "mutants")
    paths = Path(which).read_text().splitlines() if from_list else []
    if not from_list:
        fuzzed_programs.import_all()
        translation_unit.load_headers = fuzzed_programs.kept_headers
    programs = mutants(draw) if which == "mutants" else drawn(draw)
    gc.freeze()
    gc.disable()
    for number in range(min(count, 2 * len(paths)) if from_list else count):
        if time.monotonic() - began > seconds:
            break
        if number % 100 == 99:
            gc.collect()
            print(json.dumps({"so far": counts}), file=sys.stderr, flush=True)
        if from_list:
            kind, path, interpret = "listed", Path(paths[number // 2]), 4.0 * (number % 2)
            compared = listed(path, interpret)
        else:
            kind, text, interpret = next(programs)
            path = kept / f"program{number}.cu"
            path.write_text(text)
            compared = both(path, interpret)
        if compared is None:  # not lowered: there is nothing to compare
            counts[f"{kind}: refused"] += 1
        elif compared[0] == compared[1]:
            counts[f"{kind}: {compared[0][0]}{', with findings' if len(compared[0]) > FINDINGS else ''}"] += 1
        elif any(one[0] in BY_TIME for one in compared) and began_alike(*(str(one[2]) for one in compared)):
            counts[f"{kind}: stopped by a limit"] += 1
        else:
            counts[f"{kind}: different"] += 1
            print(f"{path} (interpret {interpret}, seed {seed}, number {number})")
            for one, other in zip_longest(*compared):
                if one != other:
                    print(f"  native: {str(one)[:600]}\n  wasm:   {str(other)[:600]}", flush=True)
            continue
        if not from_list:
            path.unlink()
    print(json.dumps(counts))
    return sum(n for what, n in counts.items() if what.endswith("different"))


if __name__ == "__main__":
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), seed, (sys.argv[4:] or [""])[0]) > 0)
