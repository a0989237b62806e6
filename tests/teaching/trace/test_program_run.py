"""`check` begins with the program's own run, which decides the basis of findings."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

import tilewise as tw
from tilewise.cli.main import run
from tilewise.emulator.machine.findings import Basis, Kind

pytestmark = pytest.mark.usefixtures("warm_starts")

KERNEL = """#include <cstdio>
#include <cstdlib>
__global__ void add(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] + 1; }
"""
MAIN = """int main(int argc, char** argv) {
  int n = SIZE; float* h = (float*)malloc(n * sizeof(float)); float *x, *y;
  for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  COPY
  add<<<(n + 127) / 128, 128>>>(x, y, n);
  cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g\\n", h[n - 1]);
  cudaFree(x); cudaFree(y); free(h);
}
"""
COPY = "cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);"


@pytest.fixture
def check(tmp_path):
    def go(text, **options):
        path = tmp_path / "program.cu"
        path.write_text(text)
        return tw.check(path, **options)

    return go


def program(size="1000", copy=COPY, kernel=KERNEL):
    return kernel + MAIN.replace("SIZE", size).replace("COPY", copy)


def test_a_right_program_is_run_and_nothing_is_reported(check):
    report = check(program())
    assert report.ok
    assert report.program is not None
    assert report.program.output == "1000\n"
    assert "was run as it stands: status 0 after 1 launch" in report.text()


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("copy", "kind"),
    [
        ("", Kind.UNINITIALISED_READ),
        ("cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyDeviceToHost);", Kind.COPY),
        (COPY + " free(h); h = (float*)malloc(16);", Kind.COPY),
    ],
)
def test_faults_of_the_host_are_faults_of_check(check, copy, kind):
    report = check(program(copy=copy))
    assert not report.ok
    assert kind in {f.kind for f in report.seen}


def test_a_program_that_wants_arguments_is_judged_as_before(check):
    report = check(program(size="atoi(argv[1])"))
    assert report.program is None
    assert report.ok
    usage = check(program().replace("int n =", "if (argc < 2) return 1; int n ="))
    assert "main: not judged: the program wants arguments and was given none" in usage.text()
    file = check(program().replace("int n =", 'if (!fopen("x.bin", "r")) exit(1); int n ='))
    assert "main: not judged: the program wants the file x.bin, which is not there" in " ".join(file.text().split())


def test_a_main_that_does_not_compile_is_status_2(tmp_path, capsys):
    """Its kernels are judged all the same, and a fault of theirs is status 1; a missing file is none of main's."""
    for text, status in (
        (program(size="later"), 2),
        (program().replace('printf("%g', 'int = 2; printf("%g'), 2),
        (program().replace('printf("%g', 'int = 2; printf("%g').replace("i < n", "i <= n"), 1),
        (program(size="later").replace("#include", '#include "lab.h"\n#include', 1), 0),
        (program(size="atoi(argv[1])"), 0),
    ):
        (tmp_path / "program.cu").write_text(text)
        assert run(["check", str(tmp_path / "program.cu")]) == status, text
    assert "is not known here" in capsys.readouterr().out


def test_a_main_beside_a_kernel_without_pointers_is_run(check):
    report = check('#include <cstdio>\n__global__ void hello() { printf("%d\\n", threadIdx.x); }\n'
                   "int main() { hello<<<1, 4>>>(); cudaDeviceSynchronize(); }\n")  # fmt: skip
    assert report.program.output == "0\n1\n2\n3\n"
    assert check("__global__ void set(int* x) { *x = 1; }\nint main() { int* d; set<<<1, 1>>>(d); }\n").program is None


def test_bounds_of_arrays_that_are_too_large_to_look_at_are_judged_by_the_run_of_main(check):
    text = " ".join(check(program(size="5000000")).text().split())
    assert "x has 5000000 elements, more than are looked at here: barriers and shared memory were looked at" in text
    assert "bounds in the run of main" in text
    assert "not decided" not in text


def test_a_race_that_the_program_never_has_belongs_to_other_sizes(check):
    kernel = KERNEL.replace("if (i < n) y[i] = x[i] + 1;", "if (i < n) y[blockDim.x > 128 ? 0 : i] = x[i] + 1;")
    assert check(program(kernel=kernel)).ok


