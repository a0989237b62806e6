"""Uninitialised __constant__ and __device__ variables: a forgotten cudaMemcpyToSymbol is reported, a counter is not."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(4)  # each program is compiled in a process, 0.2 to 2 s

BLUR = """\
#include <cstdio>
__constant__ float mask[5];
__device__ int limit;
__device__ int counter;
__device__ float bias[4], sums[64];
__device__ float biased(float x) { return x + bias[1]; }
__device__ void store(float* to, float x) { *to = x; }
__device__ float given[64];
__global__ void blur(const float* in, float* out, int n) {
  int i = threadIdx.x;
  float s = 0;
  for (int k = 0; k < 5; k++)
    if (i + k < n) s += mask[k] * in[i + k];
  sums[i] += s;
  atomicAdd(&counter, 1);
  store(given + i, s);
  out[i] = s + sums[i] + given[i];
  // more
}
int main() {
  float h[64], m[5] = {1, 2, 3, 2, 1}, *a, *b;
  for (int i = 0; i < 64; i++) h[i] = i;
  cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof h);
  cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(mask, m, sizeof m);
  blur<<<1, 64>>>(a, b, 64);
  cudaMemcpy(h, b, sizeof h, cudaMemcpyDeviceToHost);
  int c; float back[5];
  cudaMemcpyFromSymbol(&c, counter, sizeof c);
  cudaMemcpyFromSymbol(back, mask, sizeof back);
  printf("%g %d %g\\n", h[3], c, back[0]);
  cudaFree(a); cudaFree(b);
}
"""
COPY = "  cudaMemcpyToSymbol(mask, m, sizeof m);\n"


@pytest.fixture(params=[4.0, 0.0], ids=["interpreted", "compiled"])
def found(request, tmp_path):
    def run(text):
        path = tmp_path / "blur.cu"
        path.write_text(text)
        ran = run_program(path, options=Options(interpret=request.param), capture=True)
        return ran, [(f.kind.value, text.splitlines()[f.line - 1].strip()) for f in ran.findings]

    return run


def test_memory_that_starts_at_zero_on_purpose_is_no_fault(found):
    ran, faults = found(BLUR)
    assert faults == []
    assert ran.output == "135 64 1\n"


@pytest.mark.parametrize("instead", ["", "  cudaMemcpyToSymbol(mask, m, 5);\n"], ids=["forgotten", "without sizeof"])
def test_a_constant_that_was_not_copied_to_is_reported(found, instead):
    ran, faults = found(BLUR.replace(COPY, instead))
    assert faults == [("uninitialised-read", "if (i + k < n) s += mask[k] * in[i + k];")]
    assert "cudaMemcpyToSymbol(mask" in ran.findings[0].hint
    assert "zero" in ran.findings[0].hint
    assert " 64 " in ran.output  # it continued with zeros


@pytest.mark.parametrize("line", ["if (i < limit) out[i] = 0;", "out[i] += biased(1);"])
def test_a_device_variable_that_is_only_read_is_reported(found, line):
    _, faults = found(BLUR.replace("// more", line))
    assert [kind for kind, _ in faults] == ["uninitialised-read"]
    assert faults[0][1] in (line, "__device__ float biased(float x) { return x + bias[1]; }")


@pytest.mark.parametrize(
    "line",
    [
        "limit = 3; out[i] = limit;",
        "int& l = limit; l = 3; out[i] = limit;",
        "int* p = &limit; *p = 3; out[i] = limit;",
    ],
)
def test_any_possible_store_makes_a_device_variable_initialised(found, line):
    _, faults = found(BLUR.replace("// more", f"if (i == 0) {{ {line} }}"))
    assert faults == []
