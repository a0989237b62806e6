"""Lifetimes of objects, moves, and overload resolution of templates: as g++ prints it."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import shutil
import subprocess

import pytest

from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

LOCAL_CLASSES = r"""
#include <cstdio>
int kept(int n) { struct P { int v; } p; p.v = n; if (n > 0) kept(n - 1); return p.v; }
int g(int n) { struct { int v; } p = {n}; if (n > 0) g(n - 1); return p.v; }
struct D { ~D() { printf("~D\n"); } };
void h() { struct E { D d; int k; } e; e.k = 1; printf("h %d\n", e.k); }
int f(int n) { enum { A, B, C } e = B; enum Kind { K1 = 5, K2 } k, *pk = &k; *pk = K2; if (n) { e = C; f(n - 1); } return e * 10 + k; }
int main() { printf("%d %d\n", kept(3), g(3)); h(); h();
  static struct { int v; } s = {4}; struct S { int a[3]; S() : a{1, 2, 3} {} int sum() const { return a[0] + a[1] + a[2]; } } x, *y = &x, z[2];
  y->a[0] = 10; for (int i = 0; i < 2; i++) { struct { int c = 7; } q; q.c += i; printf("%d ", q.c); }
  struct { float x, y; } pts[2] = {{1, 2}, {3, 4}}; union { int i; float f; } u; u.f = 1.0f;
  const struct { int w, h; } dims = {3, 4}; typedef struct { int t; } T; T tt = {9};
  printf("%d %d %d %d %g %d %d %d %d\n", f(0), f(1), x.sum(), z[1].sum(), pts[1].y, u.i, dims.w * dims.h, tt.t, s.v); }
"""
EXIT = r"""
#include <cstdio>
#include <cstdlib>
struct N { const char* n; N(const char* n) : n(n) { printf("+%s\n", n); } ~N() { printf("-%s\n", n); } };
N file("file");
void last() { printf("last\n"); }
void before() { printf("before\n"); static N late("late"); }
N& one() { static N n("function"); return n; }
int main() { N local("local"); std::atexit(last); one(); atexit(before); { N inner("inner"); } if (one().n) exit(3); }
"""
QUICK_EXIT = EXIT.replace("exit(3)", "{ fflush(stdout); _Exit(3); }")
MOVES = r"""
#include <cstdio>
#include <utility>
#include <vector>
#include <string>
struct M { int v; M(int v) : v(v) { printf("make %d\n", v); } M(const M& o) : v(o.v) { printf("copy %d\n", v); }
  M(M&& o) noexcept : v(o.v) { printf("move %d\n", v); o.v = -1; } ~M() { printf("end %d\n", v); }
  M& operator=(const M& o) { v = o.v; printf("assign %d\n", v); return *this; } M& operator=(M&& o) noexcept { v = o.v; o.v = -2; printf("take %d\n", v); return *this; } };
int main() {
  std::vector<M> v; v.reserve(8); v.emplace_back(1); M two(2); v.push_back(two); v.push_back(M(3)); v.push_back(std::move(two)); v.emplace_back(v[0]); M& back = v.emplace_back(9);
  printf("%d %zu\n", back.v, v.size()); v.pop_back(); v.erase(v.begin());
  std::vector<M> small; small.emplace_back(11); small.emplace_back(12); small.emplace_back(13); printf("grown\n");
  std::vector<std::pair<int, std::string>> p; p.emplace_back(1, "one"); p.emplace_back(2, std::string("two")); printf("%s %s\n", p[0].second.c_str(), p[1].second.c_str());
}
"""
STRINGS = r"""
#include <cstdio>
#include <vector>
#include <string>
#include <map>
#include <utility>
struct P { int a; std::string s; P(int a, const std::string& s) : a(a), s(s) {} };
int main() { std::vector<std::string> v; v.emplace_back("x"); std::vector<P> p; p.emplace_back(1, "one"); printf("%s\n", p[0].s.c_str());
 std::pair<int, std::string> q(1, "one"); std::pair<int, std::string> r = {2, "two"}; std::pair<int, std::string> t = std::make_pair(3, "three"); printf("%s %s %s\n", q.second.c_str(), r.second.c_str(), t.second.c_str());
 std::vector<std::pair<int, std::string>> w; w.push_back({5, "five"}); w.push_back(std::make_pair(6, "six")); printf("%s\n", w[1].second.c_str()); w.emplace_back(1, "one");
 std::map<std::string, int> m; m.insert({"a", 1}); m.insert(std::make_pair("b", 2)); m.emplace("c", 3); printf("%zu %d\n", m.size(), m["c"]); }
