"""Textures: references and objects, arrays and linear memory, addressing modes, point and linear filtering."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import math

import pytest

from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(1)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = r"""
#include <cstdio>
#include <cstring>
#define W 5
#define H 3
texture<float, 2, cudaReadModeElementType> t2;
texture<float, 1> t1;
texture<unsigned char, 2, cudaReadModeNormalizedFloat> tn;
__global__ void refs(float* o) { int x = threadIdx.x; o[x] = tex2D(t2, x + 0.5f, 1.5f); o[8 + x] = tex1Dfetch(t1, x); o[16 + x] = tex2D(tn, x, 0); }
__global__ void objs(cudaTextureObject_t t, float* o) { int x = threadIdx.x; o[x] = tex2D<float>(t, (x - 1) / 5.0f + 0.1f, 0.5f); }
__global__ void lin(cudaTextureObject_t t, float* o) { int x = threadIdx.x; o[x] = tex2D<float>(t, x * 0.5f, 1.0f); }
int main() {
  float h[W * H]; unsigned char c[W * H]; for (int i = 0; i < W * H; i++) { h[i] = i * i; c[i] = i * 17; }
  cudaChannelFormatDesc d = cudaCreateChannelDesc<float>(); cudaArray* a; cudaArray_t b;
  cudaMallocArray(&a, &d, W, H); cudaMemcpyToArray(a, 0, 0, h, sizeof h, cudaMemcpyHostToDevice);
  cudaChannelFormatDesc dc = cudaCreateChannelDesc<unsigned char>(); cudaMallocArray(&b, &dc, W, H); cudaMemcpy2DToArray(b, 0, 0, c, W, W, H, cudaMemcpyHostToDevice);
  float* l; cudaMalloc(&l, sizeof h); cudaMemcpy(l, h, sizeof h, cudaMemcpyHostToDevice);
  t2.filterMode = cudaFilterModePoint; t2.addressMode[0] = cudaAddressModeClamp; t2.normalized = false;
  cudaBindTextureToArray(t2, a, d); cudaBindTexture(0, t1, l, sizeof h); cudaBindTextureToArray(tn, b);
  float* o; cudaMalloc(&o, 96); float r[24];
  refs<<<1, 8>>>(o); cudaMemcpy(r, o, 96, cudaMemcpyDeviceToHost); for (int i = 0; i < 24; i++) printf("%g%c", r[i], i % 8 == 7 ? '\n' : ' ');
  cudaUnbindTexture(t2);
  cudaResourceDesc res; memset(&res, 0, sizeof(res)); res.resType = cudaResourceTypeArray; res.res.array.array = a;
  cudaTextureDesc td = {}; td.addressMode[0] = cudaAddressModeWrap; td.addressMode[1] = cudaAddressModeWrap; td.filterMode = cudaFilterModePoint; td.readMode = cudaReadModeElementType; td.normalizedCoords = 1;
  cudaTextureObject_t t = 0; cudaCreateTextureObject(&t, &res, &td, NULL);
  objs<<<1, 8>>>(t, o); cudaMemcpy(r, o, 32, cudaMemcpyDeviceToHost); for (int i = 0; i < 8; i++) printf("%g ", r[i]); puts("");
  cudaDestroyTextureObject(t);
  td.normalizedCoords = 0; td.filterMode = cudaFilterModeLinear; td.addressMode[0] = cudaAddressModeBorder; cudaCreateTextureObject(&t, &res, &td, NULL);
  lin<<<1, 8>>>(t, o); cudaMemcpy(r, o, 32, cudaMemcpyDeviceToHost); for (int i = 0; i < 8; i++) printf("%g ", r[i]); puts("");
  cudaDestroyTextureObject(t); cudaFreeArray(a); cudaFreeArray(b); cudaFree(l); cudaFree(o); return 0;
}
"""
W, H = 5, 3
SQUARES = [[float((r * W + c) ** 2) for c in range(W)] for r in range(H)]


def linear(x, y):
    """The mean of four cells, weighted; 0 left and right of the array, rows clamped."""

    def cell(i, j):
        return SQUARES[min(max(j, 0), H - 1)][i] if 0 <= i < W else 0.0

    i, j, a, b = math.floor(x - 0.5), math.floor(y - 0.5), (x - 0.5) % 1, (y - 0.5) % 1
    upper = (1 - a) * cell(i, j) + a * cell(i + 1, j)
    lower = (1 - a) * cell(i, j + 1) + a * cell(i + 1, j + 1)
    return (1 - b) * upper + b * lower


def test_texture_fetches_follow_the_programming_guide(tmp_path):
    (tmp_path / "p.cu").write_text(PROGRAM)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.ended == "exit", report.message
    assert report.faults == []
    rows = [[float(word) for word in line.split()] for line in report.output.splitlines()]
    assert rows[0] == [SQUARES[1][min(x, W - 1)] for x in range(8)]  # clamped
    assert rows[1] == [float(x * x) for x in range(8)]
    assert rows[2] == [float(f"{min(x, W - 1) * 17 / 255:g}") for x in range(8)]  # bytes as fractions
    assert rows[3] == [SQUARES[1][(x - 1) % W] for x in range(8)]  # wrapped, in parts of the width
    assert rows[4] == [linear(x * 0.5, 1.0) for x in range(8)]


def test_a_fetch_of_an_uninitialised_array_is_reported(tmp_path):
    (tmp_path / "p.cu").write_text(
        PROGRAM.replace("cudaMemcpyToArray(a, 0, 0, h, sizeof h, cudaMemcpyHostToDevice);", "")
    )
    report = run_program(tmp_path / "p.cu", capture=True)
    assert "uninitialised-read" in {f.kind.value for f in report.faults}
