"""A class's worth of synthetic submissions, each with the grade that it deserves."""

from __future__ import annotations

from dataclasses import dataclass

SHAPES = ["4x4x4", "8x4x12", "5x7x6", "9x3x5"]
ASSIGNMENT = f"""
title = "Tiled product"
shapes = {SHAPES}
tile = 4
forbidden = ["atomicAdd"]

[points]
parses = 1
product = 4
faults = 3
traffic = 2
calls = 1
"""

NAIVE = """
__global__ void naive(float* M, float* N, float* P, int m, int k, int n) {
    int row = blockIdx.y * TILE_WIDTH + threadIdx.y, col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0;
        for (int i = 0; i < k; ++i) sum += M[row * k + i] * N[i * n + col];
        P[row * n + col] = sum;
    }
}
"""
TILED = """
#define TILE_WIDTH 16
__global__ void product(float* M, float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE_WIDTH][TILE_WIDTH], Ns[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty, col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p < (k - 1) / TILE_WIDTH + 1; ++p) {
        Ms[ty][tx] = row < m && p * TILE_WIDTH + tx < k ? M[row * k + p * TILE_WIDTH + tx] : 0;
        Ns[ty][tx] = p * TILE_WIDTH + ty < k && col < n ? N[(p * TILE_WIDTH + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
"""
FULL = {"parses": 1, "product": 4, "faults": 3, "traffic": 2, "calls": 1}
NOTHING = dict.fromkeys(FULL, 0)


@dataclass(frozen=True)
class Case:
    name: str
    text: str | bytes
    wanted: dict[str, float]
    status: tuple[str, ...] = ("graded",)


def changed(old: str, new: str) -> str:
    assert old in TILED, old
    return TILED.replace(old, new)


def cases() -> list[Case]:
    half = {"product": 2, "traffic": 0}  # right where k is a multiple of the tile; with k = 3 no tile is used at all
    flat = "float sum = 0;"
    return [
        Case("right", TILED, FULL),
        Case("right-with-words", TILED.replace("sum", "toplam").replace("Ms", "ô_M".replace("ô", "o")), FULL),
        Case("no-tiles", "#define TILE_WIDTH 16" + NAIVE, FULL | {"traffic": 0}),
        Case("fake-tiles", changed("Ms[ty][i] * Ns[i][tx]", "(row < m && p * TILE_WIDTH + i < k ? M[row * k + p * TILE_WIDTH + i] : 0) * Ns[i][tx]"), FULL | {"traffic": 0}),  # noqa: E501
        Case("no-first-barrier", changed("        __syncthreads();\n        for", "        for"), FULL | {"faults": 0}),
        Case("no-second-barrier", changed("tx];\n        __syncthreads();\n    }", "tx];\n    }"), FULL | {"faults": 0}),  # noqa: E501
        Case("barrier-in-a-branch", changed("        __syncthreads();\n        for", "        if (col < n) __syncthreads();\n        for"), FULL | {"faults": 0}),  # noqa: E501
        Case("phases-round-down", changed("(k - 1) / TILE_WIDTH + 1", "k / TILE_WIDTH"), FULL | half),
        Case("int-sum", changed(flat, "int sum = 0;"), FULL | {"product": 0, "traffic": 0}),
        Case("swapped", changed("Ms[ty][i] * Ns[i][tx]", "Ms[i][ty] * Ns[tx][i]"), FULL | {"product": 0, "traffic": 0}),
        Case("half-the-terms", changed("++i) sum", "i += 2) sum"), FULL | {"product": 0, "traffic": 0}),
        Case("never-stored", changed("P[row * n + col] = sum;", ";"), FULL | {"product": 0, "faults": 0, "traffic": 0}),
        Case("hard-coded", changed("P[row * n + col] = sum;", "P[row * n + col] = 30.0f * (row + 1) + col;"), FULL | {"product": 0, "traffic": 0}),  # noqa: E501
        Case("spoils-the-operands", changed("P[row * n + col] = sum;", "{ P[row * n + col] = 0; M[row * k] = 0; N[col] = 0; }"), FULL | {"product": 0, "faults": 0, "traffic": 0}),  # noqa: E501
        Case("atomics", changed("P[row * n + col] = sum;", "{ P[row * n + col] = 0; atomicAdd(&P[row * n + col], sum); }"), FULL | {"calls": 0}),  # noqa: E501
        Case("atomics-in-a-comment", TILED + "// atomicAdd(&P[0], 1) would be slow\n", FULL),
        Case("unfinished", TILED[: len(TILED) // 2], NOTHING, ("refused",)),
        Case("misspelt", TILED.replace("__global__", "_global_"), NOTHING, ("refused",)),
        Case("unknown-name", changed(flat, "float sum = start;"), NOTHING, ("refused",)),
        Case("empty", "", NOTHING, ("refused",)),
        Case("not-text", bytes(range(256)) * 20, NOTHING, ("refused",)),
        Case("endless", changed(flat, "float sum = 0; while (true) sum += 1;"), NOTHING, ("stopped", "late")),
        Case("huge-file", TILED + "// " + "x" * 1_100_000, NOTHING, ("unread",)),
        Case("huge-array", changed(flat, "float sum = 0; __shared__ float heap[1 << 28]; heap[tx] = 0;"), NOTHING, ("stopped", "refused")),  # noqa: E501
        Case("markup", TILED.replace("float sum = 0;", "float sum = 0; // </span><script>alert(1)</script> & \"'"), FULL),  # noqa: E501
        Case("flood", changed("float sum = 0;", 'float sum = 0; for (int q = 0; q < 400; ++q) printf("%d <b>flood</b>\\n", q);'), FULL),  # noqa: E501
        Case("recursion", "__device__ int f(int x) { return f(x + 1) + f(x + 2); }\n" + changed(flat, "float sum = f(1);"), NOTHING, ("stopped", "refused", "late", "crashed")),  # noqa: E501
        Case("macro-bomb", "#define A0 x x x x x x x x x x\n" + "".join(f"#define A{i + 1} A{i} A{i} A{i} A{i} A{i} A{i} A{i} A{i}\n" for i in range(9)) + changed(flat, "float sum = 0; A9"), NOTHING, ("stopped", "refused", "late")),  # noqa: E501
    ]  # fmt: skip