"""
VECTORS = r"""
#include <cstdio>
#include <vector>
#include <string>
#include <stack>
#include <queue>
#include <deque>
struct R { std::string s; int k; ~R() { if (k) printf("~%s ", s.c_str()); } };
int main() {
  std::vector<R> v(3); for (int i = 0; i < 3; i++) { v[i].s = std::to_string(i); v[i].k = 1; } v.resize(1); printf("| "); v.pop_back(); printf("| %zu\n", v.size());
  std::vector<int> w; for (int i = 0; i < 100; i++) w.push_back(i); for (int i = 0; i < 50; i++) w.pop_back(); w.push_back(7); w.insert(w.begin() + 3, 99); w.erase(w.begin()); printf("%d %d %zu\n", w[2], w.back(), w.size());
  std::stack<int> st; for (int i = 0; i < 10; i++) st.push(i); int t = 0; while (!st.empty()) { t = t * 3 + st.top(); st.pop(); } printf("%d\n", t);
  std::deque<int> d; d.push_front(3); d.push_back(4); d.pop_front(); printf("%d\n", d[0]);
  std::vector<std::vector<float>> m; m.push_back(std::vector<float>(4, 1.5f)); m.emplace_back(3, 2.5f); m.resize(5); m[4].push_back(1); printf("%g %zu %g\n", m[1][2], m[2].size(), m[4][0]);
  std::vector<int> c = w; c.clear(); c.assign(4, 2); std::vector<int> e; e.reserve(10); e = c; e.swap(w); printf("%d %zu %zu\n", e[0], w.size(), e.size()); w.shrink_to_fit();
  std::vector<bool> f(3, true); f.push_back(false); printf("%d%d\n", (int)f[2], (int)f[3]);
}
"""
QUEUES = r"""
#include <cstdio>
#include <queue>
#include <functional>
#include <string>
#include <utility>
#include <vector>
struct N { int v; std::string s; bool operator<(const N& o) const { return v % 5 < o.v % 5; } };
void more() { std::queue<N> q; for (int i = 0; i < 10; i++) q.push(N{i, std::to_string(i * i)}); int t = 0; while (q.size() > 2) { N n = q.front(); q.pop(); t = t % 9999 * 7 + n.v + (int)n.s.size(); if (n.v % 3 == 0 && n.v < 20) q.push(N{n.v + 20, "x"}); }
  std::queue<N> r = q; printf("%d %zu %s %d\n", t, r.size(), r.front().s.c_str(), q.back().v); std::queue<std::pair<int, int>> p; p.push({1, 2}); p.emplace(3, 4); p.push(std::make_pair(5, 6)); p.pop(); printf("%d %d %d\n", p.front().second, p.back().first, (int)p.empty());
  std::priority_queue<N> ties; for (int i = 0; i < 40; i++) { ties.push(N{i * 7 % 41, "n"}); if (i % 4 == 3) { printf("%d ", ties.top().v); ties.pop(); } } while (!ties.empty()) { printf("%d ", ties.top().v); ties.pop(); }
  std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<std::pair<int, int>>> least; least.push({3, 1}); least.emplace(1, 9); least.push({2, 2}); printf("%d\n", least.top().second); }
