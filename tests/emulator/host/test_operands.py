"""Operands of every kind in every place: lowered, or refused in a sentence."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

import seeds
from lowered_programs import lowered
from tilewise.emulator.host.process import run_program
from tilewise.errors import TilewiseError

PROGRAM = """
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>
struct S {{ int m; float v[3]; int get() const {{ return m; }} static int make(int q) {{ return q; }} S operator+(const S& t) const {{ return t; }} }};
enum E {{ red, green }};
enum class C {{ one, two }};
int f(int x) {{ return x; }}
int g(int x) {{ return x; }}
int g(double x) {{ return 2; }}
void v() {{}}
template <class T> T tf(T x) {{ return x; }}
__global__ void k(int* p, int n) {{ p[0] = n; }}
__constant__ int cc[4];
template <class T> void ht(T x) {{}}
template <class T> void hr(T& x) {{}}
template <class T> void hf(T&& x) {{}}
int main() {{
  S o{{}}; S* po = &o; int a[4] = {{1}}; float aa[2][3] = {{}}; int* p = a; int i = 3; bool b = true; double d = 1.5; int& r = i; void* vp = p; E e = red; C c2 = C::one; std::vector<int> w(3); auto lam = [i](int x) {{ return x + i; }};
  {}
  k<<<1, 1>>>(p, 1);
}}
"""
OPERANDS = 'f g v k tf &f o.get S::make o po a aa aa[1] p i b d r vp e c2 C::two w lam nullptr "text" 1 2.5f v() o.get() f(1) {1,2} {} S{1} cc w.size tf<int> std::move(i)'
PLACES = ["X;", "-X;", "!X;", "*X;", "&X;", "X + 1;", "1 - X;", "X / X;", "X[0];", "X.m;", "X->m;", "X();", "X(1);", "++X;", "X--;", "X = 1;", "i = X;", "p = X;", "o = X;", "X += 1;", "X < 1;", "X && b;", "b ? X : X;", "b ? X : 1;", "b ? o : X;", "(int)X;", "(void)X;", "(S)X;", "sizeof X;", "decltype(X) z = X;", "auto z = X;", "auto& z = X;", "auto [q, t] = X;", "throw X;", "switch (X) {}", "if (X) {}", "for (auto z : X) {}", "int z[X];", "int z{X};", "int z[2] = {X, X};", "S z{X};", "S z(X);", "float* z = X;", "std::vector<int> z(X);", "ht(X);", "hr(X);", "hf(X);", "std::swap(X, X);", "std::addressof(X);", 'printf("%d", X);', "new int(X);", "delete X;", "[z = X] { return 1; }();", "[&] { return X; }();", "k<<<X, 1>>>(p, 1);", "k<<<1, 1>>>(X, 1);", "X<<<1, 1>>>(p, 1);", "cudaMalloc(&X, 4);", "static_cast<double>(X);", "reinterpret_cast<long>(X);", "static int z = X;", "return X;", "w.push_back(X);", "a[X] = X;"]  # fmt: skip
FUNCTIONS = """
#include <cstdio>
#include <functional>
#include <memory>
int twice(int x) { return 2 * x; }
struct S { static int thrice(int x) { return 3 * x; } };
int main() {
  auto at = std::addressof(twice);
  auto kept = [g = twice](int x) { return g(x); };
  printf("%d %d %d %d", std::invoke(twice, 1), at(2), kept(3), std::invoke(S::thrice, 4));
}
"""


def test_every_operand_in_every_place_is_lowered_or_refused(tmp_path: Path) -> None:
    pairs = list(itertools.product(PLACES, OPERANDS.split(" ")))
    drawn = random.Random(seeds.next_seed()).sample(pairs, seeds.sample_size(80))
    for place, operand in [*drawn, ("auto [q, t] = X;", "f"), ("[z = X] { return 1; }();", "g")]:
        path = tmp_path / "p.cu"
        path.write_text(PROGRAM.format(place.replace("X", operand)))
        try:
            lowered(path)
        except TilewiseError:
            continue
        except Exception as error:
            pytest.fail(f"{place.replace('X', operand)}: {error!r}")


def test_functions_are_passed_and_kept_like_pointers(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(FUNCTIONS)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.message, report.output) == ("", "2 4 6 12")


@pytest.mark.parametrize("wrong", ["float* z = twice;", "int* z = true ? twice : (int*)0;"])
def test_a_function_is_no_address_of_data(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "p.cu"
    path.write_text(FUNCTIONS.replace("auto at", wrong + " auto at"))
    with pytest.raises(TilewiseError, match="twice"):
        lowered(path)
