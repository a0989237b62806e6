"""Kernels that the interpreting machine cannot run are watched for races in shared memory as they run compiled."""

from __future__ import annotations

import pytest

from tilewise.engines.simt.host.options import Options
from tilewise.engines.simt.host.process import run_program

ROWS = """#include <cstdio>
__global__ void turned(float** rows, float* out, int n) {
  __shared__ float tile[8][8]; __shared__ int last;
  int x = threadIdx.x, y = threadIdx.y;
  for (int p = 0; p < 2; p++) {
    tile[y][x] = rows[y][x] + p;
    FIRST
    out[y * n + x] = tile[x][y];
    if (x == 0) last = 7;
    SECOND
  }
}
int main() {
  float *row[8], **rows, *out, h[64];
  for (int i = 0; i < 64; i++) h[i] = i;
  cudaMalloc(&rows, sizeof row); cudaMalloc(&out, sizeof h);
  for (int i = 0; i < 8; i++) { cudaMalloc(&row[i], 32); cudaMemcpy(row[i], h + 8 * i, 32, cudaMemcpyHostToDevice); }
  cudaMemcpy(rows, row, sizeof row, cudaMemcpyHostToDevice);
  turned<<<1, dim3(8, 8)>>>(rows, out, 8);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost); printf("%g %g\\n", h[1], h[8]);
  for (int i = 0; i < 8; i++) cudaFree(row[i]);
  cudaFree(rows); cudaFree(out);
}
"""
BARRIER = "__syncthreads();"


@pytest.mark.parametrize(
    ("first", "second", "line", "other"), [(BARRIER, BARRIER, 0, 0), ("", BARRIER, 8, 6), (BARRIER, "", 8, 6)]
)
def test_a_missing_barrier_in_a_kernel_with_pointers_to_pointers(tmp_path, first, second, line, other):
    path = tmp_path / "program.cu"
    path.write_text(ROWS.replace("FIRST", first).replace("SECOND", second))
    report = run_program(path, [], Options(), capture=True)
    assert report.ended == "exit"
    found = [(f.kind.value, f.place.line, f.other_place.line) for f in report.faults if f.place and f.other_place]
    assert [(kind, {at, before}) for kind, at, before in found] == ([("race", {line, other})] if line else [])
    assert len(report.faults) == len(found)
    if not line:
        assert report.output == "9 2\n"