int main() { more(); std::queue<int> q; q.push(1); long s = 0; int n = 0; while (!q.empty()) { int x = q.front(); q.pop(); s += x; if (n < 300000) { q.push(x + 1); q.push(x % 7); n += 2; } } printf("%ld\n", s);
 std::priority_queue<int> p; for (int i = 0; i < 100000; i++) p.push((i * 7919) % 100003); long t = 0; while (!p.empty()) { t = t % 99999 * 3 + p.top(); p.pop(); } printf("%ld\n", t); }
"""
SLICES = r"""
#include <cstdio>
struct Base { int a; Base(int a = 0) : a(a) {} Base(const Base& o) : a(o.a + 100) { printf("copy base\n"); } virtual const char* who() const { return "base"; } virtual ~Base() {} };
struct Derived : Base { int b; Derived(int a, int b) : Base(a), b(b) {} const char* who() const override { return "derived"; } };
struct Plain { int x, y; }; struct More : Plain { int z; };
int by_value(Base b) { printf("%s %d\n", b.who(), b.a); return b.a; }
int plain(Plain p) { return p.x + p.y; }
Base made() { Derived d(5, 6); return d; }
int main() { Derived d(1, 2); by_value(d); Base b = d; Base c(d); b = d; printf("%s %s %d %d\n", b.who(), c.who(), b.a, c.a); Base& r = d; printf("%s\n", r.who());
  More m; m.x = 3; m.y = 4; m.z = 5; Plain p = m; p = m; printf("%d %d %d\n", plain(m), p.x, p.y); printf("%d\n", made().a); const Base& k = Derived(7, 8); printf("%s %d\n", k.who(), k.a);
  struct Left { int l; }; struct Right { int r, q; }; struct Both : Left, Right { int o; }; Both w; w.l = 1; w.r = 2; w.q = 3; w.o = 4; Right right = w; Left left; left = w; right = w; printf("%d %d %d\n", right.r, right.q, left.l);
  Base list[2] = {d, b}; printf("%d %s\n", list[0].a, list[0].who()); }
"""
ALIASES = r"""
#include <cstdio>
#include <vector>
#include <map>
template <class T> using Vec = std::vector<T>;
template <class T> using Named = std::map<int, T>;
template <class T, int N> struct Fixed { T v[N]; int size() const { return N; } };
template <class T> using Three = Fixed<T, 3>;
template <class T> using Pointer = T*;
template <class T> T sum(const Vec<T>& v) { T s = 0; for (auto x : v) s += x; return s; }
template <class T> T sum(const Three<T>& v) { T s = 0; for (int i = 0; i < v.size(); i++) s += v.v[i]; return s; }
template <class T> T first(Pointer<T> p) { return *p; }
template <class T> int count(const Named<T>& m) { return (int)m.size(); }
template <class T> void fill(Vec<Vec<T>>& rows, T x) { for (auto& r : rows) for (auto& y : r) y = x; }
int main() { Vec<int> v{1, 2, 3}; std::vector<double> w{1.5, 2}; Three<float> t{{1, 2, 4}}; int k = 8; Named<char> m; m[3] = 'x';
  Vec<Vec<float>> rows(2, Vec<float>(2)); fill(rows, 2.5f); printf("%d %g %g %d %d %g\n", sum(v), sum(w), sum(t), first(&k), count(m), rows[1][1]); }
