"""Divergence and reconvergence of lanes: branches, loops, jumps, calls."""

from __future__ import annotations

import numpy as np
import pytest
from simt_support import evaluate, per_thread

from tilewise import emulator as simt
from tilewise.errors import KernelError


def test_branches_run_for_their_lanes_only():
    assert per_thread("int x = 1; if (t % 2) x = 10; else { x = 20; x += t; } out[t] = x;", 4) == [
        20,
        10,
        22,
        10,
    ]


def test_loops_of_different_length():
    assert per_thread("int s = 0; for (int i = 0; i < t; ++i) s += i; out[t] = s;", 5) == [0, 0, 1, 3, 6]


def test_break_and_continue():
    body = "int s = 0; for (int i = 0; i < 10; ++i) { if (i == t) break; if (i % 2) continue; s += i; } out[t] = s;"
    expected = [sum(i for i in range(t) if i % 2 == 0) for t in range(8)]
    assert per_thread(body) == expected


def test_while_and_do_while():
    assert per_thread("int i = t; while (i > 3) --i; do { i += 10; } while (i < 12); out[t] = i;") == [
        20, 21, 12, 13, 13, 13, 13, 13,
    ]  # fmt: skip


def test_early_return_ends_a_thread():
    body = "out[t] = 1; if (t < 3) return; out[t] = 2; for (;;) { if (t > 5) return; break; } out[t] = 3;"
    assert per_thread(body) == [
        1, 1, 1, 3, 3, 3, 2, 2,
    ]  # fmt: skip


def test_switch_falls_through():
    body = "int x = 0; switch (t) { case 0: x = 1; case 1: x += 10; break; case 2: x = 5; break; default: x = 9; }"
    body += "out[t] = x;"
    assert per_thread(body, 4) == [11, 10, 5, 9]


def test_ternaries_and_short_circuits_do_not_evaluate_skipped_operands():
    text = "__global__ void k(int* out, int* a, int n) { int t = threadIdx.x; out[t] = t < n ? a[t] : -1;"
    text += "if (t < n && a[t] > 1) out[t] = 7; }"
    out, a = np.zeros(6, np.int32), np.array([1, 2], np.int32)
    report = simt.launch(text, "k", (1,), (6,), [out, a, 2], checks=True)
    assert out.tolist() == [1, 7, -1, -1, -1, -1]
    assert not report.findings


@pytest.mark.parametrize(
    "declared",
    [
        "int* q = t > 2 ? out + t : NULL;",
        "int* q = t <= 2 ? nullptr : out + t;",
        "int* q = NULL; if (t > 2) q = out + t;",
        "int* q = out; q += t; if (t <= 2) q = 0;",
    ],
)
@pytest.mark.parametrize("guarded", ["if (q) *q = 7;", "if (q != NULL) *q = 7;", "if (!(q == nullptr)) q[0] = 7;"])
def test_a_pointer_is_null_in_some_threads(declared, guarded):
    assert per_thread(f"out[t] = 0; {declared} {guarded}", 6) == [0, 0, 0, 7, 7, 7]


def test_a_null_pointer_of_one_thread_is_refused():
    with pytest.raises(KernelError, match="q goes through a null pointer"):
        per_thread("int* q = t > 2 ? out + t : NULL; *q = 7;")


def test_device_functions_return_per_lane_and_change_references():
    top = """
    __device__ int collatz(int n) { int c = 0; while (n > 1) { if (n % 2) n = 3 * n + 1; else n /= 2; ++c; } return c; }
    __device__ void swap(int& a, int& b) { int c = a; a = b; b = c; }
    __device__ void fill(int* p, int n) { for (int i = 0; i < n; ++i) p[i] = i * i; }
    """
    assert per_thread("out[t] = t == 0 ? 0 : collatz(t);", 8, top=top) == [0, 0, 1, 7, 2, 5, 8, 16]
    assert per_thread("int a = t, b = 9; swap(a, b); out[t] = a * 10 + b;", 3, top=top) == [90, 91, 92]
    assert per_thread("int v[4]; fill(v, 4); out[t] = v[t % 4];", 6, top=top) == [0, 1, 4, 9, 0, 1]


