"""The product that P is compared with."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tilewise.emulator.check.judge import integer_product
from tilewise.teaching.trace import check


@pytest.mark.parametrize(
    ("low", "high"), [(-100, 100), (-(2**15), 2**15), (0, 2**31), (-(2**31), 2**31), (-(2**63), 2**63)]
)
def test_products_of_integers_are_those_of_int64_with_its_wrap(low, high):
    draw = np.random.default_rng(1)
    for m, k, n in ((5, 7, 3), (1, 300, 2), (33, 64, 65), (3, 0, 2)):
        one, two = (draw.integers(low, high - 1, shape, np.int64, endpoint=True) for shape in ((m, k), (k, n)))
        assert np.array_equal(integer_product(one, two), one @ two)


def test_the_least_integer():
    edge = np.array([[-(2**63), 2**63 - 1, -(2**47), 2**15]])
    assert np.array_equal(integer_product(edge, edge.T), edge @ edge.T)


def test_it_does_not_take_the_time_of_numpys_integers():
    """2,048³ of int took all of the 20 s of a check, and nothing was reported."""
    one = np.random.default_rng(1).integers(0, 2**31, (700, 700), np.int64)

    def least(function):
        times = []
        for _ in range(3):
            began = time.perf_counter()
            function(one, one)
            times.append(time.perf_counter() - began)
        return min(times)

    assert least(integer_product) < least(np.matmul)


NEAREST = """
__global__ void nearest(float* points, float* centres, int* labels, int n, int k, int dims) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int best = 0;
    float least = 1e30f;
    for (int c = 0; c < k; ++c) {
        float sum = 0;
        for (int d = 0; d < dims; ++d) {
            float apart = points[i * dims + d] - centres[c * dims + d];
            sum += apart * apart;
        }
        if (sum < least) { least = sum; best = c; }
    }
    labels[i] = best;
}
void label(float* points, float* centres, int* labels, int n, int k, int dims) {
    nearest<<<(n + 255) / 256, 256>>>(points, centres, labels, n, k, dims);
}
"""
MEANS = """
__global__ void means(float* sums, int* counts, float* centres, int dims, int k) {
    int c = blockIdx.x, d = threadIdx.x;
    centres[c * dims + d] = counts[c] > 0 ? sums[c * dims + d] / counts[c] : 0;
}
void average(float* sums, int* counts, float* centres, int dims, int k) {
    means<<<k, dims>>>(sums, counts, centres, dims, k);
}
"""
SWEEP = """
__global__ void sweep(const float* before, float* after, const float* source, float h2, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, i = y * n + x;
    if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
        after[i] = 0.25f * (before[i - 1] + before[i + 1] + before[i - n] + before[i + n] - h2 * source[i]);
}
void once(const float* before, float* after, const float* source, float h2, int n) {
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    sweep<<<grid, block>>>(before, after, source, h2, n);
}
"""


ENTROPY = """
__device__ float least_of(float v) {
    for (int d = 16; d; d /= 2) v = fmaxf(v, __shfl_down_sync(0xffffffffu, v, d));
    return v;
}
__global__ void entropy(const float* logits, const float* wanted, float* loss, int n, int k) {
    int row = blockIdx.x, lane = threadIdx.x;
    float least = 1e30f, sum = 0;
    for (int i = lane; i < k; i += 32) least = fminf(least, logits[row * k + i]);
    least = least_of(least);
    for (int i = lane; i < k; i += 32) sum += expf(logits[row * k + i] - least) - wanted[row * k + i];
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (lane == 0) atomicAdd(loss, sum / n);
}
void loss(const float* logits, const float* wanted, float* loss, int n, int k) {
    cudaMemset(loss, 0, sizeof(float));
    entropy<<<n, 32>>>(logits, wanted, loss, n, k);
}
"""


@pytest.mark.parametrize("kernel", [NEAREST, MEANS, SWEEP, ENTROPY])
def test_three_arrays_whose_elements_are_not_multiplied_are_no_product(kernel):
    report = check(kernel)
    assert report.clean, report.text()


def test_a_product_by_a_function_or_in_registers_is_one():
    kernel = """
    __device__ float times(float a, float b) { return a * b; }
    __device__ float first(const float* a, const float* b) { return a[0] * b[0]; }
    __device__ float apart(const float* a, const float* b) { float d = *a - *b; return d * d; }
    __global__ void f(float* A, float* B, float* C, int m, int k, int n) {
        int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
        if (row >= m || col >= n) return;
        float sum = 0;
        for (int i = 0; i < k - 1; ++i) { HOW }
        C[row * n + col] = sum;
    }
    void g(float* A, float* B, float* C, int m, int k, int n) {
        dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
        f<<<grid, block>>>(A, B, C, m, k, n);
    }
    """
    for how in (
        "sum += times(A[row * k + i], B[i * n + col]);",
        "float a = A[row * k + i], b = B[i * n + col]; sum += a * b;",
        "sum += *(A + row * k + i) * *(B + i * n + col);",
        "sum += first(A + row * k + i, B + i * n + col);",
    ):
        kinds = {str(f.kind) for run in check(kernel.replace("HOW", how)).runs for f in run.findings}
        assert "wrong-product" in kinds, how
    twice = "sum += apart(A + row * k + i, B + i * n + col); sum += apart(A, B);"
    assert check(kernel.replace("HOW", twice)).ok


def test_integers_named_alpha_and_beta_are_factors():
    report = check("""
    __global__ void f(int n, int alpha, int* X, int* Y, int beta, int* A) {
        int i = blockDim.y * blockIdx.y + threadIdx.y, j = blockDim.x * blockIdx.x + threadIdx.x;
        if (i < n && j < n) {
            int sum = 0;
            for (int k = 0; k < n; ++k) sum += X[i * n + k] * Y[k * n + j];
            A[i * n + j] = alpha * sum + beta * A[i * n + j];
        }
    }
    void g(int n, int alpha, int* X, int* Y, int beta, int* A) {
        dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
        f<<<grid, block>>>(n, alpha, X, Y, beta, A);
    }
    """)
    assert report.clean, report.text()