"""
VIEWS = r"""
#include <string_view>
#include <string>
#include <cstdio>
#include <iostream>
#include <iomanip>
#include <vector>
#include <map>
class Timer { std::string_view name; int n = 0; public: Timer(std::string_view s); explicit Timer(std::string_view s, int k) : name(s), n(k) {} ~Timer() { std::printf("%s done %d\n", name.data(), n); } std::string_view get() const { return name; } };
Timer::Timer(std::string_view s) : name(s) {}
constexpr std::string_view GREETING = "hello";
static constexpr std::string_view NAMES[] = {"naive", "tiled", "cublas"};
struct Case { std::string_view name; int size; };
size_t count(std::string_view s, char c) { size_t n = 0; for (char x : s) n += x == c; return n; }
std::string_view trim(std::string_view s) { while (!s.empty() && s.front() == ' ') s.remove_prefix(1); while (!s.empty() && s.back() == ' ') s.remove_suffix(1); return s; }
int main(int argc, char** argv) {
  Timer t("copy"), u{"launch", 3}; std::string owned = "a,b,,c"; const std::string& r = owned;
  std::cout << GREETING << ' ' << GREETING.size() << ' ' << t.get() << ' ' << count(owned, ',') << count("a,b", ',') << count(r, 'a') << '\n';
  std::cout << '[' << trim("  x y ") << "] [" << std::setw(6) << GREETING << "] [" << std::left << std::setw(6) << GREETING << "]\n";
  for (auto n : NAMES) std::cout << n << ' ';
  for (const auto& n : NAMES) std::cout << n.substr(1, 2) << ' ';
  Case cases[] = {{"one", 1}, {"two", 2}}; for (auto& c : cases) std::cout << c.name << c.size << ' ';
  std::cout << '\n';
  std::string_view v = owned; std::string copy(v), other = std::string(v.substr(2)), third{v}; owned = "z"; std::cout << copy << ' ' << other << ' ' << third.size() << '\n';
  std::string_view w = copy; std::cout << (w == "a,b,,c") << ("a" == w) << (w == copy) << (copy == w) << (w != other) << (w < "b") << (w.compare("a") > 0) << (w == GREETING) << '\n';
  std::cout << w.find(',') << ' ' << w.find(",,") << ' ' << w.rfind(',') << ' ' << (w.find("q") == std::string_view::npos) << ' ' << w.find_first_of("bc") << ' ' << w.find_last_not_of("c,") << ' ' << w.find_first_not_of('a') << '\n';
  std::vector<std::string_view> parts; size_t at = 0, to; while ((to = w.find(',', at)) != w.npos) { parts.push_back(w.substr(at, to - at)); at = to + 1; } parts.emplace_back(w.substr(at)); for (auto p : parts) std::cout << '<' << p << '>'; std::cout << parts.size() << '\n';
  std::map<std::string_view, int> m; m["b"] = 2; m["a"] = 1; for (auto& [k, x] : m) std::cout << k << x; std::cout << '\n';
  copy = GREETING; copy += trim(" q "); copy.append(GREETING.substr(3)); copy += "s"; copy += std::string("t"); std::cout << copy << GREETING.find_last_not_of('o') << GREETING.rfind('l', 2) << GREETING.rfind("l") << GREETING.find("") << "\n"; w = copy;
  printf("%.*s\n", (int)w.size(), w.data()); std::string_view e; std::cout << e.empty() << e.size() << e << '\n';
  std::string_view arg = argc > 1 ? argv[1] : "none"; std::cout << arg << (arg == "none" ? "!" : "?") << '\n';
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here to compare with")
@pytest.mark.parametrize("text", [LOCAL_CLASSES, EXIT, QUICK_EXIT, MOVES, STRINGS, VECTORS, QUEUES, SLICES, ALIASES, VIEWS],
                         ids=["local classes", "exit", "_Exit", "moves", "strings", "vectors", "queues", "slices", "aliases", "views"])  # fmt: skip
def test_it_prints_what_a_compiler_prints(text, tmp_path):
    program, built = tmp_path / "program.cu", str(tmp_path / "real")
    program.write_text(text)
    subprocess.run(["g++", "-std=c++17", "-w", "-x", "c++", str(program), "-o", built], check=True)
    real = subprocess.run([built], capture_output=True, check=False)
    report = run_program(program, capture=True)
    assert (report.output, report.status) == (real.stdout.decode(), real.returncode), report.message
    assert report.findings == []
