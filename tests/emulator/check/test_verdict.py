"""The basis of findings: the program's own launch, other sizes, or not decided."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seeds import next_seed
from tilewise.teaching.trace import check

UNGUARDED = """
#define TILE_WIDTH 4
__global__ void mm(float* M, float* N, float* P, int Width) {
    __shared__ float Ms[TILE_WIDTH][TILE_WIDTH], Ns[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty, Col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++p) {
        Ms[ty][tx] = M[Row * Width + p * TILE_WIDTH + tx];
        Ns[ty][tx] = N[(p * TILE_WIDTH + ty) * Width + Col];
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    P[Row * Width + Col] = sum;
}
"""
MAIN = """
static float host_m[1 << 16], host_k[1 << 16], host_p[1 << 16];
int main() {
    int n = SIZE;
    float *m, *k, *p;
    size_t bytes = n * n * sizeof(float);
    cudaMalloc((void**)&m, bytes); cudaMalloc(&k, bytes); cudaMalloc(&p, bytes);
    cudaMemcpy(m, host_m, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(k, host_k, bytes, cudaMemcpyHostToDevice);
    dim3 block(TILE_WIDTH, TILE_WIDTH), grid((n + TILE_WIDTH - 1) / TILE_WIDTH, (n + TILE_WIDTH - 1) / TILE_WIDTH);
    mm<<<grid, block>>>(m, k, p, n);
    cudaMemcpy(host_p, p, bytes, cudaMemcpyDeviceToHost);
    cudaFree(m); cudaFree(k); cudaFree(p);
}
"""


def own_run(report, kernel):
    return next(run for run in report.runs if run.entry == kernel and run.origin == "own")


def kinds(findings):
    return {str(f.kind) for f in findings}


class TestOwnLaunch:
    def test_sizes_that_main_never_uses_are_no_fault(self):
        seed = next_seed() % 2**32
        size = 4 * random.Random(seed).randint(1, 40)
        report = check(UNGUARDED + MAIN.replace("SIZE", str(size)))
        assert report.ok, f"seed {seed}"
        assert kinds(report.at_other_sizes) >= {"out-of-bounds", "silent-overrun"}
        assert not report.clean
        assert f"n = {size}" in report.grounds["mm"] or f"Width = {size}" in report.grounds["mm"]

    def test_sizes_that_main_uses_are(self):
        seed = next_seed() % 2**32
        size = 4 * random.Random(seed).randint(1, 20) + 3
        report = check(UNGUARDED + MAIN.replace("SIZE", str(size)))
        assert "out-of-bounds" in kinds(report.seen), f"seed {seed}"
        assert own_run(report, "mm").shape == (size, size, size)

    def test_of_a_large_grid_some_blocks_are_run(self):
        report = check(UNGUARDED + MAIN.replace("SIZE", "256"))
        assert report.ok
        assert any("of its 4096 blocks were run" in note for note in own_run(report, "mm").supplied)

    def test_an_allocation_without_sizeof_is_too_short(self):
        text = UNGUARDED + MAIN.replace("SIZE", "8").replace("n * n * sizeof(float)", "n * n")
        assert "out-of-bounds" in kinds(check(text).seen)

    def test_a_launch_in_a_function_that_main_calls_is_followed(self):
        body = MAIN.replace("int main() {\n    int n = SIZE;", "void multiply(int n) {")
        text = UNGUARDED + body + "\nint main() { const int size = 6; multiply(size); return 0; }"
        report = check(text)
        assert own_run(report, "mm").shape == (6, 6, 6)
        assert not report.ok

    def test_matrices_in_structs_have_the_sizes_of_the_run(self):
        """The kernel of a course: what it stores past its row shows at main's sizes, 5 x 5 in tiles of 4."""
        head = "struct Matrix { int width, height; float* elements; };\n#define TILE_WIDTH 4\n"
        kernel = """__global__ void mm(Matrix M, Matrix N, Matrix P) {
            int row = blockIdx.y * TILE_WIDTH + threadIdx.y, column = blockIdx.x * TILE_WIDTH + threadIdx.x;
            float sum = 0;
            if (row < M.height && column < N.width)
                for (int i = 0; i < M.width; ++i)
                    sum += M.elements[row * M.width + i] * N.elements[i * N.width + column];
            if (row < P.height GUARD) P.elements[row * P.width + column] = sum;
        }
        Matrix made(int n) {
            Matrix m = {n, n, 0};
            cudaMalloc(&m.elements, n * n * sizeof(float)); cudaMemset(m.elements, 0, n * n * sizeof(float));
            return m;
        }
        int main() {
            Matrix m = made(5), n = made(5), p = made(5);
            mm<<<dim3(2, 2), dim3(4, 4)>>>(m, n, p);
            cudaFree(m.elements); cudaFree(n.elements); cudaFree(p.elements);
        }"""
        right, wrong = (check(head + kernel.replace("GUARD", guard)) for guard in ("&& column < P.width", ""))
        assert own_run(right, "mm").shape == (5, 5, 5)
        assert kinds(right.seen) <= {"not-copied-back"}
        assert {"out-of-bounds", "silent-overrun"} <= kinds(own_run(wrong, "mm").findings)

    @pytest.mark.parametrize(
        ("was", "slip", "reason"),
        [
            ("static float host_m[1 << 16], ", "static float ", "host_m is not known here"),
            ("cudaMemcpy(k, host_k, bytes, cudaMemcpyHostToDevice)", "load(k, &bytes)", "load is not known here"),
            ("cudaFree(m);", "cudaFree(m +);", "expected"),
        ],
    )
    def test_a_main_that_does_not_compile_is_named_and_what_compiles_is_run_for_its_launches(self, was, slip, reason):
        wrong, right = (check(UNGUARDED + MAIN.replace("SIZE", size).replace(was, slip)) for size in ("7", "8"))
        assert reason in wrong.not_judged["main"]
        assert {f.kind.value for f in wrong.seen} >= {"out-of-bounds", "silent-overrun"}
        assert own_run(wrong, "mm").shape == (7, 7, 7)
        assert not wrong.ok
        assert right.ok

    def test_a_kernel_that_multiplies_nothing_is_run_as_main_launches_it(self):
        text = """__global__ void add(const float* a, const float* b, float* c, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            GUARD c[i] = a[i] + b[i];
        }
        int main() {
            int n = 1000; float *a, *b, *c;
            cudaMalloc(&a, n * sizeof(float)); cudaMalloc(&b, n * sizeof(float)); cudaMalloc(&c, n * sizeof(float));
            cudaMemset(a, 0, n * sizeof(float)); cudaMemset(b, 0, n * sizeof(float));
            add<<<(n + 255) / 256, 256>>>(a, b, c, n);
            cudaFree(a); cudaFree(b); cudaFree(c);
        }"""
        assert kinds(check(text.replace("GUARD", "if (i < n)")).seen) <= {"not-copied-back"}
        assert "out-of-bounds" in kinds(check(text.replace("GUARD", "")).seen)


class TestWithoutMain:
    def test_faults_that_need_an_edge_are_of_other_sizes(self):
        report = check(UNGUARDED)
        assert report.ok
        assert report.at_other_sizes

    def test_a_given_shape_is_the_run(self):
        assert not check(UNGUARDED, shape=(5, 5, 5)).ok

    def test_a_missing_barrier_is_a_fault_under_every_launch(self):
        report = check(UNGUARDED.replace("        __syncthreads();\n        for", "        for"))
        assert "race" in kinds(report.seen)

    def test_no_fault_rests_on_an_assumed_launch(self):
        """Two rows per thread: assumed blocks of 16 x 16 would cover half of P."""
        text = """__global__ void mm(const float* A, const float* B, float* C, int n) {
            int row = (blockIdx.y * blockDim.y + threadIdx.y) + blockDim.y * gridDim.y, col = threadIdx.x;
            if (row >= n || col >= n) return;
            float s = 0; for (int i = 0; i < n; ++i) s += A[row * n + i] * B[i * n + col];
            C[row * n + col] = s;
        }"""
        report = check(text)
        assert report.clean
        assert "uncovered" in kinds(report.undecided)
        assert "not decided" in report.text()

    def test_unknown_lengths_are_not_decided(self):
        text = """__global__ void sum(const float* x, float* out, int n) {
            __shared__ float part[256];
            int t = threadIdx.x, i = blockIdx.x * 256 + t;
            part[t] = i < n ? x[i] : 0;
            BARRIER
            for (int s = 128; s > 0; s >>= 1) { if (t < s) part[t] += part[t + s]; __syncthreads(); }
            if (t == 0) out[blockIdx.x] = part[0];
        }"""
        assert check(text.replace("BARRIER", "__syncthreads();")).clean
        assert "race" in kinds(check(text.replace("BARRIER", "")).seen)


PLAIN = """__global__ void mm(const float* A, const float* B, float* C, int M, int N, int K) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= ROWS || c >= COLS) return;
    float s = START;
    for (int i = 0; i < INNER; ++i) STEP;
    STORE = s;
}"""


def kernel(store="C[r * N + c]", step="s += A[r * K + i] * B[i * N + c]", rows="M", cols="N", inner="K", start="0"):
    text = PLAIN.replace("STORE", store).replace("STEP", step).replace("ROWS", rows).replace("COLS", cols)
    return text.replace("INNER", inner).replace("START", start)


class TestReadings:
    def test_any_order_of_the_three_sizes_is_read_from_the_strides(self):
        seed = next_seed() % 2**32
        letters = random.Random(seed).sample(["M", "N", "K"], 3)
        m, k, n = letters
        text = kernel(f"C[r * {n} + c]", f"s += A[r * {k} + i] * B[i * {n} + c]", m, n, k)
        assert check(text).clean, f"seed {seed}: {letters}"

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"step": "s += A[r * K + i] * B[c * K + i]"}, "B is stored transposed"),
            ({"store": "C[c * M + r]", "step": "s += A[i * M + r] * B[c * K + i]"}, "all three matrices are stored"),
            ({"step": "s = fminf(s, A[r * K + i] + B[i * N + c])", "start": "INFINITY"}, "over min_plus"),
        ],
    )
    def test_a_product_under_another_reading_is_one_line_and_no_fault(self, options, words):
        report = check(kernel(**options))
        assert report.clean, [str(f) for f in report.faults]
        assert words in report.text()

    def test_the_number_of_terms_of_a_short_sum_is_reported(self):
        report = check(kernel(inner="K - 1"))
        assert "31 of 32 terms were added" in report.seen[0].hint

    @pytest.mark.parametrize(
        ("was", "slip"), [("Ns[i][tx]", "Ns[tx][i]"), ("P[Row * Width + Col]", "P[Col * Width + Row]")]
    )
    def test_swapped_indices_of_square_matrices_are_a_fault(self, was, slip):
        report = check(UNGUARDED.replace(was, slip))
        assert "wrong-product" in kinds(report.seen)
        assert any("swapped" in f.hint for f in report.seen) or slip == "Ns[tx][i]"

    def test_a_kernel_that_mentions_transposition_is_not_wrong(self):
        turned = UNGUARDED.replace("P[Row * Width + Col]", "P[Col * Width + Row]")
        said = turned.replace("__global__", "// P is stored transposed\n__global__")
        assert "wrong-product" not in kinds(check(said).seen)


