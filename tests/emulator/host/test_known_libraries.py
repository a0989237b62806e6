"""Libraries that courses use with CUDA: variadic functions, cuBLAS, Thrust, WMMA, graphs, windows (not shown)."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.process import run_program

VARIADIC = r"""
#include <stdio.h>
#include <stdarg.h>
#include <string.h>
void say(const char* format, ...) { va_list a; va_start(a, format); printf("[%s] ", "log"); vprintf(format, a); va_end(a); }
double sum(int n, ...) { va_list a; va_start(a, n); double s = 0; for (int i = 0; i < n; i++) s += va_arg(a, double); va_end(a); return s; }
int text(char* to, size_t size, const char* format, ...) { va_list a, b; va_start(a, format); va_copy(b, a); int n = vsnprintf(to, size, format, a); va_end(a); printf("%d ", va_arg(b, int)); return n; }
struct Log { int level; void out(const char* f, ...) { va_list a; va_start(a, f); vfprintf(stdout, f, a); va_end(a); } };
long mixed(const char* kinds, ...) { va_list a; va_start(a, kinds); long t = 0; for (; *kinds; ++kinds) switch (*kinds) { case 'i': t += va_arg(a, int); break; case 'l': t += va_arg(a, long); break; case 's': t += strlen(va_arg(a, char*)); break; case 'd': t += (long)va_arg(a, double); } va_end(a); return t; }
int main() { say("%d %s %.2f\n", 3, "abc", 2.5f); printf("%g\n", sum(3, 1.0, 2.0, 3.5)); char b[32]; printf("%d %s\n", text(b, sizeof b, "%d-%c", 7, 'x'), b); Log l; l.out("%ld|%5.1f|%s\n", 1L << 40, 3.14, "end"); printf("%ld\n", mixed("ilsd", -3, 1L << 33, "four", 2.9f)); say("no more\n"); return 0; }
"""
VARIADIC_PRINTS = """[log] 3 abc 2.50
6.5
7 3 7-x
1099511627776|  3.1|end
8589934595
[log] no more
"""
WINDOW = r"""
#include <GL/glut.h>
#include <stdio.h>
int frames = 0; float *d; __global__ void step(float* x) { x[threadIdx.x] += 1; }
void Display() { glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT); glPushMatrix(); glTranslatef(1.0, 2.0f, 3); glutSolidSphere(0.5, 20, 20); glPopMatrix(); glutSwapBuffers(); printf("frame %d\n", frames); }
void idle() { step<<<1, 4>>>(d); frames++; glutPostRedisplay(); }
void reshape(int w, int h) { glViewport(0, 0, w, h); printf("%d %d\n", w, h); }
int main(int argc, char** argv) { cudaMalloc(&d, 16); cudaMemset(d, 0, 16); glutInit(&argc, argv); glutInitDisplayMode(GLUT_DOUBLE | GLUT_DEPTH | GLUT_RGB); glutInitWindowSize(640, 480); glutCreateWindow("x"); GLfloat p[] = {1, 1, 1, 0}; glLightfv(GL_LIGHT0, GL_POSITION, p); glutDisplayFunc(Display); glutReshapeFunc(reshape); glutIdleFunc(idle); glutMainLoop(); return 0; }
"""
CUBLAS = r"""
#include <cublas_v2.h>
#include <stdio.h>
int main() {
  cublasHandle_t h; cublasCreate(&h); float x[4] = {1, -5, 3, 2}, y[4] = {1, 1, 1, 1}, *dx, *dy, *da, r, a = 2, z = 0; int i;
  cudaMalloc(&dx, 16); cudaMalloc(&dy, 16); cudaMalloc(&da, 32);
  cublasSetVector(4, sizeof(float), x, 1, dx, 1); cublasSetVector(4, 4, y, 1, dy, 1);
  cublasSaxpy(h, 4, &a, dx, 1, dy, 1); cublasGetVector(4, 4, dy, 1, y, 1); for (float v : y) printf("%g ", v);
  cublasSdot(h, 4, dx, 1, dx, 1, &r); printf("%g ", r); cublasSnrm2(h, 2, dx + 2, 1, &r); printf("%g ", r); cublasSasum(h, 2, dx, 2, &r); printf("%g ", r); cublasIsamax(h, 4, dx, 1, &i); printf("%d ", i);
  cublasSscal(h, 4, &a, dx, 1);
  float m[8] = {1, 2, 3, 4, 5, 6, 7, 8}; cublasSetMatrix(2, 4, 4, m, 2, da, 2); float b = 1;
  cublasSgemv(h, CUBLAS_OP_N, 2, 4, &b, da, 2, dx, 1, &z, dy, 1); cudaMemcpy(y, dy, 8, cudaMemcpyDeviceToHost); printf("%g %g ", y[0], y[1]);
  float* dt; cudaMalloc(&dt, 32); cublasSgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, 4, 2, &b, da, 2, &z, dt, 4, dt, 4); cublasGetMatrix(4, 2, 4, dt, 4, m, 4); for (float v : m) printf("%g ", v); puts("");
  cublasDestroy(h); cudaFree(dx); cudaFree(dy); cudaFree(da); cudaFree(dt);
}
"""
THRUST = r"""
#define UNROLL _Pragma("unroll 4")
#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/transform.h>
#include <thrust/reduce.h>
#include <thrust/copy.h>
#include <cstdio>
struct Square { __host__ __device__ int operator()(int x) const { return x * x; } };
__global__ void add(int* x, int n) { UNROLL for (int k = 0; k < 0; k++) x[k] = 0; int i = threadIdx.x; if (i < n) x[i] += 1; }
int main() { thrust::counting_iterator<int> ci(1); thrust::device_vector<int> d(ci, ci + 8), e(8); add<<<1, 32>>>(thrust::raw_pointer_cast(d.data()), 8);
  thrust::transform(thrust::make_counting_iterator(0), thrust::make_counting_iterator(8), e.begin(), Square()); int h[8]; thrust::copy_n(d.begin(), 8, h);
  printf("%d %d %d %d\n", h[0], h[7], thrust::reduce(e.begin(), e.end()), thrust::reduce(ci, ci + 4)); }
