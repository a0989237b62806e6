"""`check` reads classes as `run` does: methods, constructors, operators, lambdas, groups, headers nearby."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.emulator.machine.findings import Kind
from tilewise.teaching.trace import check

HEAD = """
struct Vec {
    float x, y;
    __device__ Vec(float a, float b) : x(a), y(b) {}
    __device__ float dot(const Vec& o) const { return x * o.x + y * o.y; }
    __device__ Vec operator+(const Vec& o) const { return Vec(x + o.x, y + o.y); }
    __device__ Vec& operator+=(const Vec& o) { x += o.x; y += o.y; return *this; }
};
__device__ Vec operator*(const Vec& a, float s) { return Vec(a.x * s, a.y * s); }
struct View {
    float* p;
    int ld;
    static const int FIRST = 1;
    __device__ float& operator()(int r, int c) { return p[r * ld + c]; }
};
struct Add { float by; __device__ float operator()(float v) const { return v + by; } };
template <class F> __device__ float twice(F f, float v) { return f(f(v)); }
constexpr int square(int v) { return v * v; }
constexpr int SIDE = square(4);
struct Base { float x; __device__ Base(float v) : x(v) {} __device__ Base() : Base(7) {} };
struct Held : Base {
    float& kept;
    __device__ Held(float& held, float v) : Base(v), kept(held) { kept += 1; }
    __device__ float both() const { return x + kept; }
};
struct Half { float x, y; __device__ Half() { x = 4; } };
struct Empty { __device__ float next(float v) const { return v + 1; } };
struct Holds { Empty empty; };
__device__ double halves[] = {0.5, 1.5};
__device__ float pick(int v) { return 1; }
__device__ float pick(double v) { return 2; }
template <class T, int N = 3> __device__ T times(T v) { return v * N; }
namespace outer { namespace inner { __device__ int f(int v) { return v; } } using inner::f; }
"""


def run(body, head=HEAD, **options):
    text = f"{head}\n__global__ void k(float* a, int n) {{ int i = threadIdx.x; {body} }}"
    report = check(text, args={"a": np.zeros(32, np.float32), "n": 8}, grid=(1,), block=(8,), **options)
    assert not report.not_judged
    return report.runs[0]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("Vec v(i, 2); a[i] = v.dot(Vec(3, 1));", lambda i: 3 * i + 2),
        ("Vec v(i, 2); Vec w = v + Vec(1, 1); w += v; w = w * 2; a[i] = w.x;", lambda i: 4 * i + 2),
        ("View m = {a, 1}; m(i, 0) = 5 + View::FIRST;", lambda i: 6),
        ("Add add; add.by = 3; a[i] = twice(add, 1);", lambda i: 7),
        ("auto f = [=](float t) { return t * t + n; }; a[i] = twice(f, i);", lambda i: (i * i + 8) ** 2 + 8),
        ("int s = 1; auto g = [&](int t) { s += t; }; g(i); g(2); a[i] = s;", lambda i: i + 3),
        ("auto& r = a[i]; r = i;", lambda i: i),
        ("int s = i; auto f = [=](int t) { return s * t; }; s = 100; a[i] = f(2) + s;", lambda i: 2 * i + 100),
        ("int s = i; auto f = [s, &n](int t) { return s + n; }; s = n = 3; a[i] = f(0);", lambda i: i + 3),
        ("auto f = [k = 2 * i](int t) mutable { return k += t; }; f(1); a[i] = f(1);", lambda i: 2 * i + 2),
        ("int s = i; int r = [=] { return s; }() + 1; a[i] = r;", lambda i: i + 1),
        ("int s = 1; auto f = [=](float t) { return t + s; }; s = 5; a[i] = twice(f, i);", lambda i: i + 2),
        ("Base b, c(i); a[i] = b.x + c.x;", lambda i: 7 + i),
        ("float l = i; Held h(l, 10); a[i] = h.both() + l;", lambda i: 12 + 2 * i),
        ("Half h; a[i] = h.x;", lambda i: 4),
        ("Empty e, *p = &e; Holds h; a[i] = p->next(i) + h.empty.next(1);", lambda i: i + 3),
        ("a[i] = halves[i % 2] * 2;", lambda i: i % 2 * 2 + 1),
        (
            "float f = 1; char c = 1; a[i] = pick(f) * 10 + pick(c) + times<float>(i) + times<float, 5>(1);",
            lambda i: 21 + 3 * i + 5,
        ),
        ("a[i] = SIDE + lroundf(2.5f) + outer::f(i);", lambda i: 16 + 3 + i),
    ],
)
def test_a_kernel_of_classes_computes_what_c_does(body, value):
    found = run(body)
    assert not found.faults
    assert found.arrays["a"][:8].tolist() == [value(i) for i in range(8)]


GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;"


@pytest.mark.parametrize("sync", ["block.sync();", "cg::sync(block);", "cg::this_thread_block().sync();", ""])
def test_the_barrier_of_a_group_is_a_barrier(sync):
    body = f"auto block = cg::this_thread_block(); __shared__ float s[8]; s[i] = i; {sync} a[i] = s[7 - i];"
    assert {f.kind for f in run(body, GROUPS).faults} == ({Kind.RACE} if not sync else set())


def test_headers_beside_the_file_are_read(tmp_path):
    (tmp_path / "scale.cuh").write_text("__device__ float scale(float v) { return 3 * v; }\n#define LAST 7\n")
    kernel = tmp_path / "k.cu"
    kernel.write_text('#include "scale.cuh"\n#include "not_there.h"\n'
                      "__global__ void k(float* a) { a[LAST] = scale(a[8]); }\n")  # fmt: skip
    report = check(kernel, args={"a": np.ones(8, np.float32)}, grid=(1,), block=(1,))
    assert [(f.kind, f.line) for f in report.runs[0].faults] == [(Kind.OUT_OF_BOUNDS, 3)]


def test_a_product_of_fragments_is_read_and_checked():
    """The kernel's own N hides no template parameter of the header. `rows` of B: one too few is past its end."""
    text = """#include <mma.h>
    using namespace nvcuda;
    __global__ void k(const half* a, const half* b, float* c, int N) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
        wmma::fill_fragment(fc, 0.0f);
        wmma::load_matrix_sync(fa, a, N); wmma::load_matrix_sync(fb, b, N);
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
    }"""
    a, b = (np.arange(256).reshape(16, 16) % step for step in (7, 5))
    for rows in (16, 15):
        given = {"a": a.astype(np.float16), "b": b[:rows].astype(np.float16), "c": np.zeros((16, 16), np.float32)}
        found = check(text, args={**given, "N": 16}, grid=(1,), block=(32,)).runs[0]
        assert [(f.kind, f.line, f.array) for f in found.faults[:1]] == [(Kind.OUT_OF_BOUNDS, 8, "b")] * (rows < 16)
        assert rows < 16 or found.arrays["c"].tolist() == (a @ b).tolist()


def test_a_member_that_a_constructor_leaves_out_has_no_value():
    found = run("Half h; a[i] = h.x + h.y;")
    assert [f.kind for f in found.faults] == [Kind.UNINITIALISED_READ]


def test_a_number_becomes_an_object_by_its_constructor():
    text = """
    struct Field {
        int value;
        __device__ Field() {}
        __device__ Field(int v) : value(v) { value %= 7; }
        __device__ bool operator!=(const Field& o) const { return value != o.value; }
    };
    __global__ void unit(Field* B, int* found, int n) {
        int x = threadIdx.x, y = threadIdx.y;
        if (x >= n || y >= n) return;
        B[x * n + y] = x == y;
        if (B[x * n + y] != 8) found[x * n + y] = 1;
    }
    """
    given = {"B": np.zeros(9, np.int32).view([("value", np.int32)]), "found": np.zeros(9, np.int32), "n": 3}
    done = check(text, grid=(1, 1), block=(3, 3), args=given).runs[0]
    assert (done.faults, done.arrays["found"].tolist()) == ((), [0, 1, 1, 1, 0, 1, 1, 1, 0])
