"""PTX's tensor-core instructions: what they compute, races around them, and this package's own kernels."""

# ruff: noqa: E501 — lines of C++

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from emulated_launch import made, program
from host_card import layout_of
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.kernels.mma_gemm.mma_sync.family import MmaSync
from tilewise.kernels.recipes import recipe_of

E4M3, E5M2, BF16 = (np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16"))
SHARED = r"""
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
// one warp a 16 x 8 tile of P; A 16 x 16 by ldmatrix, B 16 x 8 by ldmatrix.trans
__global__ void mm(const half* M, const half* N, float* P, int n) {
  __shared__ __align__(16) half As[16][16], Bs[4][16][8];
  int lane = threadIdx.x % 32, t = threadIdx.x, warp = t / 32, row = blockIdx.y * 16, col = blockIdx.x * 32 + threadIdx.x / 32 * 8;
  float c[4] = {0, 0, 0, 0};
  for (int p = 0; p < n; p += 16) {
    for (int i = t; i < 256; i += 128) As[i / 16][i % 16] = M[(row + i / 16) * n + p + i % 16];
    for (int i = lane; i < 128; i += 32) Bs[warp][i / 8][i % 8] = N[(p + i / 8) * n + col + i % 8];
    __syncthreads();  // FIRST
    unsigned a[4], b[2];
    unsigned at = (unsigned)__cvta_generic_to_shared(&As[lane % 16][lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at));
    unsigned bt = (unsigned)__cvta_generic_to_shared(&Bs[warp][lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n" : "=r"(b[0]), "=r"(b[1]) : "r"(bt));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\n"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
    __syncthreads();  // SECOND
  }
  int g = lane / 4; t = lane % 4;
  P[(row + g) * n + col + 2 * t] = c[0]; P[(row + g) * n + col + 2 * t + 1] = c[1];
  P[(row + g + 8) * n + col + 2 * t] = c[2]; P[(row + g + 8) * n + col + 2 * t + 1] = c[3];
}
int main() {
  const int n = 64; static half h[n * n], g[n * n]; static float r[n * n]; half *m, *q; float* p;
  for (int i = 0; i < n * n; ++i) { h[i] = __float2half((i * 7 % 13) - 6); g[i] = __float2half((i * 5 % 11) - 5); }
  cudaMalloc(&m, n * n * 2); cudaMalloc(&q, n * n * 2); cudaMalloc(&p, n * n * 4);
  cudaMemcpy(m, h, n * n * 2, cudaMemcpyHostToDevice); cudaMemcpy(q, g, n * n * 2, cudaMemcpyHostToDevice);
  mm<<<dim3(n / 32, n / 16), 128>>>(m, q, p, n);
  cudaMemcpy(r, p, n * n * 4, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) { float s = 0; for (int k = 0; k < n; ++k) s += __half2float(h[i * n + k]) * __half2float(g[k * n + j]); wrong += s != r[i * n + j]; }
  printf("%d wrong, %g\n", wrong, r[5 * n + 9]); cudaFree(m); cudaFree(q); cudaFree(p);
}
"""


def run(folder, text, card="a100"):
    path = folder / "program.cu"
    path.write_text(text)
    return run_program(
        path, [], Options(seconds=100, wall=300, folder=str(folder), writable=[str(folder)], card=card), capture=True
    )


def line_of(part):
    return next(i for i, line in enumerate(SHARED.splitlines(), 1) if part in line)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("missing", "read_first"), [("", None), ("FIRST", False), ("SECOND", True)])
def test_four_warps_share_a_tile_through_ldmatrix(tmp_path, missing, read_first):
    """Barriers of warps, in ldmatrix and mma, order the threads of one warp alone."""
    text = SHARED.replace(f"__syncthreads();  // {missing}", "") if missing else SHARED
    report = run(tmp_path, text)
    stored, read = line_of("As[i / 16]"), line_of("ldmatrix.sync.aligned.m8n8.x4")
    at = [] if not missing else [(stored, read) if read_first else (read, stored)]
    assert [(f.line, f.other_place.line) for f in report.faults if f.array == "As"] == at
    assert len(report.faults) == len(at), "each warp has its own tile of N"
    assert missing or report.output == "0 wrong, -8\n"