def test_dynamic_shared_memory_has_the_size_of_the_launch():
    text = """__global__ void back(int* x, int n) {
        extern __shared__ int s[];
        int t = threadIdx.x;
        s[t] = x[t];
        __syncthreads();
        x[t] = s[n - 1 - t];
    }
    int main() {
        int n = 64; int* x;
        cudaMalloc(&x, n * sizeof(int)); cudaMemset(x, 0, n * sizeof(int));
        back<<<1, n, BYTES>>>(x, n);
    }"""
    assert check(text.replace("BYTES", "n * sizeof(int)")).clean
    assert "out-of-bounds" in kinds(check(text.replace("BYTES", "n")).seen)
    sketch = text.replace("cudaMemset(x, 0, n * sizeof(int))", "fill(x)")  # which nothing defines: main cannot run
    assert "out-of-bounds" in kinds(check(sketch.replace("BYTES", "n")).seen)
    assert check(sketch.replace("BYTES", "n * sizeof(int)")).clean


def test_barriers_order_global_memory_within_a_block():
    """A cell read by one thread, and after a barrier read and written by another: no race."""
    text = """#define LENGTH 64
    __global__ void total(int* x, int* out) {
        for (unsigned s = 1; s < LENGTH; s *= 2) {
            int i = 2 * s * threadIdx.x;
            if (i < LENGTH) x[i] += x[i + s];
            __syncthreads();
        }
        if (threadIdx.x == 0) *out = x[0];
    }
    int main() {
        int *x, *out;
        cudaMalloc(&x, LENGTH * sizeof(int)); cudaMalloc(&out, sizeof(int));
        cudaMemset(x, 1, LENGTH * sizeof(int));
        total<<<1, LENGTH / 2>>>(x, out);
    }"""
    assert check(text).clean
    assert "race" in kinds(check(text.replace("__syncthreads();", "")).seen)


