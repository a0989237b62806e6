"""Methods called on invalid objects: reported at the line of the call, without a crash of the process."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(4)  # each program is compiled in a process, 0.2 to 2 s

HEAD = """#include <cstdio>
#include <cstdlib>
#include <stack>
#include <string>
#include <vector>
struct M { int w; std::string s; std::vector<int> v; void set(int x) { w = x; } int get() const { return w; } };
int main() {
"""
FAULTS = {
    "std::vector<int>* p = nullptr; printf(\"%d\", (int)p->size());": "null-pointer",
    "M* p = nullptr; p->set(1);": "null-pointer",
    "M* p = (M*)0x7fff12345678; p->set(1);": "out-of-bounds",
    "M* p = nullptr; p -= 3; p->s += \"x\";": "out-of-bounds",
    "M* p = new M[3]; p[3].set(1); delete[] p;": "out-of-bounds",
    "M* p = new M; delete p; p->set(1);": "use-after-free",
    "M* p = (M*)malloc(8); p->v.push_back(1); free(p);": "small-allocation",
    "std::vector<std::string> v; v.pop_back(); v.resize(3);": "out-of-bounds",
    "std::vector<M> v(1); v.pop_back(); v.pop_back();": "out-of-bounds",
    "std::string s; s.pop_back();": "out-of-bounds",
    "std::stack<M> s; s.pop();": "out-of-bounds",
    "std::vector<M> v(2); v[2].set(1);": "out-of-bounds",
}  # fmt: skip


@pytest.mark.parametrize("statement", FAULTS)
def test_it_is_reported_at_its_line(tmp_path, statement):
    path = tmp_path / "wild.cu"
    path.write_text(HEAD + statement + "\n}\n")
    report = run_program(path, capture=True)
    assert report.ended in ("exit", "crash"), report.message
    assert (FAULTS[statement], 8) in [(str(f.kind.value), f.line) for f in report.findings]


def test_valid_objects_are_not_reported(tmp_path):
    path = tmp_path / "sound.cu"
    path.write_text(
        HEAD
        + "M a[2]; M* p = new M[2]; std::vector<M> v(2); std::vector<std::vector<M>> w(2, v); M& r = w[1][1];\n"
        + "for (int i = 0; i < 2; i++) { a[i].set(i); p[i].set(a[i].get()); v[i].set(p[i].get() + 1); w[i][1].set(v[i].get()); }\n"
        + 'v.pop_back(); v.pop_back(); r.s = "x"; r.s.pop_back(); p->v.push_back(3); printf("%d %zu", r.get() + p->v[0], v.size());\n'
        + "delete[] p;\n}\n"
    )
    report = run_program(path, capture=True)
    assert (report.findings, report.output, report.ended) == ([], "5 0", "exit")


BLAS = r"""#include <cublas_v2.h>
#include <cstdio>
int main() { cublasHandle_t h; cublasCreate(&h); float *d, *e, one = 1, zero = 0, r = 0; int i;
cudaMalloc(&d, 64); cudaMalloc(&e, 64); cudaMemset(d, 0, 64); cudaMemset(e, 0, 64);
int odd[] = {-1, 0, 1, 2, -2147483647, 2147483647, 65536};
for (int a : odd) for (int b : odd) {
  cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, a, b, 2, &one, d, 2, d, b, &zero, e, 2);
  cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, a, &one, d, b, d, 2, &zero, e, 2);
  cublasSgemv(h, CUBLAS_OP_N, a, b, &one, d, 2, d, 1, &zero, e, 1);
  cublasSgemv(h, CUBLAS_OP_T, 2, 2, &one, d, 2, d, a, &zero, e, b);
  cublasSaxpy(h, a, &one, d, b, e, 1); cublasSaxpy(h, 2, &one, d, a, e, b); cublasSdot(h, a, d, b, e, 1, &r);
  cublasSnrm2(h, a, d, b, &r); cublasSscal(h, a, &one, d, b); cublasSswap(h, 2, d, a, e, b); cublasScopy(h, 2, d, a, e, b);
  cublasSgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, a, b, &one, d, 2, &zero, e, 2, e, 2);
  cublasSgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, &zero, d, a, &one, e, b, e, 2);
  cublasIsamax(h, a, d, b, &i); }
puts("end"); }
"""


def test_sizes_and_strides_that_cublas_refuses_are_reported(tmp_path):
    path = tmp_path / "sizes.cu"
    path.write_text(BLAS)
    report = run_program(path, capture=True)
    assert report.ended in ("exit", "crash"), report.message
    assert {"argument", "out-of-bounds"} <= {str(f.kind.value) for f in report.findings}


ENDS = r"""
#include <cstdio>
#include <vector>
struct E {
  int v; int* p;
  E(int x) : v(x), p(new int(x)) { printf("+%d ", v); }
  E(const E& o) : v(o.v), p(new int(*o.p)) { printf("c%d ", v); }
  E(E&& o) : v(o.v), p(o.p) { o.p = nullptr; printf("m%d ", v); }
  ~E() { printf("-%d ", v); delete p; }
};
struct Held { int* p; Held() : p(new int(5)) {} ~Held() { delete p; } };  // with no copy of its own
E global(1);
Held held() { Held h; *h.p = 9; return h; }
E one(int x) { E t(x); if (x > 20) { t.v++; return t; } { E u(2); } return t; }
E two(int x) { E a(x), b(x + 1); if (x > 3) return a; return b; }
E again(int n) { for (int i = 0;; i++) { E t(i); if (i == n) return t; } }
E given(E p) { return p; }
E of_static() { static E s(3); return s; }
E by_reference(E& r) { E& s = r; return s; }
std::vector<int> kept() { static std::vector<int> s{1, 2, 3}; return s; }
int main() {
  Held h = held(); printf("%d\n", *h.p);
  E a = one(10), b = one(30), c = two(4), d = again(1); puts("");
  E e = given(a), f = of_static(), g = by_reference(a), l = [] { E t(40); return t; }(); puts("");
  kept(); printf("%d %d %d\n", *a.p, *of_static().p, (int)kept().size());
  return 0;
}
"""


def test_named_results_are_not_copied_and_statics_are_destroyed_at_exit(tmp_path):
    """As g++ prints it; an elided copy once was reported as a double free, and memory of a static as a leak."""
    (tmp_path / "p.cu").write_text(ENDS)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.findings == []
    assert report.output == (
        "+1 9\n"
        "+10 +2 -2 +30 +4 +5 m4 -5 -4 +0 -0 +1 m1 -1 \n"
        "c10 m10 -10 +3 c3 c10 +40 \n"
        "c3 10 3 3\n"
        "-3 -40 -10 -3 -10 -1 -4 -31 -10 -3 -1 "
    )