def test_a_kernel_that_only_runs_compiled_is_judged_by_its_run(check):
    kernel = KERNEL.replace(
        "__global__", "__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n__global__"
    )
    report = check(program(kernel=kernel.replace("x[i] + 1", "x[i] + fib(5)")))
    assert report.ok
    assert report.program.output == "1004\n"
    over = check(program(kernel=kernel.replace("if (i < n)", "if (i <= n)").replace("x[i] + 1", "x[i] + fib(5)")))
    assert {f.kind for f in over.seen} == {Kind.OUT_OF_BOUNDS}
    assert all(f.basis is Basis.SEEN for f in over.seen)


def test_the_command_ends_with_one_for_a_fault_of_the_host(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(program(copy=""))
    assert run(["check", str(path)]) == 1
    path.write_text(program())
    assert run(["check", str(path)]) == 0


def test_a_main_that_is_not_judged_is_no_kernel(check):
    report = check(KERNEL + "int main() { no_such_thing(); add<<<1, 1>>>(0, 0, 0); }")
    assert "no faults, main not judged, in 1 launch" in report.text()
    assert report.to_json()["verdict"].startswith("no faults, main not judged")


def test_a_program_without_kernels_is_judged_by_its_run(check):
    program = """#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <cstdio>
int main() { thrust::device_vector<int> d(10, 3); printf("%d\\n", thrust::reduce(d.begin(), d.end())); LEFT }
"""
    report = check(program.replace("LEFT", ""))
    assert report.ok
    assert report.program is not None
    assert report.program.output == "30\n"
    wrong = check(program.replace("LEFT", 'int* p; cudaMalloc(&p, 40); printf("%d\\n", p[0]);'))
    assert not wrong.ok


CSR = """#include <cstdio>
__global__ void spmv(const int* start, const int* column, const float* value, const float* x, float* y, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) { float s = 0; for (int j = start[r]; j < start[r + 1]; j++) s += value[j] * x[column[j]]; y[r] = s; }
}
int main() {
  const int n = 40; int start[n + 1], column[n]; float value[n], x[n], y[n];
  for (int i = 0; i < n; i++) { start[i] = column[i] = i; value[i] = x[i] = 1; } start[n] = n;
  int *a, *b; float *v, *u, *w; cudaMalloc(&a, n * sizeof(int)); cudaMalloc(&b, sizeof column);
  cudaMalloc(&v, sizeof value); cudaMalloc(&u, sizeof x); cudaMalloc(&w, sizeof y);
  cudaMemcpy(a, start, n * sizeof(int), cudaMemcpyHostToDevice); cudaMemcpy(b, column, sizeof column, cudaMemcpyHostToDevice);
  cudaMemcpy(v, value, sizeof value, cudaMemcpyHostToDevice); cudaMemcpy(u, x, sizeof x, cudaMemcpyHostToDevice);
  spmv<<<1, 64>>>(a, b, v, u, w, n);
  cudaMemcpy(y, w, sizeof y, cudaMemcpyDeviceToHost); printf("%g\\n", y[0]);
  cudaFree(a); cudaFree(b); cudaFree(v); cudaFree(u); cudaFree(w);
}
"""


def test_a_length_read_from_outside_an_array_adds_no_other_faults(check):
    """As poison the missing length ran the loop up to the time limit, outside three more arrays."""
    report = check(CSR)
    assert [(f.kind, f.array) for f in report.seen] == [(Kind.OUT_OF_BOUNDS, "start")]
    assert [(f.kind, f.array) for f in report.program.faults] == [(Kind.OUT_OF_BOUNDS, "start")]
    assert not report.not_judged


NO_FILL = r"""#include <stdio.h>
#include <stdlib.h>
#define TS 16
__global__ void matmul(float* M, float* N, float* P, int m, int k, int n) {
  __shared__ float Ms[TS][TS], Ns[TS][TS];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TS + ty, col = blockIdx.x * TS + tx; float s = 0;
  for (int t = 0; t < (k + TS - 1) / TS; t++) {
    if (row < m && t * TS + tx < k) Ms[ty][tx] = M[row * k + t * TS + tx];
    if (col < n && t * TS + ty < k) Ns[ty][tx] = N[(t * TS + ty) * n + col];
    __syncthreads();
    for (int i = 0; i < TS; i++) s += Ms[ty][i] * Ns[i][tx];
    __syncthreads();
  }
  if (row < m && col < n) P[row * n + col] = s;
}
int main() { SIZES; float *a = (float*)malloc(m*k*4), *b = (float*)malloc(k*n*4), *c = (float*)malloc(m*n*4), *x, *y, *z;
  for (int i = 0; i < m*k; i++) a[i] = 1 + i % 7; for (int i = 0; i < k*n; i++) b[i] = 1 + i % 5;
  cudaMalloc(&x, m*k*4); cudaMalloc(&y, k*n*4); cudaMalloc(&z, m*n*4);
  cudaMemcpy(x, a, m*k*4, cudaMemcpyHostToDevice); cudaMemcpy(y, b, k*n*4, cudaMemcpyHostToDevice);
  matmul<<<dim3((n+TS-1)/TS, (m+TS-1)/TS), dim3(TS, TS)>>>(x, y, z, m, k, n);
  cudaMemcpy(c, z, m*n*4, cudaMemcpyDeviceToHost); int bad = 0;
  for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) { float s = 0; for (int l = 0; l < k; l++) s += a[i*k+l]*b[l*n+j]; bad += s != c[i*n+j]; }
  printf("%d bad\n", bad); cudaFree(x); cudaFree(y); cudaFree(z); free(a); free(b); free(c); }
"""
SLIP = (Kind.UNINITIALISED_READ, 11)


@pytest.mark.parametrize(
    ("sizes", "by_run", "by_check"),
    [
        ("int m = 33, k = 33, n = 33", True, True),
        ("int m = 40, k = 32, n = 24", False, False),  # the threads that read these cells store nothing
        ("int m = 32, k = 40, n = 32", False, True),  # cells of the phase before; `run` does not know the product
    ],
)
def test_a_load_without_a_fill_is_the_cause_of_a_wrong_product(check, sizes, by_run, by_check):
    report = check(NO_FILL.replace("SIZES", sizes))
    assert {(f.kind, f.line, f.array) for f in report.program.faults} == (
        {(*SLIP, "Ms"), (*SLIP, "Ns")} if by_run else set()
    )
    assert [(f.kind, f.line) for f in report.faults] == ([SLIP] if by_check else [])
    assert (Kind.WRONG_PRODUCT, 14) in {(f.kind, f.line) for f in report.findings}
    if by_check and not by_run:
        assert "which keeps an earlier phase's value" in report.faults[0].message
        assert "store 0 where the guard of line 8 is false" in report.faults[0].hint


def test_a_tile_in_which_parts_are_kept_on_purpose_is_no_fault(check):
    """Each phase moves the window by half a tile: half of the cells are those of the phase before."""
    kernel = """#include <cstdio>
__global__ void add(const float* x, float* y, int n) {
  __shared__ float s[64]; int t = threadIdx.x; float sum = 0;
  s[t] = x[t]; __syncthreads();
  for (int p = 1; p < 4; p++) {
    if (t >= 32) s[t] = x[t + 64 * p];
    __syncthreads(); sum += s[63 - t]; __syncthreads();
  }
  if (t < n) y[t] = sum;
}
"""
    report = check(
        program(size="256", kernel=kernel.replace("\\n", "")).replace("<<<(n + 127) / 128, 128>>>", "<<<1, 64>>>")
    )
    assert not [f for f in report.findings if f.kind is Kind.UNINITIALISED_READ and f.array == "s"]


PITCHED = r"""#include <cstdio>
#include <vector>
__global__ void blur(float* in, float* out, size_t pitch, int width, int height) {
    int c = threadIdx.x + blockIdx.x * blockDim.x;
    int r = threadIdx.y + blockIdx.y * blockDim.y;
    if (c > 0 && r > 0 && c < width - 1 && r < height - 1) {
        float s = in[(r - 1) * pitch + c] + in[(r + 1) * pitch + c] + in[r * pitch + c - 1] + in[r * pitch + c + 1];
        float* o = (float*)((char*)out + r * pitch);
        o[c] = s / 4;
    }
}
int main() {
    int width = 40, height = 30;
    std::vector<float> img(width * height, 3.f);
    float *din, *dout;
    size_t p1, p2;
    cudaMallocPitch(&din, &p1, width * sizeof(float), height);
    cudaMallocPitch(&dout, &p2, width * sizeof(float), height);
    cudaMemset2D(dout, p2, 0, width * sizeof(float), height);
    cudaMemcpy2D(din, p1, img.data(), width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice);
    blur<<<dim3(5, 4), dim3(8, 8)>>>(din, dout, p1, width, height);
    cudaMemcpy2D(img.data(), width * sizeof(float), dout, p2, width * sizeof(float), height, cudaMemcpyDeviceToHost);
    printf("%f\n", img[width + 1]);
    cudaFree(din); cudaFree(dout);
}
"""
DOWN = r"""#include <iostream>
#include <vector>
#include <numeric>
#define BLOCK 256
__global__ void dot(const double* a, const double* b, double* partial, int n) {
    __shared__ double cache[BLOCK];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cache[threadIdx.x] = i < n ? a[i] * b[i] : 0.0;
    __syncthreads();
    for (int s = blockDim.x / 2; s; s >>= 1) {
        if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = cache[0];
}
int main() {
    int n = 1000, blocks = (n + BLOCK - 1) / BLOCK;
    std::vector<double> a(n, 0.5), b(n, 4.0), p(blocks);
    double *da, *db, *dp;
    cudaMalloc(&da, n * sizeof(double)); cudaMalloc(&db, n * sizeof(double)); cudaMalloc(&dp, blocks * sizeof(double));
    cudaMemcpy(da, a.data(), n * sizeof(double), cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), n * sizeof(double), cudaMemcpyHostToDevice);
    dim3 grid(n / BLOCK);
    dot<<<grid, BLOCK>>>(da, db, dp, n);
    cudaMemcpy(p.data(), dp, blocks * sizeof(double), cudaMemcpyDeviceToHost);
    std::cout << std::accumulate(p.begin(), p.end(), 0.0) << std::endl;
    cudaFree(da); cudaFree(db); cudaFree(dp);
    return 0;
}
"""
BY_VALUE = r"""#include <cstdio>
#include <vector>
class Tensor {
    float* data_;
    size_t n_;
public:
    explicit Tensor(size_t n) : n_(n) { cudaMalloc(&data_, n * sizeof(float)); cudaMemset(data_, 0, n * sizeof(float)); }
    float* data() { return data_; }
    size_t size() const { return n_; }
    ~Tensor() {
        cudaFree(data_);
    }
};
__global__ void fill(float* p, size_t n, float v) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) p[i] = v;
}
void fill_tensor(Tensor t, float v) { fill<<<(t.size() + 63) / 64, 64>>>(t.data(), t.size(), v); }
int main() {
    Tensor t(200);
    fill_tensor(t, 1.5f);
    std::vector<float> h(200);
    cudaMemcpy(h.data(), t.data(), 200 * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%f\n", h[199]);
}
"""


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        (PITCHED, Kind.OUT_OF_BOUNDS, "rows of din are 512 bytes apart: (T*)((char*)in + y * pitch) + x"),
        (DOWN, Kind.UNCOVERED, "each block stores one element, and the grid has 3: round it up"),
        (BY_VALUE, Kind.DOUBLE_FREE, "is in ~Tensor(): a copy of the object frees the same memory"),
        (BY_VALUE, Kind.USE_AFTER_FREE, "is in ~Tensor(): a copy of the object frees the same memory"),
        (program(copy=""), Kind.UNINITIALISED_READ, "nothing was ever copied into x (allocated at line 7)"),
    ],
)
def test_the_hint_names_what_the_host_did(check, text, kind, hint):
    """Of faults in kernels too: what the program's own run knows of the allocation is in their findings."""
    report = check(text)
    assert {f.hint for f in report.faults if f.kind is kind and hint in f.hint}, [f.hint for f in report.faults]
    assert all("cudaMalloc" in f.evidence for f in report.faults if f.kind is Kind.OUT_OF_BOUNDS)