"""
THRUST_ADDRESSES = r"""
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <cstdio>
__global__ void k(float* p) { p[threadIdx.x] += 1; }
int main() { thrust::device_vector<float> v(4, 1.0f); k<<<1, 4>>>(thrust::raw_pointer_cast(&v[0])); float* p = thrust::raw_pointer_cast(&v[1]); k<<<1, 2>>>(p); thrust::device_ptr<float> q = &v[2]; k<<<1, 1>>>(q.get());
 auto d = thrust::raw_pointer_cast(&v.front()); k<<<1,1>>>(d); thrust::host_vector<float> h(v); float* g = thrust::raw_pointer_cast(&h[0]); for (int i = 0; i < 4; i++) printf("%g ", g[i]); puts(""); }
"""
WMMA = r"""
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
const int M = 32, N = 16, K = 48;
__global__ void product(const half* a, const half* b, float* c) {
  int row = blockIdx.x * 16, col = blockIdx.y * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < K; k += 16) { wmma::load_matrix_sync(fa, a + row * K + k, K); wmma::load_matrix_sync(fb, b + col * K + k, K); wmma::mma_sync(fc, fa, fb, fc); }
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 2.0f;
  wmma::store_matrix_sync(c + row * N + col, fc, N, wmma::mem_row_major);
}
int main() {
  static half ha[M * K], hb[N * K]; static float c[M * N]; for (int i = 0; i < M * K; i++) ha[i] = __float2half(i % 7); for (int i = 0; i < N * K; i++) hb[i] = __float2half(i % 5);
  half *a, *b; float* d; cudaMalloc(&a, sizeof ha); cudaMalloc(&b, sizeof hb); cudaMalloc(&d, sizeof c); cudaMemcpy(a, ha, sizeof ha, cudaMemcpyHostToDevice); cudaMemcpy(b, hb, sizeof hb, cudaMemcpyHostToDevice);
  product<<<dim3(M / 16, N / 16), 32>>>(a, b, d); cudaMemcpy(c, d, sizeof c, cudaMemcpyDeviceToHost);
  int bad = 0; for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) { float s = 0; for (int k = 0; k < K; k++) s += (i * K + k) % 7 * ((j * K + k) % 5); bad += c[i * N + j] != 2 * s; }
  printf("%d wrong, %g\n", bad, c[M * N - 1]); cudaFree(a); cudaFree(b); cudaFree(d);
}
"""
WMMA_SHAPES = r"""
#include <cstdio>
#include <mma.h>
using namespace nvcuda;
template <int M, int N, int K, class LA, class LB> __global__ void k(const half* a, const half* b, float* c, int lda, int ldb, int col) {
  wmma::fragment<wmma::matrix_a, M, N, K, half, LA> fa; wmma::fragment<wmma::matrix_b, M, N, K, half, LB> fb; wmma::fragment<wmma::accumulator, M, N, K, float> fc, fd;
  wmma::load_matrix_sync(fc, c, col ? M : N, col ? wmma::mem_col_major : wmma::mem_row_major);
  wmma::load_matrix_sync(fa, a, lda); wmma::load_matrix_sync(fb, b, ldb); wmma::mma_sync(fd, fa, fb, fc);
  for (int i = 0; i < fd.num_elements; i++) fd.x[i] = 2 * fd.x[i];
  wmma::store_matrix_sync(c, fd, col ? M : N, col ? wmma::mem_col_major : wmma::mem_row_major);
}
template <int M, int N, int K, class LA, class LB> void go(int ra, int rb, int col) {
  half *a, *b; float* c; cudaMallocManaged(&a, M * K * 2); cudaMallocManaged(&b, K * N * 2); cudaMallocManaged(&c, M * N * 4);
  for (int i = 0; i < M * K; i++) a[i] = __float2half(i * 7 % 11); for (int i = 0; i < K * N; i++) b[i] = __float2half(i * 5 % 13); for (int i = 0; i < M * N; i++) c[i] = i % 5;
  k<M, N, K, LA, LB><<<1, 32>>>(a, b, c, ra ? K : M, rb ? N : K, col); cudaDeviceSynchronize(); int wrong = 0;
  for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) { int at = col ? j * M + i : i * N + j; float s = at % 5; for (int q = 0; q < K; q++) s += __half2float(a[ra ? i * K + q : q * M + i]) * __half2float(b[rb ? q * N + j : j * K + q]); wrong += c[at] != 2 * s; }
  printf("%d", wrong); cudaFree(a); cudaFree(b); cudaFree(c); }