KINDS = [  # shape, types of D, A, B and C, and NumPy's of A and B
    ("m16n8k8", "f32.f16.f16.f32", "<f2", "<f2"), ("m16n8k16", "f16.f16.f16.f16", "<f2", "<f2"),
    ("m16n8k16", "f32.f16.f16.f16", "<f2", "<f2"), ("m16n8k8", "f32.bf16.bf16.f32", BF16, BF16),
    ("m16n8k16", "f32.bf16.bf16.f32", BF16, BF16), ("m16n8k4", "f32.tf32.tf32.f32", "<f4", "<f4"),
    ("m16n8k8", "f32.tf32.tf32.f32", "<f4", "<f4"), ("m8n8k16", "s32.s8.u8.s32", "i1", "u1"),
    ("m16n8k16", "s32.u8.u8.s32", "u1", "u1"), ("m16n8k32", "s32.s8.s8.s32", "i1", "i1"),
    ("m16n8k32", "f32.e4m3.e5m2.f32", E4M3, E5M2), ("m8n8k4", "f64.f64.f64.f64", "<f8", "<f8"),
    ("m16n8k16", "f64.f64.f64.f64", "<f8", "<f8"),
]  # fmt: skip
# of lane 4 g + t: its registers of A hold row g, or g + 8 (odd ones), and those of B column g, from k = E t on
KERNEL = """__global__ void k{number}(const unsigned char* A, const unsigned char* B, const {cell}* C, {cell}* D) {{
  int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  {register} a[{ra}], b[{rb}]; {held} c[{rc}];
  for (int r = 0; r < {ra}; ++r) memcpy(&a[r], A + (g + 8 * (r % {halves})) * {line} + (t + 4 * (r / {halves})) * sizeof(a[0]), sizeof(a[0]));
  for (int r = 0; r < {rb}; ++r) memcpy(&b[r], B + g * {line} + (t + 4 * r) * sizeof(b[0]), sizeof(b[0]));
  for (int r = 0; r < {rc}; ++r) memcpy(&c[r], C + {at_c}, sizeof(c[0]));
  asm volatile("mma.sync.aligned.{shape}.row.col.{types} {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}};" : {outs} : {ins});
  for (int r = 0; r < {rc}; ++r) memcpy(D + {at_c}, &c[r], sizeof(c[0]));
}}
"""