@pytest.mark.parametrize(("status", "kinds"), [("1", []), ("0", ["leak"])])
def test_what_a_program_leaves_behind_that_fails_is_no_leak(check, status, kinds):
    """As after exit(1): it may have ended early."""
    text = "int main() { float* d; cudaMalloc(&d, 400); cudaMemset(d, 0, 400); if (d) return STATUS; cudaFree(d); }"
    report = check(text.replace("STATUS", status))
    assert [str(f.kind) for f in report.program.findings] == kinds


TILED_BY_TEMPLATES = """#include <cstdio>
template <int SIDE, typename T> __global__ void gemm(const T* A, const T* B, T* C, int M, int N, int K) {
  __shared__ T As[SIDE][SIDE], Bs[SIDE][SIDE];
  int row = blockIdx.y * SIDE + threadIdx.y, col = blockIdx.x * SIDE + threadIdx.x;
  T acc = 0;
  for (int t = 0; t < (K + SIDE - 1) / SIDE; ++t) {
    int a = t * SIDE + threadIdx.x, b = t * SIDE + threadIdx.y;
    As[threadIdx.y][threadIdx.x] = row < M && a < K ? A[row * K + a] : 0;
    Bs[threadIdx.y][threadIdx.x] = b < K && col < N ? B[b * N + col] : 0;
    __syncthreads();
    for (int k = 0; k < SIDE; ++k) acc += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = acc;
}
template <int TILE, typename... Args> void launch(int M, int N, Args... args) {
  dim3 block(TILE, TILE), grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
  gemm<TILE><<<grid, block>>>(args...);
}
int main() {
  const int M = 65, N = 43, K = 37;
  static double a[M * K], b[K * N], c[M * N];
  for (double& x : a) x = 1;
  for (double& x : b) x = 2;
  double *A, *B, *C;
  cudaMalloc(&A, sizeof a); cudaMalloc(&B, sizeof b); cudaMalloc(&C, sizeof c);
  cudaMemcpy(A, a, sizeof a, cudaMemcpyHostToDevice); cudaMemcpy(B, b, sizeof b, cudaMemcpyHostToDevice);
  launch<8>(M, N, A, B, C, M, N, K);
  launch<32>(M, N, A, B, C, M, N, K);
  cudaMemcpy(c, C, sizeof c, cudaMemcpyDeviceToHost);
  printf("%g\\n", c[M * N - 1]);
  cudaFree(A); cudaFree(B); cudaFree(C);
}
"""