int main() { typedef wmma::row_major R; typedef wmma::col_major C;
 for (int col = 0; col < 2; col++) { go<16, 16, 16, R, R>(1, 1, col); go<32, 8, 16, R, C>(1, 0, col); go<8, 32, 16, C, R>(0, 1, col); go<16, 16, 16, C, C>(0, 0, col); } printf("\n"); }
"""
GRAPH = r"""
#include <cstdio>
__global__ void add(int* x, int v) { x[threadIdx.x] += v; }
int main() {
  int *d, h[4] = {1, 2, 3, 4}, out[4]; cudaMalloc(&d, 16); cudaStream_t s; cudaStreamCreate(&s); cudaGraph_t g; cudaGraphExec_t e;
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); cudaMemcpyAsync(d, h, 16, cudaMemcpyHostToDevice, s);
  for (int i = 1; i < 4; i++) add<<<1, 4, 0, s>>>(d, i);
  cudaMemcpyAsync(out, d, 16, cudaMemcpyDeviceToHost, s); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, NULL, NULL, 0);
  for (int t = 0; t < 3; t++) { h[0] = 10 * t; cudaGraphLaunch(e, s); cudaStreamSynchronize(s); printf("%d %d\n", out[0], out[3]); }
  cudaGraphExecDestroy(e); cudaGraphDestroy(g); cudaStreamDestroy(s); cudaFree(d);
}
"""
THREADS = r"""
#include <pthread.h>
#include <stdio.h>
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; int total = 0;
void* work(void* x) { int n = *(int*)x; pthread_mutex_lock(&mutex); total += n; pthread_mutex_unlock(&mutex); return (void*)(long)(n * n); }
int main() { pthread_t t[4]; int v[4]; void* r; long squares = 0; for (int i = 0; i < 4; i++) { v[i] = i + 1; pthread_create(&t[i], NULL, work, &v[i]); } for (int i = 0; i < 4; i++) { pthread_join(t[i], &r); squares += (long)r; } printf("%d %ld\n", total, squares); pthread_mutex_destroy(&mutex); }
"""
STRINGS = r"""
#include <string>
#include <iostream>
std::string last(const std::string& path) { size_t s = path.find_last_of("/"); return s == std::string::npos ? path : path.substr(s + 1); }
int main() { std::cout << last("x/yz") << last("q") << " "; std::string p = "  a/b\\c.tar.gz \t"; size_t s = p.find_last_of("/\\");
  std::cout << s << " " << p.find_first_of("./") << " " << p.find_first_not_of(" \t") << " " << p.find_last_not_of(" \t") << " " << p.find_last_of('.') << " " << p.find_last_of(".", 10) << " " << (p.find_first_of("xyq") == std::string::npos) << " " << p.find_first_of('.', 8) << "\n"; }
