"""Right kernels made wrong in one place: the fault is found, with its kind, line and threads."""

from __future__ import annotations

import re

import pytest
from simt_support import KERNELS, course

from tilewise.emulator.machine.findings import Kind, Severity
from tilewise.teaching.trace import check, trace

EDGES = course("tiled_edges")


def line_of(text, part, nth=0):
    return [i for i, line in enumerate(text.splitlines(), 1) if part in line][nth]


def faults(text, **options):
    """Faults of any basis."""
    found = check(text, **options).findings
    return {(f.kind, f.line): f for f in found if f.severity is Severity.FAULT}


def without(text, part, nth=0):
    lines = text.splitlines()
    lines[line_of(text, part, nth) - 1] = ""
    return "\n".join(lines)


def test_the_right_kernel_is_clean_on_every_default_shape():
    assert check(KERNELS / "tiled_edges.cu").ok


def test_the_first_barrier_missing():
    text = without(EDGES, "__syncthreads")
    found = faults(text, shape=(3, 3, 3))
    race = found[Kind.RACE, line_of(text, "Pvalue +=")]
    assert race.hazard == "RAW"
    assert race.scope == "within a block"
    assert ((0, 0), (1, 0)) in race.threads
    assert "one at a time" in race.evidence


def test_the_second_barrier_missing():
    text = without(EDGES, "__syncthreads", 1)
    found = faults(text, shape=(3, 3, 3))
    race = found[Kind.RACE, line_of(text, "ds_M[ty][tx] = M")]
    assert race.hazard == "WAR"
    assert race.other_place.line == line_of(text, "Pvalue +=")
    assert all(t.phase == 1 for t in race.touches)
    assert "one at a time" in race.evidence


def test_the_check_of_m_missing():
    text = EDGES.replace("if (Row < Width && p * TILE_WIDTH + tx < Width) {", "if (true) {")
    found = faults(text, shape=(3, 3, 3))
    line = line_of(text, "ds_M[ty][tx] = M")
    assert found[Kind.SILENT_OVERRUN, line].count == 4
    assert found[Kind.OUT_OF_BOUNDS, line].count == 10
    assert {k for k, _ in found} >= {Kind.SILENT_OVERRUN, Kind.OUT_OF_BOUNDS}


def test_half_a_check_of_m_is_found_by_poison():
    text = EDGES.replace("if (Row < Width && p * TILE_WIDTH + tx < Width) {", "if (Row < Width) {")
    found = faults(text, shape=(3, 3, 3))
    assert found[Kind.SILENT_OVERRUN, line_of(text, "ds_M[ty][tx] = M")].count == 4


def test_the_check_of_n_missing():
    text = EDGES.replace("if (p * TILE_WIDTH + ty < Width && Col < Width) {", "if (true) {")
    found = faults(text, shape=(3, 3, 3))
    line = line_of(text, "ds_N[ty][tx] = N")
    assert found[Kind.SILENT_OVERRUN, line].count == 4
    assert found[Kind.OUT_OF_BOUNDS, line].count == 10


def test_the_check_of_p_missing():
    text = EDGES.replace("if (Row < Width && Col < Width)", "")
    found = faults(text, shape=(3, 3, 3))
    line = line_of(text, "P[Row")
    assert found[Kind.SILENT_OVERRUN, line].count == 2
    assert found[Kind.OUT_OF_BOUNDS, line].count == 5
    assert found[Kind.RACE, line].scope == "between blocks"


RECT = """
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int p = 0; p < (k + TILE - 1) / TILE; ++p) {
        a[ty][tx] = (row < m && p * TILE + tx < k) ? M[row * k + p * TILE + tx] : 0.0f;
        b[ty][tx] = (p * TILE + ty < k && col < n) ? N[(p * TILE + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += a[ty][i] * b[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        P[row * n + col] = sum;
}
void run(float* M, float* N, float* P, int m, int k, int n) {
    dim3 block(TILE, TILE);
    dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    mm<<<grid, block>>>(M, N, P, m, k, n);
}
"""

WRONG = [
    ("barrier in a branch", "__syncthreads();\n        for", "if (row < m) __syncthreads();\n        for",
     Kind.DIVERGENT_BARRIER, "if (row < m) __sync"),
    ("one phase too long", "(k + TILE - 1) / TILE; ++p", "(k + TILE - 1) / TILE + 1; ++p", None, ""),
    ("one phase too short", "p < (k + TILE - 1) / TILE", "p < k / TILE", Kind.WRONG_PRODUCT, "P[row * n"),
    ("<= for <", "p * TILE + tx < k)", "p * TILE + tx <= k)", Kind.SILENT_OVERRUN, "a[ty][tx] ="),
    ("<= for < in the guard of P", "if (row < m && col < n)", "if (row <= m && col < n)",
     Kind.OUT_OF_BOUNDS, "P[row * n"),
    ("N read with M's stride", "(p * TILE + ty) * n + col", "(p * TILE + ty) * k + col",
     Kind.SILENT_OVERRUN, "b[ty][tx] ="),
    ("a tile from the wrong matrix", "N[(p * TILE + ty) * n + col]", "M[(p * TILE + ty) * n + col]",
     Kind.SILENT_OVERRUN, "b[ty][tx] ="),
    ("store outside the guard", "if (row < m && col < n)\n", "", Kind.SILENT_OVERRUN, "P[row * n"),
    ("int accumulator", "float sum = 0", "int sum = 0", Kind.WRONG_PRODUCT, "P[row * n"),
    ("+= onto uninitialised P", "P[row * n + col] = sum", "P[row * n + col] += sum",
     Kind.UNINITIALISED_READ, "P[row * n"),
    ("a shared loop counter", "for (int i = 0; i < TILE; ++i)", "__shared__ int i; for (i = 0; i < TILE; ++i)",
     Kind.RACE, "__shared__ int i"),
    ("grid axes swapped", "grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE)",
     "grid((m + TILE - 1) / TILE, (n + TILE - 1) / TILE)", Kind.UNCOVERED, "<<<"),
    ("integer ceil", "(n + TILE - 1) / TILE, (m + TILE - 1) / TILE", "ceil(n / TILE), ceil(m / TILE)",
     None, "<<<"),
    ("a stale value", "a[ty][tx] = (row < m && p * TILE + tx < k) ? M[row * k + p * TILE + tx] : 0.0f;",
     "if (row < m && col < n && p * TILE + tx < k) a[ty][tx] = M[row * k + p * TILE + tx];",
     Kind.UNINITIALISED_READ, "sum +="),
    ("a row overrun in shared memory", "a[ty][i]", "a[ty][i + 1]", Kind.SILENT_OVERRUN, "sum +="),
    ("a register without a value", "float sum = 0;", "float sum;", Kind.UNINITIALISED_READ, "sum +="),
    ("index overflow", "P[row * n + col] = sum", "P[(row + 1) * 2000000000 * n + col] = sum",
     Kind.INDEX_OVERFLOW, "2000000000"),
]  # fmt: skip