def test_local_arrays_structs_and_pointers():
    top = "struct Pair { int a; float b; int c[2]; };"
    assert evaluate("p.a + p.c[1] + (int)p.b", before="Pair p = {1, 2.5f, {3, 4}};", top=top) == 7
    assert evaluate("q->c[0]", before="Pair p; p.c[0] = 8; Pair* q = &p; q->c[0] += 1;", top=top) == 9
    assert evaluate("*p + p[1]", before="int v[3] = {1, 2, 3}; int* p = v; ++p; p += 0;") == 5
    assert evaluate("(int)(v.x + v.w)", before="float4 v = make_float4(1, 2, 3, 4);") == 5


def test_shared_memory_carries_values_between_threads():
    body = "__shared__ int s[8]; s[t] = t * t; __syncthreads(); out[t] = s[7 - t];"
    assert per_thread(body) == [49, 36, 25, 16, 9, 4, 1, 0]


def test_vector_loads_through_reinterpret_cast():
    text = "__global__ void k(float* out, const float* a) { int t = threadIdx.x;"
    text += "float4 v = *reinterpret_cast<const float4*>(&a[4 * t]); out[t] = v.x + v.y + v.z + v.w; }"
    out, a = np.zeros(3, np.float32), np.arange(12, dtype=np.float32)
    simt.launch(text, "k", (1,), (3,), [out, a], checks=True)
    assert out.tolist() == [6, 22, 38]


def test_atomics_add_up():
    out = np.zeros(1, np.int32)
    simt.launch("__global__ void k(int* out) { atomicAdd(&out[0], threadIdx.x); }", "k", (3,), (8,), [out])
    assert out[0] == 3 * 28


def test_printf_writes_one_line_a_thread():
    text = '__global__ void k(int* out) { printf("t=%d x=%.2f\\n", threadIdx.x, 0.5f * threadIdx.x); out[0] = 0; }'
    report = simt.launch(text, "k", (1,), (2,), [np.zeros(1, np.int32)])
    assert report.output == "t=0 x=0.00\nt=1 x=0.50\n"


@pytest.mark.parametrize("blocks", [1, 3])
def test_dynamic_shared_memory_from_the_launch(blocks):
    from tilewise.teaching.trace import check

    text = """
    __global__ void mm(float* A, float* B, float* C, int n) {
        extern __shared__ float s[];
        int r = blockIdx.y * 4 + threadIdx.y, c = blockIdx.x * 4 + threadIdx.x;
        float* a = s; float* b = s + 16; float sum = 0;
        for (int p = 0; p < n / 4; ++p) {
            a[threadIdx.y * 4 + threadIdx.x] = A[r * n + p * 4 + threadIdx.x];
            b[threadIdx.y * 4 + threadIdx.x] = B[(p * 4 + threadIdx.y) * n + c];
            __syncthreads();
            for (int k = 0; k < 4; ++k) sum += a[threadIdx.y * 4 + k] * b[k * 4 + threadIdx.x];
            __syncthreads();
        }
        C[r * n + c] = sum;
    }
    void run(float* A, float* B, float* C, int n) {
        mm<<<dim3(n / 4, n / 4), dim3(4, 4), 2 * 16 * sizeof(float)>>>(A, B, C, n);
    }
    """
    assert check(text, shape=(4 * blocks,) * 3).ok


def test_a_trap_and_a_failing_assert_are_faults_of_the_threads_that_reach_them():
    text = (
        "#include <cassert>\n__global__ void k(int* o, int n) { int i = threadIdx.x; assert(i < n);\n"
        "o[i] = i; __threadfence(); if (i == 6) __trap();\n__syncthreads(); __syncwarp(); }"
    )
    report = simt.launch(text, "k", (1,), (8,), [np.zeros(8, np.int32), 5], checks=True)
    assert [(f.kind, f.line, f.count) for f in report.findings] == [("assertion", 2, 3), ("assertion", 3, 1)]
    assert report.counters["barriers"] == 1
    with pytest.raises(KernelError, match="__syncthreads takes 0 arguments, 1 are given"):
        simt.launch(text.replace("__syncthreads()", "__syncthreads(i)"), "k", (1,), (8,), [np.zeros(8, np.int32), 5])
