"""Asynchronous copies into shared memory: a wait that is missing, and one for the wrong group, are races."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

PIPELINE = r"""
#include <cstdio>
#include <cuda_pipeline.h>
#define T 16
__global__ void mm(const float* M, const float* N, float* P, int n) {
  __shared__ float Ms[2][T][T], Ns[2][T][T];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
  int phases = n / T;
  __pipeline_memcpy_async(&Ms[0][ty][tx], &M[row * n + tx], 4);
  __pipeline_memcpy_async(&Ns[0][ty][tx], &N[ty * n + col], 4);
  __pipeline_commit();
  float sum = 0;
  for (int p = 0; p < phases; ++p) {
    int s = p & 1;
    if (p + 1 < phases) {
      __pipeline_memcpy_async(&Ms[s ^ 1][ty][tx], &M[row * n + (p + 1) * T + tx], 4);
      __pipeline_memcpy_async(&Ns[s ^ 1][ty][tx], &N[((p + 1) * T + ty) * n + col], 4);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);  // WAIT
    __syncthreads();  // FIRST
    for (int k = 0; k < T; ++k) sum += Ms[s][ty][k] * Ns[s][k][tx];
    __syncthreads();  // SECOND
  }
  P[row * n + col] = sum;
}
int main() {
  const int n = 64; static float h[n * n], r[n * n]; float *m, *q, *p;
  for (int i = 0; i < n * n; ++i) h[i] = i % 7;
  cudaMalloc(&m, n * n * 4); cudaMalloc(&q, n * n * 4); cudaMalloc(&p, n * n * 4);
  cudaMemcpy(m, h, n * n * 4, cudaMemcpyHostToDevice); cudaMemcpy(q, h, n * n * 4, cudaMemcpyHostToDevice);
  mm<<<dim3(n / T, n / T), dim3(T, T)>>>(m, q, p, n);
  cudaMemcpy(r, p, n * n * 4, cudaMemcpyDeviceToHost);
  printf("%g %g\n", r[0], r[n * n - 1]); cudaFree(m); cudaFree(q); cudaFree(p);
}
"""
GROUPS = r"""
#include <cstdio>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda/barrier>
namespace cg = cooperative_groups;
__global__ void a(const float* in, float* out, int n) {
  __shared__ float s[256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in + blockIdx.x * 256, sizeof(float) * 256);
  cg::wait(block);  // WAIT
  out[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
__global__ void b(const float* in, float* out, int n) {
  __shared__ float s[2][256];
  auto pipe = cuda::make_pipeline();
  int i = threadIdx.x;
  pipe.producer_acquire(); cuda::memcpy_async(&s[0][i], &in[i], sizeof(float), pipe); pipe.producer_commit();
  float sum = 0;
  for (int p = 0; p < n / 256; ++p) {
    pipe.producer_acquire();
    if (p + 1 < n / 256) cuda::memcpy_async(&s[(p + 1) & 1][i], &in[(p + 1) * 256 + i], sizeof(float), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    __syncthreads();
    sum += s[p & 1][255 - i];
    __syncthreads();
    pipe.consumer_release();
  }
  out[i] = sum;
}
__global__ void c(const float* in, float* out) {
  __shared__ float s[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  cuda::memcpy_async(block, s, in, cuda::aligned_size_t<16>(sizeof(float) * 256), bar);
  bar.arrive_and_wait();  // BAR
  out[threadIdx.x] = s[255 - threadIdx.x];
}
__global__ void d(const float* in, float* out, int n) {
  __shared__ __align__(16) float s[256];
  int i = threadIdx.x * 4;
  unsigned at = (unsigned)__cvta_generic_to_shared(s + i);
  int bytes = i + 4 <= n ? 16 : i < n ? (n - i) * 4 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;\n" :: "r"(at), "l"(in + i), "n"(16), "r"(bytes));
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" :: "n"(0));
  __syncthreads();
  for (int j = 0; j < 4; ++j) out[i + j] = s[255 - i - j];
}
int main() {
  const int n = 1024; float h[n], *x, *y;
  for (int i = 0; i < n; ++i) h[i] = i;
  cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4); cudaMemcpy(x, h, n * 4, cudaMemcpyHostToDevice);
  a<<<4, 256>>>(x, y, n); cudaMemcpy(h, y, n * 4, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[1023]);
  b<<<1, 256>>>(x, y, n); cudaMemcpy(h, y, 256 * 4, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[255]);
  c<<<1, 256>>>(x, y); cudaMemcpy(h, y, 256 * 4, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[255]);
  d<<<1, 64>>>(x, y, 100); cudaMemcpy(h, y, 256 * 4, cudaMemcpyDeviceToHost);
  printf("%g %g %g\n", h[0], h[255], h[156]);
  cudaFree(x); cudaFree(y);
}
"""

PRODUCER = r"""
#include <cstdio>
#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;
// one warp loads, three add up: two stages
__global__ void k(const float* in, float* out, int n) {
  __shared__ float s[2][96];
  __shared__ barrier full[2], empty[2];
  auto block = cg::this_thread_block();
  if (block.thread_rank() < 2) { init(&full[block.thread_rank()], 128); init(&empty[block.thread_rank()], 128); }
  block.sync();
  if (threadIdx.x < 32) {
    for (int p = 0; p < n; ++p) {
      if (p >= 2) empty[p & 1].arrive_and_wait();  // FREE
      for (int i = threadIdx.x; i < 96; i += 32)
        cuda::memcpy_async(&s[p & 1][i], &in[p * 96 + i], sizeof(float), full[p & 1]);
      barrier::arrival_token t = full[p & 1].arrive();
    }
  } else {
    int i = threadIdx.x - 32; float sum = 0;
    for (int p = 0; p < n; ++p) {
      full[p & 1].arrive_and_wait();  // FILLED
      sum += s[p & 1][95 - i];
      if (p + 2 < n) empty[p & 1].arrive();
    }
    out[i] = sum;
  }
}
int main() {
  const int n = 7; float h[n * 96], *x, *y;
  for (int i = 0; i < n * 96; ++i) h[i] = i;
  cudaMalloc(&x, sizeof h); cudaMalloc(&y, 96 * 4); cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  k<<<1, 128>>>(x, y, n); cudaMemcpy(h, y, 96 * 4, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[95]);
  cudaFree(x); cudaFree(y);
}
"""


def run(tmp_path, text):
    path = tmp_path / "program.cu"
    path.write_text(text)
    return run_program(path, [], Options(), capture=True)


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


USE = "sum += Ms"


@pytest.mark.parametrize(
    ("old", "new", "at", "other"),
    [
        ("__pipeline_wait_prior(1);  // WAIT", "// WAIT", USE, "&Ms[0]"),
        ("prior(1)", "prior(2)", USE, "&Ms[0]"),
        ("    __pipeline_commit();\n    __pipeline_wait", "    if (!p) __pipeline_commit();\n    __pipeline_wait", USE,
          "p + 1) * T + tx"),
        ("__syncthreads();  // FIRST", "// FIRST", "&Ms[0]", USE),
        ("__syncthreads();  // SECOND", "// SECOND", USE, "p + 1) * T + tx"),
    ],
)  # fmt: skip
def test_a_pipeline_of_two_stages(tmp_path, old, new, at, other):
    assert old in PIPELINE
    text = PIPELINE.replace(old, new)
    report = run(tmp_path, text)
    found = [(f.kind.value, f.line, f.other_place and f.other_place.line) for f in report.faults if f.array == "Ms"]
    assert found == [("race", line_of(text, at), line_of(text, other))]
    waits = "__pipeline_wait_prior" in report.faults[0].hint
    assert waits == ("WAIT" in new or "prior" in old or "commit" in old)


def test_the_pipeline_with_all_waits_has_no_fault(tmp_path):
    report = run(tmp_path, PIPELINE)
    assert (report.output, report.faults) == ("819 819\n", [])


def test_copies_of_groups_pipelines_barriers_and_ptx(tmp_path):
    """PTX copies fewer bytes than it stores: the rest are zeros."""
    report = run(tmp_path, GROUPS)
    assert (report.output, report.faults) == ("255 768\n2556 1536\n255 0\n0 0 99\n", [])


@pytest.mark.parametrize("part", ["cg::wait(block);", 'asm volatile("cp.async.wait_group %0;\\n" :: "n"(0));'])
def test_a_wait_of_a_group_or_of_ptx_is_missing(tmp_path, part):
    assert part in GROUPS
    report = run(tmp_path, GROUPS.replace(part, ""))
    assert [f.kind.value for f in report.faults] == ["race"]
    assert report.faults[0].array == "s"


def test_copies_of_a_block_that_nobody_waits_for_end_with_it(tmp_path):
    """The next block, and the next launch, use the same shared memory."""
    text = PIPELINE.replace(
        "P[row * n + col] = sum;", "P[row * n + col] = sum; __pipeline_memcpy_async(&Ms[0][ty][tx], &M[0], 4);"
    )
    report = run(tmp_path, text.replace("mm<<<", "mm<<<dim3(n / T, n / T), dim3(T, T)>>>(m, q, p, n); mm<<<", 1))
    assert report.faults == []


@pytest.mark.parametrize("waits", [True, False])
def test_one_warp_loads_for_three_through_barriers_of_their_own(tmp_path, waits):
    """cuda::barrier counts arrivals; a phase that ends orders what was before it."""
    given = (
        PRODUCER if waits else PRODUCER.replace("full[p & 1].arrive_and_wait();  // FILLED", "full[p & 1].arrive();")
    )
    report = run(tmp_path, given if waits else given.replace("n = 7", "n = 2"))
    assert [(f.kind.value, f.array) for f in report.faults] == ([] if waits else [("race", "s")])
    assert not waits or report.output == "2681 2016\n"