def test_unused_uninitialised_cells_of_a_tile_are_no_fault():
    text = """__global__ void pairs(const float* x, float* y, int n) {
        __shared__ float s[64];
        int t = threadIdx.x, i = blockIdx.x * 64 + t;
        if (i < n) s[t] = x[i];
        __syncthreads();
        float v = s[t] + s[t ^ 1];
        if (i < STORED) y[i] = v;
    }
    int main() {
        int n = 100; float *x, *y;
        cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4); cudaMemset(x, 0, n * 4);
        pairs<<<2, 64>>>(x, y, n);
    }"""
    assert check(text.replace("STORED", "n")).clean
    wrong = text.replace("STORED", "n").replace("i < n) s[t]", "i < n - 1) s[t]")
    assert "uninitialised-read" in kinds(check(wrong).seen)
    assert check(text.replace("STORED", "n").replace("cudaMemset(x, 0, n * 4)", "fill(x)")).clean  # main cannot run


def test_faults_of_rectangles_only_are_of_other_sizes():
    """K for every size: right where all three are the same."""
    report = check(kernel("C[r * K + c]", "s += A[r * K + i] * B[i * K + c]", "K", "K", "K"))
    assert report.ok
    assert report.at_other_sizes


def test_two_threads_that_give_a_cell_the_same_value_are_no_fault():
    text = """__global__ void spread(float* out) {
        __shared__ float s[64];
        int t = threadIdx.x;
        s[t] = t / 2;
        s[t ^ 1] = VALUE;
        __syncthreads();
        out[t] = s[t];
    }
    int main() { float* out; cudaMalloc(&out, 64 * sizeof(float)); spread<<<1, 64>>>(out); }"""
    assert check(text.replace("VALUE", "t / 2")).clean
    assert "race" in kinds(check(text.replace("VALUE", "t")).seen)