@pytest.mark.slow  # every shape in one program; the package's own kernels execute theirs by default
def test_every_shape_of_mma(tmp_path):
    """Sums of small integers are exact in every type; those of 8 bits use all of them."""
    rng = np.random.default_rng(next_seed() % 2**32)
    text, calls, expected, arrays = ["#include <cstdio>", "#include <cstring>", "#include <cuda_fp16.h>"], [], [], []
    for number, (shape, types, of_a, of_b) in enumerate(KINDS):
        m, n, k = map(int, shape.replace("n", " ").replace("k", " ").lstrip("m").split())
        low = np.iinfo(of_a).min if np.dtype(of_a).kind in "iu" else -4
        A, B = rng.integers(low, 5, (m, k)).astype(of_a), rng.integers(0, 5, (k, n)).astype(of_b)
        if types == "f32.f16.f16.f16":
            types = "f32.f16.f16.f32"
        of_c = {"f16": "<f2", "f32": "<f4", "s32": "<i4", "f64": "<f8"}[types[:3]]
        C = rng.integers(-9, 9, (m, n)).astype(of_c)
        size = A.itemsize
        register, letter = ("double", "d") if size == 8 else ("unsigned", "r")
        width = 8 if size == 8 else 4
        rb = k * size // (4 * width)
        ra, halves = rb * m // 8, m // 8
        packed = of_c == "<f2"
        rc = m // 8 if packed else m // 4
        d = [f"%{i}" for i in range(rc)]
        a = [f"%{rc + i}" for i in range(ra)]
        b = [f"%{rc + ra + i}" for i in range(rb)]
        cell, of = {"<f2": ("half", "r"), "<f4": ("float", "f"), "<i4": ("int", "r"), "<f8": ("double", "d")}[of_c]
        text.append(KERNEL.format(
            number=number, cell=cell, register=register, held="unsigned" if packed else cell, ra=ra, rb=rb, rc=rc,
            halves=halves, line=k * size, shape=shape, types=types, d=", ".join(d), a=", ".join(a), b=", ".join(b),
            at_c="(g + 8 * r) * 8 + 2 * t" if packed else "(g + 8 * (r / 2)) * 8 + 2 * t + r % 2",
            outs=", ".join(f'"+{of}"(c[{i}])' for i in range(rc)),
            ins=", ".join([f'"{letter}"(a[{i}])' for i in range(ra)] + [f'"{letter}"(b[{i}])' for i in range(rb)]),
        ))  # fmt: skip
        data = A.tobytes() + np.ascontiguousarray(B.T).tobytes() + C.tobytes()
        arrays.append(f"const unsigned char data{number}[] = {{{', '.join(map(str, data))}}};")
        calls.append(
            f"cudaMemcpy(p, data{number}, {len(data)}, cudaMemcpyHostToDevice); k{number}<<<1, 32>>>(p, p + {A.nbytes}, "
            f"({cell}*)(p + {A.nbytes + B.nbytes}), ({cell}*)(p + {len(data)})); cudaMemcpy(h, p + {len(data)}, {C.nbytes}, "
            f'cudaMemcpyDeviceToHost); for (int i = 0; i < {m * n}; ++i) printf("%g ", (double)({"__half2float" if packed else ""}((({cell}*)h)[i])));'
        )
        expected += (A.astype(np.float64) @ B.astype(np.float64) + C.astype(np.float64)).ravel().tolist()
    text += arrays
    text.append(
        "int main() { unsigned char *p, h[4096]; cudaMalloc(&p, 8192);\n" + "\n".join(calls) + " cudaFree(p); }"
    )
    report = run(tmp_path, "\n".join(text))
    assert (report.message, report.faults) == ("", [])
    assert list(map(float, report.output.split())) == expected


MATRICES = r"""
#include <cstdio>
__global__ void k(int* wrong) {
  __shared__ __align__(16) unsigned short s[4][8][8], u[4][8][8];
  int lane = threadIdx.x, bad = 0;
  for (int i = lane; i < 256; i += 32) ((unsigned short*)s)[i] = i;
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(&s[lane / 8][lane % 8][0]), to = (unsigned)__cvta_generic_to_shared(&u[lane / 8][lane % 8][0]);
  unsigned r[4], one, two[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  for (int j = 0; j < 4; ++j) { int e = j * 64 + lane / 4 * 8 + lane % 4 * 2; bad += r[j] != (e | (e + 1) << 16); }
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(one) : "r"(at));
  { int e = lane % 4 * 16 + lane / 4; bad += one != (e | (e + 8) << 16); }
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2 + 0];" : "=r"(two[0]), "=r"(two[1]) : "r"(at));
  bad += two[0] != r[0] || two[1] != r[1];
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  __syncwarp();
  for (int i = lane; i < 256; i += 32) bad += u[i / 64][i % 8][i / 8 % 8] != i;
  unsigned short h, g; float x = 1.0f + lane / 2048.0f, y; unsigned pair, t;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(h));
  bad += y != 1 + (lane + (lane % 4 == 3)) / 2 / 1024.0f;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(g) : "f"(x)); bad += g != 0x3f80 + (lane + 7 + (lane >> 4 & 1)) / 16;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(2.0f), "f"(x)); bad += pair != (0x40000000u | g);
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(t) : "f"(x)); bad += t != 0x3f800000u + (lane + 1) / 2 * 0x2000;
  atomicAdd(wrong, bad);
}
int main() { int *p, h = 0; cudaMalloc(&p, 4); cudaMemcpy(p, &h, 4, cudaMemcpyHostToDevice); k<<<1, 32>>>(p); cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost); printf("%d wrong\n", h); cudaFree(p); }
"""


