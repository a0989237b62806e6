"""fmaf and fma in lanes are vector instructions, and round like the host's."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

PROGRAM = r"""
#include <cstdio>
#include <cmath>
__global__ void k(const float* a, const float* b, float* c, double* d, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0; double t = 0;
  if (i < n - 3) for (int j = 0; j < n; j++) { s = fmaf(a[i], b[j], s); t = fma((double)a[i], 1.5, t); s = fma(s, 0.999f, 2 * b[i]); }
  c[i] = s; d[i] = t; }
int main() { const int n = 256; float h[n], g[n], r[n], *a, *b, *c; double *d, e[n];
  for (int i = 0; i < n; i++) { h[i] = 1.0f / (i + 3); g[i] = i * 0.37f - 40; }
  cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof h); cudaMalloc(&c, sizeof h); cudaMalloc(&d, sizeof e);
  cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(b, g, sizeof h, cudaMemcpyHostToDevice);
  k<<<2, 128>>>(a, b, c, d, n); cudaMemcpy(r, c, sizeof h, cudaMemcpyDeviceToHost); cudaMemcpy(e, d, sizeof e, cudaMemcpyDeviceToHost);
  int bad = 0; for (int i = 0; i < n; i++) { float s = 0; double t = 0; if (i < n - 3) for (int j = 0; j < n; j++) { s = fmaf(h[i], g[j], s); t = fma((double)h[i], 1.5, t); s = fmaf(s, 0.999f, 2 * g[i]); } bad += s != r[i]; bad += t != e[i]; }
  printf("%d %.9g %.17g\n", bad, r[7], e[9]); cudaFree(a); cudaFree(b); cudaFree(c); cudaFree(d); }
"""


def test_fma_in_lanes_rounds_like_the_host(tmp_path):
    path = tmp_path / "fused.cu"
    path.write_text(PROGRAM)
    report = run_program(path, options=Options(interpret=0.0), capture=True)
    assert report.output == "0 -16698.5898 32.000000953674316\n"
    assert report.launches[0]["lanes"] > 1
