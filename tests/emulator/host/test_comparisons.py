"""Comparisons with a reference that could not have failed, and swapped arguments."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
__global__ void add(const float* A, const float* B, float* C, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) C[r * PITCH + c] = A[r * PITCH + c] + B[r * PITCH + c];
}
int main() {
  int rows = 20, cols = 33, n = rows * cols, bytes = n * sizeof(float);
  float *a = (float*)malloc(bytes), *b = (float*)malloc(bytes), *c = (float*)malloc(bytes);
  for (int i = 0; i < n; i++) { a[i] = FILL; b[i] = FILL; }
  float *da, *db, *dc;
  cudaMalloc(&da, bytes); cudaMalloc(&db, bytes); cudaMalloc(&dc, bytes);
  cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice); cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice);
  add<<<dim3(5, 5), dim3(8, 8)>>>(da, db, dc, SIZES);
  cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost);
  int bad = 0;
  for (int i = 0; i < n; i++) {
    TYPE difference = fabs(a[i] + b[i] - c[i]);
    if (difference > LIMIT) bad++;
  }
  for (int i = 0; i < n; i++) if (abs(a[i] + b[i] - c[i]) > LIMIT) bad++;
  puts(bad ? "FAILED" : "PASSED");
  cudaFree(da); cudaFree(db); cudaFree(dc); free(a); free(b); free(c);
}
"""
RIGHT = {"FILL": "i * 0.5f", "SIZES": "rows, cols", "TYPE": "float", "LIMIT": "1e-3", "PITCH": "cols"}


def run(tmp_path, **changed):
    path = tmp_path / "program.cu"
    path.write_text(PROGRAM)
    report = run_program(path, [], Options(defines={**RIGHT, **changed}), capture=True)
    assert report.ended == "exit", report.message
    return report


def test_a_comparison_that_can_fail_is_not_reported(tmp_path):
    report = run(tmp_path)
    assert (report.output, report.findings, report.notes) == ("PASSED\n", [], [])


def test_a_comparison_that_fails_is_not_reported(tmp_path):
    report = run(tmp_path, FILL="0.1f * i + 3e7f", LIMIT="-1.0")
    assert (report.output, report.findings) == ("FAILED\n", [])


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("changed", "line", "says"),
    [
        ({"LIMIT": "1e4"}, 20, "cannot fail: differences up to 10000 pass, and no value compared is larger than 659"),
        ({"TYPE": "int"}, 20, "as an integer"),
        ({"FILL": "i == 7 ? sqrtf(-1.0f) : i"}, 20, "are NaN"),
    ],
)
def test_a_comparison_that_cannot_fail_is_named(changed, line, says, tmp_path):
    report = run(tmp_path, **changed)
    assert report.output == "PASSED\n"
    found = [f for f in report.faults if str(f.kind) == "comparison" and f.line == line]
    assert found, [(str(f.kind), f.line, f.message) for f in report.findings]
    assert says in found[0].message
    assert found[0].hint


def test_constant_inputs_are_a_note(tmp_path):
    report = run(tmp_path, FILL="1.0f")
    assert report.ok
    assert "is the same: mixed-up indices would pass" in report.notes[0]


def test_swapped_sizes_are_a_note_if_the_launch_has_no_fault(tmp_path):
    report = run(tmp_path, SIZES="cols, rows")
    assert report.ok
    assert "add takes (rows, cols) here and is given (cols, rows), that is 33 and 20" in report.notes[0]


def test_swapped_sizes_are_the_fault_if_an_access_is_invalid(tmp_path):
    report = run(tmp_path, SIZES="cols, rows", PITCH="33")
    found = [f for f in report.faults if str(f.kind) == "argument"]
    assert [f.line for f in found] == [15]
    assert found[0].hint == "exchange cols and rows"