def test_matrices_of_shared_memory_and_conversions(tmp_path):
    report = run(tmp_path, MATRICES)
    assert (report.output, report.faults) == ("0 wrong\n", [])


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("card", "of_m", "of_n", "wanted"),
    [
        ("a100", BF16, BF16, None), pytest.param("t4", np.float16, np.float16, None, marks=SLOW),
        pytest.param("t4", np.int8, np.uint8, "int32", marks=SLOW), pytest.param("a100", np.int8, np.int8, "int32", marks=SLOW),
        pytest.param("a100", np.float32, np.float32, None, marks=SLOW),
        pytest.param("rtx4090", E4M3, E5M2, "bfloat16", marks=SLOW),
        pytest.param("a100", np.float64, np.float64, None, marks=SLOW),
    ],
)  # fmt: skip
def test_this_packages_kernels_as_they_are_launched(tmp_path, card, of_m, of_n, wanted):
    """The text that a card compiles: asynchronous copies, ldmatrix and mma.sync, with every check."""
    rng, machine = np.random.default_rng(next_seed() % 2**32), KNOWN_CARDS[card]
    m, k, n = 40, 72, 56
    M, N = rng.integers(0, 4, (m, k)).astype(of_m), rng.integers(0, 4, (k, n)).astype(of_n)
    kinds = dtype_of(M.dtype), dtype_of(N.dtype)
    problem = Problem(
        m, k, n, (), *kinds, tw.semirings["plus_times"], layout_of(M), layout_of(N), layout_of(M), False, "tf32",
        requested=DTYPES[wanted] if wanted else None,
    )  # fmt: skip
    P = np.zeros((m, n), problem.result.numpy)
    problem = replace(problem, layout_p=layout_of(P))
    able = [c for c in MmaSync().configurations(problem, machine) if not c.edge_rows and not c.edge_cols]
    config = min(able, key=lambda c: (c.tile.rows * c.tile.cols, c.tile.warps_m * c.tile.warps_n))
    report = run(
        tmp_path, program(recipe_of(MmaSync().pinned(problem, machine, config)), tmp_path, M=M, N=N, P=P), card
    )
    assert (report.message, report.faults) == ("", [])
    np.testing.assert_array_equal(made(tmp_path, P).astype(np.float64), M.astype(np.float64) @ N.astype(np.float64))


MEMORY = r"""
#include <cstdio>
#include <cstring>
__global__ void k(const float* in, unsigned* out) {
  __shared__ float s[8][4];
  unsigned bits, pair[2];
  memcpy(s[threadIdx.x], in + 4 * threadIdx.x, 16);
  BARRIER
  memcpy(&bits, &s[7 - threadIdx.x][1], sizeof bits);
  memset(pair, 0x11, sizeof pair);
  std::memcpy((char*)pair + 1, &bits, 3);
  memmove(out + 2 * threadIdx.x, pair, 8);
}
int main() {
  float h[32], *x; unsigned o[16], *y;
  for (int i = 0; i < 32; i++) h[i] = i;
  cudaMalloc(&x, 128); cudaMalloc(&y, 64); cudaMemcpy(x, h, 128, cudaMemcpyHostToDevice);
  k<<<1, 8>>>(x, y); cudaMemcpy(o, y, 64, cudaMemcpyDeviceToHost); float f; memcpy(&f, &h[5], 4);
  printf("%x %x %x %g\n", o[0], o[1], o[14], f); cudaFree(x); cudaFree(y);
}
"""


@pytest.mark.parametrize(
    ("barrier", "found"),
    [("__syncthreads();", []), ("", ["race"]), ("__syncthreads(); out += 9;", ["out-of-bounds", "uncovered"])],
)
def test_memcpy_and_memset_in_kernels(tmp_path, barrier, found):
    """They were the host's, which may not touch the card's memory."""
    report = run(tmp_path, MEMORY.replace("BARRIER", barrier))
    assert [f.kind.value for f in report.faults] == found
    assert barrier != "__syncthreads();" or report.output == "e8000011 11111111 80000011 5\n"