def test_template_arguments_are_those_of_the_run(check):
    """The launch stands in a template: SIDE was taken to be 16 in blocks of 8 x 8, a fault in correct code."""
    report = check(TILED_BY_TEMPLATES)
    assert [f.kind for f in report.faults] == []
    kernel = next(r for r in report.runs if r.entry == "gemm")
    assert kernel.block[:2] == (8, 8)
    wrong = check(TILED_BY_TEMPLATES.replace("a < K ?", "a <= K ?"))
    assert wrong.faults


POINTS_TO_THE_HOST = """#include <cstdio>
#include <cstdlib>
struct Scene { float* at; int n; };
__global__ void k(Scene s, float* y) { if (threadIdx.x < s.n) y[threadIdx.x] = s.at[threadIdx.x]; }
int main() {
  Scene s; s.n = 8; s.at = (float*)malloc(32); for (int i = 0; i < 8; i++) s.at[i] = i;
  float h[8], *y; cudaMalloc(&y, 32);
  k<<<1, 32>>>(s, y);
  cudaMemcpy(h, y, 32, cudaMemcpyDeviceToHost);
  printf("%g\\n", h[3]); cudaFree(y); free(s.at);
}
"""


def test_results_that_a_failed_kernel_lacks_are_no_fault_of_their_own(check):
    report = check(POINTS_TO_THE_HOST)
    assert [(str(f.kind), f.line) for f in report.program.findings] == [("host-pointer-on-the-device", 8)]
    assert not report.at_other_sizes