def test_the_rectangular_kernel_is_clean():
    report = check(RECT)
    assert report.ok
    assert len(report.runs) == 3
    assert len({r.shape for r in report.runs}) == 3


@pytest.mark.parametrize(("name", "old", "new", "kind", "where"), WRONG, ids=[w[0] for w in WRONG])
def test_a_single_fault(name, old, new, kind, where):
    assert old in RECT
    text = RECT.replace(old, new, 1)
    found = faults(text)
    if name == "one phase too long":
        assert not found  # the fill makes it harmless
        return
    assert found
    if kind is None:
        kinds = {k for k, line in found if line == line_of(text, where)}
        assert kinds & {Kind.UNCOVERED, Kind.LAUNCH}
        return
    assert (kind, line_of(text, where)) in found, [(str(k), n) for k, n in found]


def test_swapped_axes_are_named():
    text = RECT.replace("grid((n + TILE - 1) / TILE, (m", "grid((m + TILE - 1) / TILE, (n")
    text = text.replace("(n + TILE - 1) / TILE, (n", "(m + TILE - 1) / TILE, (n", 1)
    found = faults(text, shape=(3, 5, 11))
    assert "swapped" in found[Kind.UNCOVERED, line_of(text, "<<<")].hint


@pytest.mark.parametrize(
    "change",
    [
        # x as the row: odd, slow, and right
        lambda t: (
            t.replace("blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx", "R, col = C")
            .replace("int row = R, col = C", "int row = blockIdx.x * TILE + ty, col = blockIdx.y * TILE + tx")
            .replace(
                "grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE)",
                "grid((m + TILE - 1) / TILE, (n + TILE - 1) / TILE)",
            )
        ),
        # two buffers used in turn: one barrier is enough
        lambda t: (
            re.sub(r"(sum \+= .*;)\n        __syncthreads\(\);", r"\1", t)
            .replace("a[TILE][TILE]", "a[2][TILE][TILE]")
            .replace("b[TILE][TILE]", "b[2][TILE][TILE]")
            .replace("a[ty]", "a[p % 2][ty]")
            .replace("b[ty]", "b[p % 2][ty]")
            .replace("b[i]", "b[p % 2][i]")
        ),
        # padded rows
        lambda t: t.replace("[TILE];", "[TILE + 1];"),
        # a while loop, pointers that walk
        lambda t: t.replace(
            "for (int p = 0; p < (k + TILE - 1) / TILE; ++p) {", "int p = 0; while (p * TILE < k) {"
        ).replace("        __syncthreads();\n    }", "        __syncthreads();\n        ++p;\n    }"),
    ],
    ids=["x as the row", "one barrier is enough", "padded", "while"],
)
def test_right_kernels_that_look_wrong_are_clean(change):
    text = change(RECT)
    assert text != RECT
    report = check(text)
    assert report.ok, [str(f) for f in report.faults]


def test_costs_are_no_faults():
    text = RECT.replace("a[ty][i] * b[i][tx]", "a[tx][i] * b[i][ty]").replace("TILE 4", "TILE 16")
    text = text.replace(
        "int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx",
        "int row = blockIdx.y * TILE + tx, col = blockIdx.x * TILE + ty",
    )
    text = text.replace(
        "row < m && p * TILE + tx < k) ? M[row * k + p * TILE + tx]",
        "blockIdx.y * TILE + ty < m && p * TILE + tx < k) ? M[(blockIdx.y * TILE + ty) * k + p * TILE + tx]",
    )
    text = text.replace(
        "col < n) ? N[(p * TILE + ty) * n + col]",
        "blockIdx.x * TILE + tx < n) ? N[(p * TILE + ty) * n + blockIdx.x * TILE + tx]",
    )
    report = check(text, shape=(32, 32, 32))
    assert report.ok, [str(f) for f in report.faults]
    kinds = {f.kind for f in report.findings}
    assert Kind.BANK_CONFLICT in kinds
    assert Kind.UNCOALESCED in kinds


def test_all_zeros_are_not_taken_for_an_elementwise_difference():
    text = (
        "__global__ void zero(float* A, float* B, float* C, int n) {\n"
        "    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n && j < n) C[i * n + j] = 0 * A[i * n] * B[j];\n}\n"
    )
    made = trace(text, shape=(3, 3, 3), block=(2, 2))
    assert [f.kind for f in made.run.faults] == ["wrong-product"]
