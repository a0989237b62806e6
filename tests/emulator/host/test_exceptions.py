"""throw, try and catch on the host: handlers, destructors during unwinding, uncaught exceptions."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import shutil
import subprocess

import pytest

from tilewise.emulator.host.process import run_program

PROGRAM = r"""
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>
#include <algorithm>
#include <cstdio>
struct Noisy { int n; Noisy(int k) : n(k) { printf("make %d\n", n); } ~Noisy() { printf("drop %d\n", n); } };
class CudaError : public std::runtime_error { public: int code; CudaError(const std::string& m, int c) : std::runtime_error(m), code(c) {} };
struct Own : std::exception { const char* what() const noexcept override { return "own"; } };
struct Half { Noisy a; Noisy b; Half(int k) : a(k), b(k + 1) { if (k == 7) throw Own(); } };
int deep(int n) { Noisy a(n); if (n == 0) throw CudaError("bottom", 7); return deep(n - 1) + 1; }
int pick(int n) {
  try { if (n == 1) throw 5; if (n == 2) throw "text"; if (n == 3) throw 2.5; if (n == 4) throw std::string("s"); return 0; }
  catch (int i) { return i; } catch (const char* s) { return (int)s[0]; } catch (...) { return -1; }
}
int sum(const std::vector<int>& v) { int s = 0; for (int x : v) { if (x < 0) throw std::domain_error("negative"); s += x; } return s; }
int whole(int n) try { if (n) throw n; return 0; } catch (int k) { return 10 * k; } catch (...) { return -1; }
int main() try {
  printf("%d %d\n", whole(0), whole(4));
  try { deep(2); puts("never"); } catch (const CudaError& e) { std::cout << "caught " << e.what() << " " << e.code << std::endl; }
  try { try { deep(1); } catch (std::logic_error& e) { puts("no"); } } catch (std::exception& e) { std::cout << e.what() << std::endl; }
  for (int i = 0; i < 5; i++) std::cout << pick(i) << " ";
  std::cout << std::endl;
  try { try { throw std::invalid_argument("again"); } catch (const std::exception& e) { throw; } } catch (const std::logic_error& e) { puts(e.what()); }
  auto f = [](int x) -> int { return x > 1 ? throw std::out_of_range("lambda") : x; };
  for (int i = 0; i < 3; ++i) { try { printf("%d\n", f(i)); } catch (const std::exception& e) { puts(e.what()); continue; } puts("on"); }
  std::vector<int> v = {1, 2, 3};
  try { for (int x : v) { Noisy n(x); if (x == 2) throw x; } } catch (int x) { printf("x %d\n", x); }
  try { Own o; throw o; } catch (std::exception& e) { puts(e.what()); }
  try { Noisy before(90); sum(std::vector<int>{1, -2}); } catch (std::exception e) { puts("by value"); }
  try { std::sort(v.begin(), v.end(), [](int a, int b) { if (a + b == 3) throw a; return a > b; }); } catch (int) { puts("from a comparison"); }
  try { throw 1u; } catch (int) { puts("int"); } catch (unsigned) { puts("unsigned"); }
  int (*p)(int) = deep; try { p(0); } catch (...) { puts("through a pointer"); }
  if (sum({1, 2, 3}) == 6) throw std::underflow_error("out of main");
} catch (const std::underflow_error& e) { puts(e.what()); return 6; }
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here to compare with")
def test_exceptions_go_where_a_compiler_sends_them(tmp_path):
    source = tmp_path / "p.cu"
    source.write_text(PROGRAM)
    built = tmp_path / "p"
    subprocess.run(["g++", "-x", "c++", "-std=c++17", "-w", str(source), "-o", str(built)], check=True)
    real = subprocess.run([str(built)], capture_output=True, timeout=20)
    ours = run_program(source, capture=True)
    assert ours.ended == "exit", ours.message
    assert ours.output == real.stdout.decode()
    assert ours.status == real.returncode == 6
    assert ours.faults == []


CUDA = r"""
#include <stdexcept>
#include <cstdio>
__global__ void k(int* x) { x[threadIdx.x] = threadIdx.x; }
void check(cudaError_t e) { if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e)); }
int main() {
  int* d = 0; int h[4];
  try { check(cudaMalloc(&d, 16)); k<<<1, 4>>>(d); check(cudaGetLastError()); check(cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost)); printf("%d\n", h[3]); } catch (std::exception& e) { puts("never"); }
  cudaFree(d);
  try { k<<<1, 2048>>>(d); check(cudaGetLastError()); } catch (const std::exception& e) { printf("error: %s\n", e.what()); }
  check(cudaErrorInvalidValue);
}
"""


def test_errors_of_the_card_are_caught_and_the_last_one_ends_the_program(tmp_path):
    (tmp_path / "p.cu").write_text(CUDA)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.output == "3\nerror: invalid configuration argument\n", report.message
    assert report.ended == "abort"
    assert report.status == 134
    assert "what():  invalid argument" in (report.errors or "")
    assert "line 5: an exception ended the program" in report.message
