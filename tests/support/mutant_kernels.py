"""Right kernels with one thing changed, proved and run at small sizes: no property that a run refutes may be proved.

python tests/support/mutant_kernels.py --count 100 [--seed N]
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import time
from collections import Counter
from pathlib import Path

from tilewise.emulator.check.loading import choose, load
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import AtShape, simulate
from tilewise.emulator.limits import DEFAULT
from tilewise.emulator.machine.findings import Kind, Severity
from tilewise.emulator.prove.prove import Verdict, prove
from tilewise.errors import TilewiseError

EXERCISES = Path(__file__).parents[2] / "docs" / "exercises"
LAUNCH = """
void launch(const float* M, const float* N, float* P, int m, int k, int n)
{
    dim3 block(TILE_WIDTH, TILE_WIDTH);
    dim3 grid((n + TILE_WIDTH - 1) / TILE_WIDTH, (m + TILE_WIDTH - 1) / TILE_WIDTH);
    multiply<<<grid, block>>>(M, N, P, m, k, n);
}
"""
SQUARE = """
#define TILE_WIDTH 4
__global__ void MatrixMulKernel(float* M, float* N, float* P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int Row = by * TILE_WIDTH + ty;
    int Col = bx * TILE_WIDTH + tx;
    float Pvalue = 0;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        if (Row < Width && ph * TILE_WIDTH + tx < Width)
            Mds[ty][tx] = M[Row * Width + ph * TILE_WIDTH + tx];
        else
            Mds[ty][tx] = 0;
        if (ph * TILE_WIDTH + ty < Width && Col < Width)
            Nds[ty][tx] = N[(ph * TILE_WIDTH + ty) * Width + Col];
        else
            Nds[ty][tx] = 0;
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
void host(float* M, float* N, float* P, int Width)
{
    int blocks = (Width + TILE_WIDTH - 1) / TILE_WIDTH;
    MatrixMulKernel<<<dim3(blocks, blocks), dim3(TILE_WIDTH, TILE_WIDTH)>>>(M, N, P, Width);
}
"""
STEPPING = """
#define TILE_WIDTH 4
__global__ void matmul(const float* A, const float* B, float* C, int n)
{
    __shared__ float a[TILE_WIDTH * TILE_WIDTH];
    __shared__ float b[TILE_WIDTH * TILE_WIDTH];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * blockDim.y + y, col = blockIdx.x * blockDim.x + x;
    float sum = 0;
    for (int start = 0; start < n; start += TILE_WIDTH) {
        a[y * TILE_WIDTH + x] = row < n && start + x < n ? A[row * n + start + x] : 0;
        b[y * TILE_WIDTH + x] = start + y < n && col < n ? B[(start + y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH && start + i < n; i++)
            sum += a[y * TILE_WIDTH + i] * b[i * TILE_WIDTH + x];
        __syncthreads();
    }
    if (row >= n || col >= n) return;
    C[row * n + col] = sum;
}
void host(const float* A, const float* B, float* C, int n)
{
    dim3 threads(TILE_WIDTH, TILE_WIDTH);
    dim3 blocks((n + threads.x - 1) / threads.x, (n + threads.y - 1) / threads.y);
    matmul<<<blocks, threads>>>(A, B, C, n);
}
"""
CHANGES = [
    (r"<(?![<=])", "<="), (r"<=", "<"), (r">=", ">"), (r" && ([^&|()?]+)(?=[)?;])", ""), (r"\(([^&|()]+) && ", "("),
    (r"__syncthreads\(\);", ""), (r"__syncthreads\(\);", "if (ROW) __syncthreads();"), (r" - 1\b", ""),
    (r" \+ TILE_WIDTH - 1", ""), (r"\btx\b", "ty"), (r"\bty\b", "tx"), (r"\b(tx|x)\]", r"\1 + 1]"), (r"\brow\b", "col"),
    (r"\bcol\b", "row"), (r"\bRow\b", "Col"), (r"\bk\b", "n"), (r"\bn\b", "k"), (r"\bm\b", "n"), (r"= 0;", "= 1;"),
    (r"\+\+(\w+)\)", r"\1 += 2)"), (r"TILE_WIDTH", "(TILE_WIDTH + 1)"), (r"TILE_WIDTH", "(TILE_WIDTH - 1)"),
    (r"\+ (tx|ty|x|y)\b", r"- \1"), (r"\* Width", "* (Width + 1)"), (r"Width\b", "(Width - 1)"),
    (r"\+ Col", "+ Col + 1"),
    (r"(float sum = 0;|float Pvalue = 0;)", r"\1 if (OUT) return;"),
]  # fmt: skip


def right_kernels() -> list[str]:
    out = [SQUARE, STEPPING]
    for number in ("03-stay-inside", "09-edges", "16-find-the-race"):
        out.append((EXERCISES / number / "solution.cu").read_text(encoding="utf-8") + LAUNCH)
    for number in ("12-coarsening", "13-register-tile"):
        out.append((EXERCISES / number / "solution.cu").read_text(encoding="utf-8"))
    return out


def mutant(text: str, rng: random.Random) -> str:
    """One change, at one place behind the parameters of the kernel."""
    start = text.index("{", text.index("__global__"))
    while True:
        pattern, new = rng.choice(CHANGES)
        found = [m for m in re.finditer(pattern, text) if m.start() > start]
        if found:
            at = rng.choice(found)
            made = text[: at.start()] + at.expand(new) + text[at.end() :]
            row, size = ("Row", "Width") if "Row" in text else ("row", "m" if "int m" in text else "n")
            made = made.replace("OUT", f"{row} >= {size}").replace("ROW", f"{row} < {size}")
            if made != text:
                return made


def small_shapes(square: bool, rng: random.Random) -> list[tuple[int, int, int]]:
    if square:
        return [(n, n, n) for n in range(1, 41)]
    every = sorted(itertools.product(range(1, 6), repeat=3), key=lambda s: (sum(s), s))
    return every + [tuple(rng.randint(1, 40) for _ in range(3)) for _ in range(6)]


def compare(text: str, rng: random.Random) -> tuple[str, list[str]]:
    """What came of a mutant, and every disagreement between the proof and the runs."""
    try:
        loaded = load(text, None, None, DEFAULT)
        prepared = Prepared(loaded, choose(loaded, None)[0])
        proof = prove(prepared, DEFAULT)
    except TilewiseError:
        return "does not compile", []
    seen: dict[tuple[Kind, str], tuple[int, int, int]] = {}
    for shape in small_shapes(prepared.square(), rng):
        try:
            done = simulate(prepared, AtShape(shape), seed=0, limits=DEFAULT)
        except TilewiseError:
            continue
        for f in done.findings:
            if f.severity is Severity.FAULT:
                seen.setdefault((f.kind, f.array), shape)
    places = {param.name: "global" for param in prepared.function.parameters}
    places |= {name: "shared" for name, *_ in prepared.program.shared}
    faults = {name: where for name, where in ((property_of(kind, places.get(array, "local")), shape)
                                              for (kind, array), shape in reversed(seen.items())) if name}  # fmt: skip
    wrong: list[str] = []
    for answer in proof.answers:
        if answer.verdict is Verdict.PROVED and answer.name in faults:
            wrong.append(f"FALSE PROOF of {answer.name}: fails at {faults[answer.name]}")
        if answer.witness is not None and answer.name in faults and max(answer.witness.shape) <= 5:
            first = faults[answer.name]
            if (sum(first), first) < (sum(answer.witness.shape), answer.witness.shape):
                wrong.append(f"not the smallest witness of {answer.name}: {answer.witness.shape}, {first} fails")
    if faults:
        return "faulty, refuted" if proof.refuted else "faulty, not decided", wrong
    return "right, proved" if proof.proved else "right, refuted above" if proof.refuted else "right, not decided", wrong


def property_of(kind: Kind, place: str) -> str:
    """Which property a finding refutes; bounds of a thread's own arrays are judged with those of the shared ones, and
    whether they are stored to before they are read is not claimed."""
    if kind in (Kind.OUT_OF_BOUNDS, Kind.RACE):
        what = "bounds" if kind is Kind.OUT_OF_BOUNDS else "races"
        return f"{'global' if place == 'global' else 'shared'} {what}"
    if kind is Kind.SILENT_OVERRUN:
        return "rows" if place == "global" else "shared bounds"
    return {Kind.DIVERGENT_BARRIER: "barriers", Kind.LAUNCH: "launch",
            Kind.INDEX_OVERFLOW: "arithmetic", Kind.UNCOVERED: "coverage",
            Kind.UNINITIALISED_READ: "shared reads" if place == "shared" else ""}.get(kind, "")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    rng = random.Random(given.seed)
    kernels, counts, wrong = right_kernels(), Counter[str](), 0
    for number in range(given.count):
        text = mutant(rng.choice(kernels), rng)
        verdict, disagreements = compare(text, rng)
        counts[verdict] += 1
        wrong += sum(d.startswith("FALSE") for d in disagreements)
        if disagreements or verdict in ("right, not decided", "faulty, not decided"):
            print(f"--- {number}: {verdict} {disagreements}\n{text if disagreements else ''}", flush=True)
    print(dict(counts), f"false proofs: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