"""
PROGRAMS = {
    "strings": (STRINGS, "yzq 5 3 2 13 11 7 1 11\n"),  # as g++ prints it
    "pthreads": (THREADS, "10 30\n"),
    "wmma": (WMMA, "0 wrong, 572\n"),  # compared with plain loops in the program
    "wmma, shapes and layouts": (WMMA_SHAPES, "00000000\n"),  # wrong cells of 2 (C + A B), compared with plain loops
    "graph": (GRAPH, "6 10\n16 10\n26 10\n"),  # each launch copies, adds 1 + 2 + 3 and copies back
    "thrust": (THRUST, "2 9 140 10\n"),  # 1 + 1, 8 + 1, the squares up to 49, 1 + 2 + 3 + 4
    "thrust, addresses of elements": (THRUST_ADDRESSES, "3 3 4 2 \n"),  # 1, and 1 for each launch that reaches it
    "variadic": (VARIADIC, VARIADIC_PRINTS),  # as g++ prints it
    "window": (WINDOW, "640 480\nframe 0\nframe 1\nframe 2\nframe 3\n"),
    # x = 1 -5 3 2: y = 1 + 2x, x.x, |(3, 2)|, |1| + |3|, the largest is the second; A = 1 3 5 7 / 2 4 6 8 times 2x; A's transpose
    "cublas": (CUBLAS, "3 -9 7 5 39 3.60555 4 2 30 32 1 3 5 7 2 4 6 8 \n"),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_the_library_computes(name, tmp_path):
    text, prints = PROGRAMS[name]
    (tmp_path / "p.cu").write_text(text)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.ended == "exit", report.message
    assert report.output == prints


def test_a_vector_longer_than_its_memory_is_reported(tmp_path):
    (tmp_path / "p.cu").write_text(CUBLAS.replace("cublasSscal(h, 4, &a, dx, 1)", "cublasSscal(h, 5, &a, dx, 1)"))
    faults = run_program(tmp_path / "p.cu", capture=True).faults
    assert [(f.kind.value, f.place.line) for f in faults] == [("out-of-bounds", 10)]


SAMPLES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <helper_functions.h>
#include <helper_cuda.h>
#include <thrust/device_vector.h>
int main(int argc, char** argv) {
    float* im = NULL;
    unsigned int w, h;
    float pix[6] = {0, 0.5f, 1, 0.25f, 0.75f, 0.1f};
    sdkSavePGM("out.pgm", pix, 3, 2);
    char* path = sdkFindFilePath("out.pgm", argv[0]);
    if (!path) { printf("none\n"); return 1; }
    sdkLoadPGM(path, &im, &w, &h);
    printf("%u %u %.2f %.2f\n", w, h, im[1], im[2]);
    free(im); free(path);
    thrust::device_vector<int> v(3, 7);
    v.push_back(9); v.shrink_to_fit();
    int last = v[3];
    printf("%d %d\n", (int)v.size(), last);
}
"""


def test_images_of_the_cuda_samples_and_growing_vectors(tmp_path):
    (tmp_path / "p.cu").write_text(SAMPLES)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.output, report.faults) == ("3 2 0.50 1.00\n4 9\n", [])


def test_colours_of_book_h(tmp_path):
    """The values of the book's own float_to_color, of bytes and of uchar4, on a card."""
    (tmp_path / "p.cu").write_text("""#include <stdio.h>
#include "book.h"
#include "cpu_anim.h"
int main() {
  float h[8] = {0, 0.1f, 0.25f, 0.4f, 0.5f, 0.6f, 0.85f, 1}, *d; unsigned char *b, c[32]; uchar4 *q, v;
  cudaMalloc(&d, 32); cudaMalloc(&b, 32); cudaMalloc(&q, 32); cudaMemcpy(d, h, 32, cudaMemcpyHostToDevice);
  float_to_color<<<dim3(2, 1), dim3(2, 2)>>>(b, d); cudaMemcpy(c, b, 32, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; i += 4) printf("%d,%d,%d,%d ", c[i], c[i + 1], c[i + 2], c[i + 3]);
  float_to_color<<<1, 8>>>(q, d); cudaMemcpy(&v, q + 5, 4, cudaMemcpyDeviceToHost); printf("%d,%d,%d,%d", v.x, v.y, v.z, v.w);
  cudaFree(d); cudaFree(b); cudaFree(q);
}
""")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.findings == [], report.message
    assert report.output == (
        "0,0,0,255 0,20,51,255 63,0,127,255 204,0,122,255 255,0,0,255 255,173,51,255 178,255,186,255 255,255,255,255 "
        "255,173,51,255"
    )