def test_sizes_that_a_function_sets_by_reference_are_those_of_the_run():
    body = MAIN.replace("int n = SIZE;", "int n = 0;\n    load(n);")
    report = check(UNGUARDED + "void load(int& n) { n = 8; }" + body)
    assert report.ok
    assert own_run(report, "mm").shape == (8, 8, 8)


class TestOneByOne:
    def test_a_kernel_that_cannot_be_read_does_not_keep_the_others_from_being_judged(self):
        other = "__global__ void tensor(half* a) { wmma::fragment<wmma::matrix_a, 16, 16, 16, half> f; }"
        report = check(UNGUARDED + other)
        assert report.ok
        assert "tensor" in report.not_judged
        assert "tensor: not judged" in report.text()

    def test_a_notebook_s_magic_and_spaced_brackets_are_read(self):
        spaced = MAIN.replace("SIZE", "8").replace("<<<", "<< <").replace(">>>", ">> >")
        text = "%%writefile mm.cu\n" + UNGUARDED + spaced
        assert own_run(check(text + "!nvcc mm.cu\n"), "mm").shape == (8, 8, 8)


def test_the_median_report_of_a_wrong_kernel_is_short():
    from simt_support import KERNELS

    lengths = sorted(len(check(p).text().splitlines()) for p in sorted((KERNELS / "wrong").glob("[a-d]*.cu")))
    assert lengths[len(lengths) // 2] < 25


def test_a_block_that_differs_from_the_tile_is_reported():
    small = MAIN.replace("SIZE", "8").replace("dim3 block(TILE_WIDTH, TILE_WIDTH)", "dim3 block(2, 2)")
    report = check(UNGUARDED + small)
    assert any("blocks have 2 × 2 × 1 threads, but the tile" in f.hint for f in report.seen)


SCALED = """
__global__ void gemm(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < M && y < N) {
        float sum = 0;
        for (int i = 0; i < K; ++i) sum += A[x * K + i] * B[i * N + y];
        C[x * N + y] = FACTOR * sum + beta * C[x * N + y];
    }
}
int main() {
    int n = 32;
    size_t bytes = n * n * sizeof(float);
    float *h = new float[n * n], *a, *b, *c;
    for (int i = 0; i < n * n; i++) h[i] = i % 7;
    cudaMalloc(&a, bytes); cudaMalloc(&b, bytes); cudaMalloc(&c, bytes);
    cudaMemcpy(a, h, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(b, h, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(c, h, bytes, cudaMemcpyHostToDevice);
    gemm<<<dim3(2, 2), dim3(16, 16)>>>(n, n, n, 0.5f, a, b, 3.0f, c);
}
"""


def test_a_product_times_alpha_is_the_product(tmp_path):
    (tmp_path / "k.cu").write_text(SCALED.replace("FACTOR", "alpha"))
    assert check(tmp_path / "k.cu").ok
    (tmp_path / "k.cu").write_text(SCALED.replace("FACTOR", "2"))
    assert [str(f.kind) for f in check(tmp_path / "k.cu").faults] == ["wrong-product"]


def test_an_array_of_32_is_too_short_for_64_in_every_launch():
    fixed = """
__global__ void k(int* d, int n) {
    __shared__ int s[32];
    for (int i = 0; i < LENGTH; i++) s[i] = d[i];
    __syncthreads();
    d[threadIdx.x] = s[31 - threadIdx.x % 32];
}
"""
    assert [(str(f.kind), f.line, f.array) for f in check(fixed.replace("LENGTH", "64")).faults] == [
        ("out-of-bounds", 4, "s")
    ]
    assert check(fixed.replace("LENGTH", "n")).ok  # not decided


def test_a_scan_reads_into_a_variable_before_it_stores():
    report = check("""
__global__ void scan(float* out, const float* in, int n) {
    __shared__ float sdata[256];
    int t = threadIdx.x;
    sdata[t] = t < n ? in[t] : 0;
    __syncthreads();
    for (int i = 1; i < blockDim.x; i *= 2) {
        if (t >= i) sdata[t] += sdata[t - i];
        __syncthreads();
    }
    if (t < n) out[t] = sdata[t];
}
""")
    assert [(str(f.kind), f.line, f.array) for f in report.faults] == [("race", 8, "sdata")]
    assert "read into a variable, __syncthreads()" in report.faults[0].hint


def test_headers_beside_the_file_are_read(tmp_path):
    (tmp_path / "memory.h").write_text(
        "template <class T> T* made(int n) { T* p; cudaMalloc(&p, n * sizeof(T)); return p; }\n#define BLOCK 16\n"
    )
    (tmp_path / "k.cu").write_text("""#include "memory.h"
__global__ void k(int* x, int n) {
    __shared__ int s[BLOCK];
    s[threadIdx.x] = n;
    x[threadIdx.x] = s[BLOCK - 1 - threadIdx.x];
}
int main() { int* d = made<int>(8); k<<<1, BLOCK>>>(d, 8); cudaDeviceSynchronize(); }
""")
    report = check(tmp_path / "k.cu")
    assert report.program is not None
    assert {(str(f.kind), f.line, f.array) for f in report.faults} == {("race", 5, "s"), ("out-of-bounds", 5, "x")}


@pytest.mark.parametrize(("body", "multiplies"), [
    ("for (int k = 0; k < n; k++) C[i * n + k] = (A[i * n + k] + B[k * n + i]) * (B[k * n + i] - 1);", False),
    ("float s = 0; for (int k = 0; k < n; k += 2) s += A[i * n + k] * B[k * n] + A[i * n + k + 1] * B[(k + 1) * n]; "
     "C[i * n] = s;", True),
])  # fmt: skip
def test_a_kernel_that_adds_its_inputs_is_no_product(body, multiplies):
    """(A + Bᵀ)(Bᵀ − 1) elementwise is not compared with A · B; an unrolled sum of products is."""
    report = check(
        f"""
__global__ void k(float* A, float* B, float* C, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ {body} }}
}}
"""
    )
    assert any(run.shape is not None for run in report.runs) == multiplies
    assert multiplies or report.ok


ARRAYS = {"x": np.ones(128, np.float32), "sums": np.zeros(1, np.float32)}
REDUCED = """
__global__ void total(const float* x, float* sums) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    FIRST
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];
        if (t < 16) s[t] += s[t + 16];
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
"""


@pytest.mark.parametrize(("first", "line", "advice", "never"), [
    ("__syncthreads();", 11, "__syncwarp()", "__syncthreads()"),
    ("", 7, "__syncthreads()", "__syncwarp()"),
])  # fmt: skip
def test_a_warp_that_races_with_itself_is_advised_its_own_barrier(first, line, advice, never):
    """In a branch of one warp __syncthreads() would deadlock."""
    report = check(REDUCED.replace("FIRST", first), grid=(1,), block=(128,), args=ARRAYS)
    race = next(f for f in report.faults if str(f.kind) == "race")
    assert (race.line, race.array) == (line, "s")
    assert advice in race.hint
    assert never not in race.hint


ELIMINATED = """
__global__ void eliminate(float* A, int n) {
    __shared__ float s[32 * 32];
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) s[i] = A[i];
    __syncthreads();
    for (int k = 0; k < n - 1; ++k) {
        int m = n - k - 1;
        if (threadIdx.x > k && threadIdx.x < n) s[threadIdx.x * n + k] /= s[k * n + k];
        __syncthreads();
        for (int i = threadIdx.x; i < m * m; i += blockDim.x)
            s[(k + 1 + i / m) * n + k + 1 + i % m] -= s[(k + 1 + i / m) * n + k] * s[k * n + k + 1 + i % m];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) A[i] = s[i];
}
"""


def test_a_race_with_the_turn_before_is_advised_a_barrier_at_the_loops_end():
    matrix = np.eye(24, dtype=np.float32) + 1
    report = check(ELIMINATED, grid=(1,), block=(128,), args={"A": matrix.ravel(), "n": 24})
    hints = [f.hint for f in report.faults if f.hazard == "RAW"]
    assert hints
    for hint in hints:
        assert "after line 11 and before line 8" in hint
        assert "between line 8 and line 11" not in hint  # there is one


def test_kernels_of_another_file_are_judged_by_the_programs_own_run(tmp_path):
    (tmp_path / "ops.h").write_text("void fill(int* d, int n);\n")
    (tmp_path / "ops.cu").write_text("""#include "ops.h"
__global__ void k(int* x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x] = n; }
void fill(int* d, int n) { k<<<2, 32>>>(d, n); }
""")
    (tmp_path / "main.cu").write_text("""#include "ops.h"
int main() {
    int* d;
    cudaMalloc(&d, 50 * sizeof(int));
    fill(d, 50);
    cudaDeviceSynchronize();
    cudaFree(d);
}
""")
    report = check(tmp_path / "main.cu")
    assert {(str(f.kind), f.line) for f in report.faults} == {("out-of-bounds", 2)}
    assert "at line 4" in next(iter(report.faults)).evidence


@pytest.mark.parametrize(("cells", "bytes_"), [("128][128", 65536), ("1 << 28", 1 << 30), ("96][128", 0)])
def test_shared_arrays_over_48_kib_are_a_fault_under_every_launch(cells, bytes_):
    report = check(f"""
__global__ void k(float* x) {{
    __shared__ float s[{cells}];
    ((float*)s)[threadIdx.x] = 1;
    x[threadIdx.x] = ((float*)s)[threadIdx.x];
}}
""")
    assert [(str(f.kind), f.line) for f in report.faults] == ([("launch", 2)] if bytes_ else [])
    assert all(f"{bytes_} bytes of static shared memory: a block has 49152" in f.message for f in report.faults)


@pytest.mark.parametrize(
    ("size", "launch"),
    [
        # too large to run all blocks: two products of 2052 rows; the others cover the verdict
        pytest.param("2052", "mm<<<grid, block>>>(m, k, p, n);", marks=pytest.mark.slow),
        ("8", ""),  # main does not launch it
        ("atoi(argv[1])", "mm<<<grid, block>>>(m, k, p, n);"),  # and no argument is given
    ],
)
def test_with_a_main_sizes_that_the_check_chose_are_other_sizes(size, launch):
    """A kernel for square matrices of whole tiles that is wrong for the others, and one that misses a barrier."""
    main = MAIN.replace("SIZE", size).replace("mm<<<grid, block>>>(m, k, p, n);", launch)
    main = main.replace("int main() {", "int main(int argc, char** argv) {")
    main = main.replace("cudaMemcpy(", "if (0) cudaMemcpy(")
    text = UNGUARDED.replace("void mm(", "void other() {}\n__global__ void mm(")
    report = check(text.replace("= sum", "= sum + 1") + main)
    assert "wrong-product" in kinds(report.at_other_sizes)
    assert "wrong-product" not in kinds(report.seen)
    barrier = check(text.replace("        __syncthreads();\n        for", "        for") + main)
    assert "race" in kinds(barrier.seen)


def test_a_sketch_of_main_is_compiled():
    """A main that allocates nothing for its kernel is not run; one that nvcc rejects is no success either."""
    text = """__global__ void scale(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }
    int main() { BODY scale<<<1, 4>>>(nullptr, 0); }"""
    report = check(text.replace("BODY", "int y = undefined_name;"))
    assert "undefined_name is not known" in report.not_judged["main"]
    assert (report.ok, report.exit_code) == (True, 2)
    assert check(text.replace("BODY", "")).exit_code == 0