WAITS = """#include <cstdio>
__device__ volatile int turn[8];
__global__ void in_order(int* y) {
  if (threadIdx.x == 0) { if (blockIdx.x > 0) while (turn[blockIdx.x - 1] == 0) {} y[blockIdx.x] = blockIdx.x; __threadfence(); turn[blockIdx.x] = 1; }
}
int main() {
  int h[8], zero[8] = {0}, *y; cudaMalloc(&y, 32); cudaMemcpyToSymbol(turn, zero, 32);
  in_order<<<8, 32>>>(y);
  cudaMemcpy(h, y, 32, cudaMemcpyDeviceToHost); printf("%d\\n", h[7]); cudaFree(y);
}
"""


@pytest.mark.slow
def test_a_kernel_whose_blocks_wait_for_earlier_ones_is_judged_by_its_run(check):
    """Blocks of the machine run in step, so that it never ends there; it took all of the time."""
    report = check(WAITS)
    assert report.program.output == "7\n"
    assert report.ok
    assert not report.not_judged


def test_run_folds_the_faults_of_one_line_and_of_one_advice(tmp_path, capfd):
    path = tmp_path / "program.cu"
    path.write_text(PITCHED)
    assert run(["run", str(path)]) == 1
    text = capfd.readouterr().err
    assert text.count(": out-of-bounds") == 1
    assert "the same slip: line 7 (in)" in text
    assert text.endswith("1 fault in program.cu\n")
    assert run(["run", "--all", str(path)]) == 1
    assert capfd.readouterr().err.endswith("4 faults in program.cu\n")
