"""thrust::tuple as an argument, a result and an element, and iterators over several vectors at once."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(1)  # each program is compiled in a process, 0.2 to 2 s

RESULTS = r"""
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include <thrust/for_each.h>
#include <thrust/generate.h>
#include <thrust/transform_reduce.h>
#include <thrust/iterator/zip_iterator.h>
#include <cstdio>
struct Turn { float k; Turn(float k) : k(k) {} __host__ __device__ thrust::tuple<float, float> operator()(const thrust::tuple<float, float>& p) const { float x = thrust::get<0>(p), y = thrust::get<1>(p); if (x < 0) return thrust::make_tuple(0.0f, 0.0f); return thrust::make_tuple(-k * y, k * x); } };
struct Both { int n; __host__ __device__ thrust::tuple<float, int> operator()() { ++n; return thrust::make_tuple(n * 0.5f, n); } };
struct Add { template <class T> __host__ __device__ void operator()(T t) const { thrust::get<2>(t) = thrust::get<0>(t) + thrust::get<1>(t); } };
typedef thrust::tuple<int, int> Range;
struct Wide { __host__ __device__ Range operator()(int x) const { return Range(x, x); } };
struct Wider { __host__ __device__ Range operator()(const Range& a, const Range& b) const { return Range(min(thrust::get<0>(a), thrust::get<0>(b)), max(thrust::get<1>(a), thrust::get<1>(b))); } };
struct Dot { __host__ __device__ float operator()(const thrust::tuple<float, float>& t) const { return thrust::get<0>(t) * thrust::get<1>(t); } };
int main() {
  thrust::device_vector<float> x(3), y(3), u(3), v(3); for (int i = 0; i < 3; i++) { x[i] = i - 1; y[i] = 2 * i; }
  auto first = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin())), last = thrust::make_zip_iterator(thrust::make_tuple(x.end(), y.end()));
  thrust::transform(first, last, thrust::make_zip_iterator(thrust::make_tuple(u.begin(), v.begin())), Turn(3));
  for (int i = 0; i < 3; i++) printf("%g %g, ", (float)u[i], (float)v[i]);
  printf("%ld %g\n", (long)(last - first), thrust::transform_reduce(first, last, Dot(), 0.0f, thrust::plus<float>()));
  thrust::for_each(thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin(), u.begin())), thrust::make_zip_iterator(thrust::make_tuple(x.end(), y.end(), u.end())), Add());
  for (int i = 0; i < 3; i++) printf("%g ", (float)u[i]);
  thrust::device_vector<int> n(3); thrust::generate(thrust::make_zip_iterator(thrust::make_tuple(u.begin(), n.begin())), thrust::make_zip_iterator(thrust::make_tuple(u.end(), n.end())), Both{4});
  for (int i = 0; i < 3; i++) printf("%g %d ", (float)u[i], (int)n[i]);
  n[1] = -7; Range r = thrust::transform_reduce(n.begin(), n.end(), Wide(), Range(100, -100), Wider()); printf("%d %d\n", thrust::get<0>(r), thrust::get<1>(r));
  thrust::device_vector<thrust::tuple<float, float>> pairs(2); pairs[0] = thrust::make_tuple(1.5f, 2.5f); pairs[1] = thrust::make_tuple(3.f, 4.f);
  thrust::device_vector<thrust::tuple<float, float>> turned(2); thrust::transform(pairs.begin(), pairs.end(), turned.begin(), Turn(2)); thrust::tuple<float, float> t = turned[1]; printf("%g %g\n", thrust::get<0>(t), thrust::get<1>(t));
}
"""
# (-1, 0) is turned to 0, (0, 2) and (1, 4) by 3; their dot product; x + y; halves and numbers from 5 on, least and greatest
RESULTS_PRINTS = """0 0, -6 0, -12 3, 3 4
-1 2 5 2.5 5 3 6 3.5 7 -7 7
-8 6
"""
WRITTEN = r"""
#include <thrust/device_vector.h>
#include <thrust/for_each.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <cstdio>
struct Saxpy { float a; __host__ __device__ void operator()(thrust::tuple<float&, float&> t) const { thrust::get<1>(t) += a * thrust::get<0>(t); } };
struct Index { template <typename Tuple> __host__ __device__ void operator()(Tuple t) { thrust::get<1>(t) = 10 * thrust::get<0>(t); } };
struct Say { __host__ __device__ void operator()(const thrust::tuple<float, float>& t) const { printf("%g-%g ", thrust::get<0>(t), thrust::get<1>(t)); } };
int main() { thrust::device_vector<float> x(2, 3.0f), y(2, 1.0f); thrust::device_vector<int> n(2);
 auto b = thrust::make_zip_iterator(x.begin(), y.begin()); thrust::for_each(b, b + 2, Saxpy{2}); printf("%g\n", (float)y[1]);
 auto c = thrust::make_zip_iterator(thrust::make_tuple(thrust::counting_iterator<int>(5), n.begin())); thrust::for_each(c, c + 2, Index()); printf("%d\n", (int)n[1]);
 thrust::for_each(b, b + 2, Say()); puts("");
 thrust::for_each(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(3), [] __device__ (int i) { printf("%d ", i); }); puts("");
}
"""


@pytest.mark.parametrize(
    ("text", "prints"),
    [(RESULTS, RESULTS_PRINTS), (WRITTEN, "7\n60\n3-7 3-7 \n0 1 2 \n")],
    ids=["results", "written through a tuple"],
)
def test_tuples(text, prints, tmp_path):
    (tmp_path / "p.cu").write_text(text)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.output, report.findings) == (prints, []), report.message
