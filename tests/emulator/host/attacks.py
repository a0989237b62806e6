"""Programs that try to leave the checked memory or to execute injected code, by attack surface.

Each text is appended to HEAD. `W` is an unmapped address; `BASE` is the start of the program's memory, computed from the
address of a local variable. An attack succeeds if the process ends by a signal or prints ESCAPED. A text that begins
with "//ok" is a legal program; one that begins with "//quiet" does nothing that must be reported, and must be harmless."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

HEAD = r"""#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>
#include <pthread.h>
typedef unsigned long U;
volatile long W0 = 0x414141414141L;
#define W ((long)W0)
#define BASE(x) ((((U)&(x)) & ~0xfffUL) - 0x100000UL)
void escaped() { printf("ESCAPED\n"); }
"""

DECLARED = ", ".join(f"v{i} = n * {2 * i + 3} ^ (n >> {i % 31})" for i in range(150))
SUMMED = " + ".join(f"(v{i} ^ (r >> {i % 29}))" for i in range(150))

CALLBACKS = [
    "int main() { atexit((void (*)())W); return 0; }",
    "U mix(U x) { x *= 0xd2800bc8d28009a0UL; x ^= 0xd4000001d4000001UL; return x * 0x06eb900000004dbfUL; }\nint main(int argc, char** argv) { U (*f)(U) = mix; printf(\"%lx\\n\", f(argc)); for (int i = 2; i < 60; i++) atexit((void (*)())((char*)(void*)f + i)); return 0; }",
    "void f(long* p) { *p = 1; }\nstruct Big { long v[50]; };\nBig g() { Big b; b.v[0] = 1; return b; }\nint main() { Big (*p)() = g; atexit((void (*)())p); return 0; }",
    "int main() { int a[4] = {3, 2, 1, 0}; qsort(a, 4, 4, (int (*)(const void*, const void*))W); return 0; }",
    "struct Big { long v[100]; };\nBig f(const void* a, const void* b) { Big r; r.v[0] = (long)a; return r; }\nint main() { int a[4] = {3, 2, 1, 0}; qsort(a, 4, 4, (int (*)(const void*, const void*))f); return 0; }",
    "int main() { int a[4] = {0, 1, 2, 3}, k = 2; bsearch(&k, a, 4, 4, (int (*)(const void*, const void*))W); return 0; }",
    "int main() { pthread_t t; pthread_create(&t, 0, (void* (*)(void*))W, 0); return 0; }",
    "int main() { void (*f)() = (void (*)())W; std::thread t(f); t.join(); return 0; }",
    "int main() { cudaStream_t s; cudaStreamCreate(&s); cudaStreamAddCallback(s, (cudaStreamCallback_t)W, 0, 0); cudaDeviceSynchronize(); return 0; }",
    "int main() { cudaStream_t s; cudaStreamCreate(&s); cudaLaunchHostFunc(s, (void (*)(void*))W, 0); cudaDeviceSynchronize(); return 0; }",
    "struct R { long v; long w; };\nvoid f(R r) { printf(\"%ld\\n\", r.v); }\nint main() { void (*p)(long) = (void (*)(long))f; p(W); return 0; }",
    "struct A { long x; void f(long v) { x = v; } };\nint main() { auto p = &A::f; void (*q)(long, long) = (void (*)(long, long))p; q(W, 3); return 0; }",
    "struct A { static void f(long* p) { *p = 1; } };\nint main() { std::function<void(long*)> f = A::f; long* p = (long*)&f; for (int i = 0; i < (int)(sizeof f / 8); i++) p[i] = W; f(0); return 0; }",
    "long wide(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) { return a + b + c + d + e + f + g + h + i + j + k + l; }\nint main() { long (*p)(long) = (long (*)(long))wide; printf(\"%ld\\n\", p(1)); return 0; }",
    "struct O { long v; O() { v = 1; } ~O() { v = 2; } };\nvoid last() { printf(\"%d\\n\", 1); }\nint main() { atexit(last); atexit((void (*)())((char*)(void*)last + 4)); return 0; }",
    "long f(int n, ...) { va_list l; va_start(l, n); long s = va_arg(l, long); va_end(l); return s; }\nint main() { long (*p)(int, long*, long) = (long (*)(int, long*, long))f; printf(\"%ld\\n\", p(1, (long*)W, 1)); return 0; }",
    "int main() { std::sort((long*)W, (long*)W + 40); return 0; }",
]  # fmt: skip

FIND = "long buf[600], out[1200];\nlong* found[64];\nint many = 0;\nvoid copy(long* d, long* s, int n) { for (int k = 0; k < n; k++) d[k] = s[k]; }\nvoid find() { for (int i = 0; i < 600; i++) buf[i] = i; for (int i = 0; i < 1200; i++) out[i] = 0; copy(out, buf, 16); for (long i = -4096; i < 8192; i++) { long* q = (long*)(((U)out & ~63UL) + i * 8); if ((U)q >= (U)out && (U)q < (U)out + 9600) continue; if ((U)q >= (U)buf && (U)q < (U)buf + 4800) continue; if ((q[0] == (long)buf || q[0] == (long)out) && q[2] >= 0 && q[2] < 1000000 && many < 64) found[many++] = q; } }\n"
NEST = "float a[4096], b[4096], c[4096];\nvoid multiply(int n) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { float s = 0; for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j]; c[i * n + j] = s; } }\nvoid fill() { for (int i = 0; i < 4096; i++) a[i] = b[i] = 1; }\nlong* find() { long* r = 0; for (U q = ((U)a & ~63UL) - 0x10000; q < (U)c + 0x20000; q += 64) { if ((q >= (U)a && q < (U)(a + 4096)) || (q >= (U)b && q < (U)(b + 4096)) || (q >= (U)c && q < (U)(c + 4096))) continue; long* p = (long*)q; if (p[7] == 64 && p[6] == 0 && p[9] == 64) r = p; } return r; }\n"
RECORDS = [
    FIND + "int main() { long x = 0; find(); long* e = (long*)(BASE(x) + 0x80000 + 128); long now = e[0]; for (int i = 0; i < many; i++) { found[i][0] = 0; found[i][1] = -1; found[i][2] = now; } copy((long*)W, buf, 500); return 0; }",
    FIND + "int main() { long x = 0; find(); long* e = (long*)(BASE(x) + 0x80000 + 128); long now = e[0]; for (int i = 0; i < many; i++) { found[i][0] = 0; found[i][1] = -1; found[i][2] = now; } copy(out, (long*)W, 500); return 0; }",
    FIND + "int main() { long x = 0; find(); for (int i = 0; i < many; i++) { found[i][0] = W - 8; found[i][1] = W + 80000; } copy((long*)W, buf, 500); return 0; }",
    NEST + "int main() { long x = 0; fill(); multiply(64); long* p = find(); long now = ((long*)(BASE(x) + 0x80000 + 128))[0]; if (p) { p[0] = 1; p[1] = now; p[10] = W; } multiply(64); printf(\"%f\\n\", c[5]); return 0; }",
    NEST + "int main() { long x = 0; fill(); multiply(64); long* p = find(); long now = ((long*)(BASE(x) + 0x80000 + 128))[0]; if (p) { p[0] = 1; p[1] = now; p[11] = W / 64; } multiply(64); printf(\"%f\\n\", c[5]); return 0; }",
    "//quiet\nint main() { std::vector<long>& v = *new std::vector<long>(64, 1); long* p = (long*)&v; long w = W; for (int k = 0; k < 16; k++) { p[0 * k] = w; v[k] = 3; } return 0; }",
    "//quiet\nint main() { std::vector<long>& v = *new std::vector<long>(64, 1); long* p = (long*)&v; long w = W; long s = 0; for (int k = 0; k < 40; k++) { s += v[k]; p[k * 0] = w; } printf(\"%ld\\n\", s); return 0; }",
    "struct E { int a; long b; };\nstruct F { long f[4]; };\nstruct D : F, E { long c[8]; };\nint main() { long x = 0; U s = BASE(x) + 0x100000 + (64 << 20) + 0x100000; for (int i = 0; i < 3; i++) { try { D d; d.a = 1; d.b = 2; throw d; } catch (E& e) { e.b = 3; } catch (F g) { g.f[1] = 3; } for (U at = s; at < s + 0x8000; at += 8) if (*(long*)at == 32) *(long*)at = W; } try { D d; throw d; } catch (F g) { printf(\"%ld\\n\", g.f[3]); } return 0; }",
    "__global__ void k(float* a, U s, long w) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i == 0) for (U at = s; at < s + 0x8000; at += 8) if (*(long*)at == (long)a) { *(long*)at = 0; *(long*)(at + 8) = -1; } if (i >= 4096 && i < 4200) a[w + i] = 3; }\nint main() { long x; float* a; cudaMalloc(&a, 1 << 22); cudaMemset(a, 0, 1 << 22); k<<<16384, 256>>>(a, BASE(x) + 0x100000 + (64 << 20) + 0x100000, W / 4); cudaDeviceSynchronize(); return 0; }",
    "int twice(int n) { static int made = n * 2; return made; }\nint main() { long x; twice(3); U s = BASE(x) + 0x100000 + (64 << 20) + 0x100000; for (U at = s; at < s + 0x1000; at += 8) *(long*)at = W; printf(\"%d\\n\", twice(4)); return 0; }",
    "float a[4096], b[4096];\nvoid multiply(float* c, int n) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) c[i * n + j] += a[i * n + k] * b[k * n + j]; }\nint main() { for (int i = 0; i < 4096; i++) a[i] = b[i] = 1; multiply((float*)W, 64); return 0; }",
    FIND + "int main() { find(); copy(out, buf, 500); copy((long*)(~0UL - 63), buf, 16); return 0; }",
    FIND + "int main() { find(); copy(out, buf, 500); copy(out, (long*)(~0UL - 63), 16); return 0; }",
    "void set(long* d, long c, int n) { for (int k = 0; k < n; k++) d[c * k] = 3; }\nlong out[64];\nint main() { for (int i = 0; i < 64; i++) out[i] = 0; set(out, 1, 33); set(out, 1, 33); set(out, 1L << 56, 33); return 0; }",
    "typedef float Row[1L << 44];\nvoid add(Row* a, Row* b, float* c, int n) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { float s = 0; for (int k = 0; k < n; k++) s += a[i][k] * b[k][j]; c[i * n + j] = s; } }\nfloat m[4096], r[4096];\nint main() { for (int i = 0; i < 4096; i++) m[i] = 1; add((Row*)m, (Row*)m, r, 64); printf(\"%f\\n\", r[3]); return 0; }",
    "__global__ void k(float* a, long w) { int i = blockIdx.x * blockDim.x + threadIdx.x; a[i] = 1; if (i >= 8192 && i < 8256) a[w + threadIdx.x] = 3; }\nint main() { float* a; cudaMalloc(&a, 1 << 24); cudaMemset(a, 0, 1 << 24); k<<<16384, 256>>>(a, -((long)a / 4) - 4); cudaDeviceSynchronize(); return 0; }",
]  # fmt: skip

CONTROL = [
    "int f(int n) { int a[4]; for (int i = 0; i < 4; i++) a[i] = n; return a[n & 3]; }\nint main() { long x = 1; long* sp = (long*)(BASE(x) + 0x80000 + 64); *sp = W; printf(\"%d\\n\", f(2)); return 0; }",
    "int f(int n) { int a[4]; for (int i = 0; i < 4; i++) a[i] = n; return a[n & 3]; }\nint main() { long x = 1; long w = 0; memcpy((void*)(BASE(x) + 0x80000 + 64), &w, 8); printf(\"%d\\n\", f(2)); return 0; }",
    "int f(int n) { int a[4]; for (int i = 0; i < 4; i++) a[i] = n; return a[n & 3]; }\nint main() { long x = 1; memset((void*)(BASE(x) + 0x80000), 65, 256); printf(\"%d\\n\", f(2)); return 0; }",
    "struct P { long v[16]; P() { for (int i = 0; i < 16; i++) v[i] = W; } };\nint f(int n) { int a[4]; for (int i = 0; i < 4; i++) a[i] = n; return a[n & 3]; }\nint main() { long x = 1; new ((void*)(BASE(x) + 0x80000)) P; printf(\"%d\\n\", f(2)); return 0; }",
    "int f(int n) { int a[4]; for (int i = 0; i < 4; i++) a[i] = n; return a[n & 3]; }\nint main() { long x = 1; long* p = &x; for (long i = 0; i > -90000; i -= 1) p[i] = W; printf(\"%d\\n\", f(2)); return 0; }",
    "__global__ void k(long* p) { *p = 0x414141414141L; }\nint f(int n) { int a[4]; for (int i = 0; i < 4; i++) a[i] = n; return a[n & 3]; }\nint main() { long x = 1; k<<<1, 1>>>((long*)(BASE(x) + 0x80000 + 64)); cudaDeviceSynchronize(); printf(\"%d\\n\", f(2)); return 0; }",
    "int f(int n) { int a[4]; for (int i = 0; i < 4; i++) a[i] = n; return a[n & 3]; }\nint main() { long x = 1; FILE* h = fopen(\"own.txt\", \"w+\"); if (!h) return 0; for (int i = 0; i < 256; i++) fputc('A', h); rewind(h); fread((void*)(BASE(x) + 0x80000), 1, 256, h); fclose(h); printf(\"%d\\n\", f(2)); return 0; }",
]  # fmt: skip

PLACEMENT = [
    "struct R { long a; R(long x) { a = x; } };\nint main() { new ((void*)W) R(4); return 0; }",
    "int main() { long* p = new ((void*)W) long(4); printf(\"%ld\\n\", *p); return 0; }",
    "struct R { long a[4]; };\nint main() { new ((void*)W) R{{1, 2, 3, 4}}; return 0; }",
    "int main() { new ((void*)W) std::string(\"abc\"); return 0; }",
    "struct B { virtual void f() {} };\nint main() { new ((void*)W) B; return 0; }",
    "struct R { long a; R(long x) { a = x; } };\nint main() { new ((void*)0) R(4); return 0; }",
    "struct R { long a; R(long x) { a = x; } };\nint main() { R* r = new R(1); delete r; new (r) R(4); return 0; }",
    "struct R { long a[1000]; R() { for (int i = 0; i < 1000; i++) a[i] = 7; } };\nint main() { char* m = (char*)malloc(16); new (m) R; return 0; }",
    "//ok\nstruct R { long a; R(long x) { a = x; } };\nint main() { char room[sizeof(R) * 2]; R* r = new (room) R(4); R* q = new (room + sizeof(R)) R(5); void* m = malloc(sizeof(std::string)); std::string* s = new (m) std::string(\"xy\"); printf(\"%ld %ld %s\\n\", r->a, q->a, s->c_str()); s->~basic_string(); free(m); return 0; }",
]  # fmt: skip

INTERNAL = [
    "int main() { __make((long*)W, 3L); return 0; }",
    "struct R { long a; R(long x) { a = x; } };\nint main() { __make((R*)W, 3L); return 0; }",
    "struct R { long a; ~R() { a = 3; } };\nint main() { __unmake((R*)W); return 0; }",
    "int main() { __drop((long*)W); return 0; }",
    "struct R { long a[50]; ~R() { a[3] = 3; } };\nint main() { R r; __drop(&r + 100000000); return 0; }",
    "int main() { __va_next((struct __va*)W); return 0; }",
    "int main() { __vprintf(\"%s %lx\\n\", (void*)W, 4); return 0; }",
    "int main() { char* p = __variadic(); printf(\"%p %ld\\n\", p, __variadic_count()); return 0; }",
    "long f(int n, ...) { va_list l; va_start(l, n); l.at = (char*)W; l.left = 4; vprintf(\"%ld %ld %ld\\n\", l); va_end(l); return 0; }\nint main() { f(1, 2L); return 0; }",
    "long f(int n, ...) { va_list l; va_start(l, n); l.left = 100000000; vprintf(\"%ld %ld %ld\\n\", l); va_end(l); return 0; }\nint main() { f(1, 2L); return 0; }",
    "int main() { __vector_free((void*)W); __vector_size((void*)W, 100, 0); return 0; }",
    "__global__ void k(long* p) { __wait(77); p[0] = 1; }\nint main() { long* p; cudaMalloc(&p, 8); k<<<1, 32>>>(p); cudaDeviceSynchronize(); return 0; }",
    "#define MK __ma##ke\nint main() { MK((long*)W, 3L); return 0; }",
    "extern \"C\" int mprotect(void*, unsigned long, int);\nint main() { printf(\"%d\\n\", mprotect((void*)W, 4096, 7)); return 0; }",
    "extern \"C\" int __vprintf(const char*, long*, long);\nint main() { __vprintf(\"%s\\n\", (long*)W, 3); return 0; }",
    "extern \"C\" long rt_new(long, long, int, int);\nint main() { printf(\"%ld\\n\", rt_new(1, 2, 3, 4)); return 0; }",
    "int main() { long (*p)(long) = (long (*)(long))printf; p(W); return 0; }",
]  # fmt: skip

DELETES = [
    "struct R { long v; ~R() { W0 = v; } };\nint main() { delete (R*)W; return 0; }",
    "struct R { long v; ~R() { v = 3; } };\nint main() { delete[] (R*)W; return 0; }",
    "struct B { virtual ~B() {} long q; };\nint main() { delete (B*)W; return 0; }",
    "struct R { std::string s; };\nint main() { delete (R*)W; return 0; }",
    "struct R { long v; ~R() { v = 3; } };\nint main() { ((R*)W)->~R(); return 0; }",
    "struct R { long v; ~R() { v = 3; } };\nint main() { R* r = new R[3]; delete[] (r + 100000000); return 0; }",
    "struct R { long v[8]; ~R() { v[7] = 3; } };\nint main() { R* r = (R*)malloc(8); delete r; return 0; }",
    "struct R { long v; ~R() { v = 3; } };\nstruct S { R r[4]; };\nint main() { S* s = (S*)W; s->~S(); return 0; }",
    "struct R { long v; ~R() { v = 3; } };\nint main() { R* r = new R; r->~R(); delete r; delete r; return 0; }",
    "struct R { long v; ~R() { v = 3; } };\nint main() { std::unique_ptr<R[]> p((R*)W); p.reset(); return 0; }",
]  # fmt: skip

OBJECTS = [
    "int main() { std::vector<long> v(10, 1); long* p = (long*)&v; p[0] = W; p[1] = 10; p[2] = 800; v.push_back(3); return 0; }",
    "struct O { std::string s; long z; ~O() { z = 1; } };\nint main() { std::vector<O> v(3); long* p = (long*)&v; p[0] = W; p[1] = 200; v.clear(); return 0; }",
    "struct O { long z; ~O() { z = 1; } };\nint main() { std::unique_ptr<O> s(new O); long* p = (long*)&s; p[0] = W; s.reset(); return 0; }",
    "struct O { long z; ~O() { z = 1; } };\nint main() { std::shared_ptr<O> s = std::make_shared<O>(); long* p = (long*)&s; p[0] = W; p[1] = W; s.reset(); return 0; }",
    "int main() { std::string s = \"abc\"; long* p = (long*)&s; p[0] = W; p[1] = 5; s += \"defghijklmnopqrstuvwxyz\"; return 0; }",
    "int main() { std::map<int, int> m; m[1] = 2; long* p = (long*)&m; for (int i = 0; i < (int)(sizeof m / 8); i++) p[i] = W; m[2] = 3; return 0; }",
    "int main() { std::vector<long> v(10, 1); long* p = (long*)&v; p[1] = 1L << 60; v.resize(11); return 0; }",
    "int main() { std::vector<std::string> v(3, \"x\"); long* p = (long*)&v; p[1] = 300; v.clear(); return 0; }",
    "int main() { std::vector<long> v(10, 1); long* p = (long*)&v; p[0] = W; v.pop_back(); v.resize(3); v.insert(v.begin(), 4L); return 0; }",
    "int main() { std::vector<std::vector<long> > v(3, std::vector<long>(4, 1)); long* p = (long*)&v[1]; p[0] = W; p[1] = 100; std::vector<std::vector<long> > w = v; return 0; }",
    "int main() { long c = 5; auto f = [&c](long v) { c = v; }; *(long*)&f = W; f(3); return 0; }",
    "struct S { long m; void go() { auto f = [this](long v) { m = v; }; *(long*)&f = W; f(3); } };\nint main() { S s; s.go(); return 0; }",
    "struct R { long& r; R(long& x) : r(x) {} };\nint main() { long a = 1; R r(a); *(long*)&r = W; r.r = 4; return 0; }",
    "struct O { long z[20]; O() { z[0] = 1; } };\nint main() { std::vector<O> v(3); long* p = (long*)&v; p[0] = W; p[2] = 1000; v.emplace_back(); return 0; }",
    "//ok\nint main() { std::vector<std::string> v; for (int i = 0; i < 50; i++) v.push_back(std::to_string(i)); v.resize(20); v.insert(v.begin(), \"q\"); std::map<int, std::string> m; for (int i = 0; i < 9; i++) m[i] = v[i]; std::unique_ptr<std::string> u(new std::string(\"u\")); u.reset(); v.clear(); printf(\"%zu %s\\n\", v.size(), m[3].c_str()); return 0; }",
    "template <class T> struct vector { T* at; long n; T& operator[](long i) { return at[i]; } };\nint main() { vector<long>& v = *new vector<long>; v.at = (long*)W; for (int k = 0; k < 40; k++) v[k] = 3; return 0; }",
    "struct Big { long a[300000]; long last; Big() { last = 1; } };\nint main() { Big* b = (Big*)malloc(64); new (b) Big; b->last = 3; Big c = *b; printf(\"%ld\\n\", c.last); return 0; }",
    "struct B { long q; virtual void f() { q = 1; } };\nstruct D : B { long a[400000]; void f() { a[399999] = 3; } };\nint main() { D* d = new D; long x; B* b = (B*)((char*)BASE(x) + (1UL << 37) - 4096); memcpy(b, d, 16); ((long*)b)[0] = ((long*)d)[0]; ((long*)b)[1] = ((long*)d)[1]; b->f(); return 0; }",
]  # fmt: skip

KERNELS = [
    "struct R { long a; __device__ R(long x) { a = x; } };\n__global__ void k(long w) { new ((void*)w) R(4); }\nint main() { k<<<1, 1>>>(W); cudaDeviceSynchronize(); return 0; }",
    "struct R { long a; __device__ ~R() { a = 3; } };\n__global__ void k(long w) { ((R*)w)->~R(); }\nint main() { k<<<1, 1>>>(W); cudaDeviceSynchronize(); return 0; }",
    "struct R { long a[4]; __device__ void set(long v) { a[3] = v; } };\n__global__ void k(long w) { ((R*)w)->set(3); }\nint main() { k<<<1, 1>>>(W); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long w, long* p) { long a[4]; for (int i = 0; i < 4; i++) a[i] = i; a[w] = 3; p[0] = a[1]; }\nint main() { long* p; cudaMalloc(&p, 8); k<<<1, 32>>>(W, p); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long w, long* p) { __shared__ long s[32]; s[threadIdx.x] = 1; __syncthreads(); s[w + threadIdx.x] = 3; p[0] = s[1]; }\nint main() { long* p; cudaMalloc(&p, 8); k<<<300, 32>>>(W, p); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long w, long* p) { extern __shared__ long s[]; s[threadIdx.x] = 1; s[w + threadIdx.x] = 3; p[0] = s[1]; }\nint main() { long* p; cudaMalloc(&p, 8); k<<<300, 32, 1024>>>(W, p); cudaDeviceSynchronize(); return 0; }",
    "struct B { long v[40]; };\n__global__ void k(long w) { B b; b = *(B*)w; ((B*)w)[5] = b; }\nint main() { k<<<1, 1>>>(W); cudaDeviceSynchronize(); return 0; }",
    "__device__ void f(long n, long* p) { long a[8]; for (int i = 0; i < 8; i++) a[i] = n + i; __syncthreads(); if (n) f(n - 1, p); p[0] += a[n & 7]; }\n__global__ void k(long n, long* p) { f(n, p); __syncthreads(); }\nint main() { long* p; cudaMalloc(&p, 8); cudaMemset(p, 0, 8); k<<<1, 64>>>(100000, p); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long w, long* p) { atomicAdd((unsigned long long*)w, 3ULL); ((float4*)w)[threadIdx.x] = make_float4(1, 2, 3, 4); }\nint main() { long* p; cudaMalloc(&p, 8); k<<<2, 32>>>(W, p); cudaDeviceSynchronize(); return 0; }",
    "typedef long (*F)(long);\n__device__ long f(long x) { return x; }\n__global__ void k(long w, long* p) { F g = (F)w; p[0] = g(3); }\nint main() { long* p; cudaMalloc(&p, 8); k<<<1, 1>>>(W, p); cudaDeviceSynchronize(); return 0; }",
    "struct R { long a; __device__ R(long x) { a = x; } __device__ ~R() { a = 3; } };\n__global__ void k(long w) { R* r = new R(1); r = (R*)w; delete r; }\nint main() { k<<<1, 1>>>(W); cudaDeviceSynchronize(); return 0; }",
    "struct Big { long v[4]; };\n__global__ void k(Big b, long w, long* p) { ((long*)&b)[w] = 3; Big* q = &b; p[0] = q[w].v[2]; }\nint main() { long* p; cudaMalloc(&p, 8); Big b; for (int i = 0; i < 4; i++) b.v[i] = i; k<<<1, 32>>>(b, W, p); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long* p) { extern __shared__ long s[]; s[threadIdx.x] = 1; p[0] = s[1]; }\nint main() { long* p; cudaMalloc(&p, 8); k<<<20000, 256, (size_t)-8>>>(p); cudaDeviceSynchronize(); k<<<20000, 256, 1UL << 62>>>(p); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long* p) { p[0] = 1; }\nint main() { long* p; cudaMalloc(&p, 8); k<<<*(dim3*)W, 32>>>(p); cudaDeviceSynchronize(); return 0; }",
    "struct A { long v[200000]; };\n__global__ void k(A* a, long w) { A* b = (A*)w; b[threadIdx.x] = a[threadIdx.x]; a[1] = b[w]; }\nint main() { A* a; cudaMalloc(&a, 64); k<<<2, 32>>>(a, W); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long* p, long w) { asm volatile(\"st.global.u64 [%0], %1;\" :: \"l\"(w), \"l\"(w)); asm volatile(\"ld.global.u64 %0, [%1];\" : \"=l\"(p[0]) : \"l\"(w)); }\nint main() { long* p; cudaMalloc(&p, 8); k<<<1, 1>>>(p, W); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(long* p) { p[0] = 1; }\nint main() { void* given[1] = {(void*)W}; cudaLaunchKernel((const void*)k, dim3(1), dim3(1), given, 0, 0); cudaLaunchKernel((const void*)k, dim3(1), dim3(1), (void**)W, 0, 0); cudaDeviceSynchronize(); return 0; }",
]  # fmt: skip

TABLES = [
    "struct B { virtual int f() { return 1; } virtual ~B() {} long q; };\nstruct C : B { int f() { return 2; } };\nint main() { B* b = new C; *(long*)b = W; printf(\"%d\\n\", b->f()); return 0; }",
    "struct Big { long v[100]; };\nstruct A { virtual Big f(long x) { Big b; b.v[0] = x; return b; } };\nstruct B { virtual long f(long x) { return x; } };\nint main() { A a; B b; *(long*)&b = *(long*)&a; printf(\"%ld\\n\", b.f(W)); return 0; }",
    "struct A { virtual void f(long* p) { *p = 1; } virtual void h(double d) {} };\nstruct B { long q; virtual void f(long v) { q = v; } virtual long g(long* a, long b, long c) { return a[b] + c; } };\nint main() { A a; B b; *(long*)&b = *(long*)&a; b.f(W); return 0; }",
    "struct R { long v[4]; };\nstruct A { virtual long f(R r) { return r.v[3]; } };\nstruct B { virtual long f(long x) { return x; } };\nint main() { A a; B b; *(long*)&b = *(long*)&a; printf(\"%ld\\n\", b.f(W)); return 0; }",
    "struct A { virtual long f(long x) { return x; } };\nstruct C { virtual void a() {} virtual ~C() {} long big[400]; };\nint main() { A a; C c; *(long*)&a = *(long*)&c + 16; printf(\"%ld\\n\", a.f(W)); return 0; }",
    "struct A { long pad[1000]; virtual void f() { pad[999] = 3; } };\nstruct B { virtual void f() {} };\nint main() { A* a = new A; B* b = new B; for (int i = 0; i < 1001; i++) { long t = ((long*)a)[i]; if (t > 100000) { *(long*)b = t; break; } } b->f(); return 0; }",
    "//quiet\nstruct X { long x; virtual ~X() {} virtual void f() { x = 1; } };\nstruct Y { long y; virtual ~Y() {} virtual void g() { y = 1; } };\nstruct Z : X, Y { long z[100000]; void g() { z[99999] = 3; } };\nint main() { Z* z = new Z; Y* y = z; Y n; *(long*)((char*)&n) = *(long*)((char*)y); for (int i = 0; i < 4; i++) ((long*)&n)[0] = ((long*)y)[0]; n.g(); Y* m = &n; m->g(); return 0; }",
    "struct A { virtual void f() = 0; };\nint main() { A* a = (A*)calloc(1, 64); a->f(); return 0; }",
    "struct B { virtual int f() { return 1; } };\nint main() { B* b = (B*)W; printf(\"%d\\n\", b->f()); return 0; }",
    "//ok\nstruct A { virtual long f(long x) { return x; } virtual ~A() {} };\nstruct B { virtual long g(long x) { return x + 1; } virtual ~B() {} };\nstruct C : A, B { long k; C() : k(5) {} long f(long x) { return x + k; } long g(long x) { return x * k; } };\nint main() { C c; A* a = &c; B* b = &c; std::unique_ptr<B> u(new C); printf(\"%ld %ld %ld\\n\", a->f(1), b->g(2), u->g(3)); return 0; }",
]  # fmt: skip

EDGES = [
    "int main() { char* p = (char*)malloc(64); memset(p, 1, (size_t)-1); return 0; }",
    "int main() { char* p = (char*)malloc(64); char* q = (char*)malloc(64); memcpy(p, q, (size_t)1 << 63); memcpy(p, q, ~0UL - 100); memmove((void*)(~0UL - 8), p, 64); return 0; }",
    "int main() { long x; char* end = (char*)BASE(x) + (1UL << 37); for (long i = -80; i < 16; i += 4) *(int*)(end + i) = 3; return 0; }",
    "struct Big { char v[100]; };\nint main() { long x; Big b; memset(&b, 0, 100); *(Big*)((char*)BASE(x) + (1UL << 37) - 65) = b; return 0; }",
    "struct Big { char v[1L << 40]; };\nint main() { Big* b = (Big*)malloc(100); b->v[(1L << 40) - 1] = 3; Big* c = b + 1; c->v[0] = 1; return 0; }",
    "struct Z { int n; int a[0]; };\nint main() { Z z; z.n = 1; long w = W / 4; z.a[w] = 3; return 0; }",
    "struct Z { int n; int a[0]; };\nint main() { Z z; z.n = 1; long w = W / 4; printf(\"%d\\n\", z.a[w]); return 0; }",
    "extern int a[];\nint a[4] = {1, 2, 3, 4};\nint main() { long w = W / 4; a[w] = 3; return 0; }",
    "struct Big { long v[100000000]; };\nint main() { char c = 1; ((Big&)c).v[90000000] = 3; return 0; }",
    "struct Big { long v[100000000]; };\nint main() { char c = 1; Big& b = (Big&)c; b.v[90000000] = 3; printf(\"%ld\\n\", reinterpret_cast<Big&>(c).v[80000000]); return 0; }",
    "int main(int argc, char** argv) { int n = -argc; float a[n] = {0}; a[0] = 1; printf(\"%f\\n\", a[0]); return 0; }",
    "int main(int argc, char** argv) { long n = (1L << 61) + argc; double a[n]; a[0] = 1; a[5] = 2; return 0; }",
    "int main(int argc, char** argv) { long n = (1L << 61) + argc; double* a = new double[n](); a[4] = 1; return 0; }",
    "struct R { long v; R() { v = 1; } };\nint main(int argc, char** argv) { long n = (1L << 61) + argc; R* a = new R[n]; a[4].v = 1; return 0; }",
    "struct R { long v; R() { v = 1; } };\nint main(int argc, char** argv) { long n = -argc; R* a = new R[n]; return 0; }",
    "void f(long (&a)[10]) { a[3] = 1; }\nint main() { f(*(long(*)[10])W); return 0; }",
    "int f(int n) { volatile char b[1000]; b[n % 1000] = n; return f(n + 1) + b[3]; }\nint main() { printf(\"%d\\n\", f(0)); return 0; }",
    "long f(long a, long b, long c, long d) { long x[40]; long e = a * b, g = b * c, h = c * d, i = d * a, j = a + c, k = b + d; if (a == W) return 0; long r = f(a + 1, b + e, c + g, d + h); return r + e * g + h * i + j * k + a * b * c * d; }\nint main() { printf(\"%ld\\n\", f(1, 2, 3, 4)); return 0; }",
    "int main() { float *d; cudaMalloc(&d, 64); float h[16]; cudaMemcpy(h, d, (size_t)-4, cudaMemcpyDeviceToHost); cudaMemcpy(d, (void*)W, 64, cudaMemcpyHostToDevice); cudaMemset((void*)(~0UL - 8), 0, 64); cudaMemcpy2D(h, (size_t)1 << 62, d, 4, 4, 8, cudaMemcpyDeviceToHost); return 0; }",
    "int main() { char b[8]; sprintf(b, \"%s\", \"0123456789012345678901234567890123456789\"); snprintf((char*)W, 100, \"abc\"); return 0; }",
    "int main() { char* s = (char*)malloc(4); memset(s, 'a', 4); strcpy(s + 1, s); strncpy(s, \"abc\", (size_t)-1); strcat(s, s); return 0; }",
    "int main() { long* p = (long*)calloc((size_t)1 << 62, 8); long* q = (long*)realloc(0, (size_t)-8); if (p) p[5] = 1; if (q) q[9] = 1; return 0; }",
    "int main() { FILE* f = (FILE*)W; fprintf(f, \"x\"); return 0; }",
    "int main() { std::string s(3, 'x'); s.reserve(1UL << 62); s.append(1UL << 40, (char)65); return 0; }",
    "int main() { std::string s(3, 'x'); s.append((const char*)W, 10); printf(\"%s\\n\", s.c_str()); return 0; }",
    "int main() { int i = 0; goto in; { long a[10]; in: a[i + 1000000000] = 3; } return 0; }",
    "int main() { long a[10]; long* p = (long*)((U)a + (1UL << 37)); *p = 0x0303030303030303L; p[100000] = 3; return 0; }",
    "struct O { char v[200]; };\nint main() { long x; O o = *(O*)((char*)BASE(x) + (1UL << 37) - 100); printf(\"%d\\n\", o.v[3]); return 0; }",
    "#include <random>\nint main() { std::mt19937 g(3); unsigned x = g(); unsigned* p = (unsigned*)&g; for (U i = 0; i < sizeof g / 4; i++) p[i] = 0x7fffffff; long* q = (long*)&g; for (U i = 0; i < sizeof g / 8; i++) q[i] = W; x += g(); x += g(); printf(\"%u\\n\", x); return 0; }",
    "int main() { char first[0xffffff0000000000UL]; long second[4]; second[0] = 3; first[0] = 1; printf(\"%ld\\n\", second[0]); return 0; }",
    "struct A { char v[0x7fffffffffffff00L]; char w[0x7fffffffffffff00L]; long z; };\nA* a;\nint main() { a->z = 3; return 0; }",
    f"""long f(long n) {{ long {DECLARED}; if (n > 100000000) return 0; long r = f(n + 1); return r + {SUMMED}; }}
int main() {{ printf("%ld\\n", f(1)); return 0; }}""",
    "__global__ void k(long* p) { __shared__ long s[1024]; s[threadIdx.x] = 1; __syncthreads(); p[0] = s[1023 - threadIdx.x]; }\nlong f(long n, long* p) { char a[40]; a[n % 40] = n; if (n == 400000) { k<<<20000, 1024>>>(p); cudaDeviceSynchronize(); return a[3]; } return f(n + 1, p) + a[n % 40]; }\nint main() { long* p; cudaMalloc(&p, 8); printf(\"%ld\\n\", f(0, p)); return 0; }",
]  # fmt: skip

# what comes first must be reported, whatever the program does to its process, its output or its findings afterwards
FAULT = "long* volatile p = (long*)malloc(16); p[2] = 1; "
HIDDEN = [
    FAULT + text for text in (
        "exit(0);", "_Exit(0);", "_exit(0);", "quick_exit(0);", "abort();", "for (;;) {}", "throw 3;", "std::terminate();",
        "*(volatile int*)0 = 1;", "p[2] = 0; free(p); p = (long*)malloc(32); p[2] = 1;", "fclose(stdout); fclose(stderr);",
        "setvbuf(stdout, 0, _IONBF, 0); fclose(stdout); exit(0);",
        'for (int i = 0; i < 3000; i++) printf("\\033[2J\\033[H\\r\\b"); printf("no faults\\n");',
        'fprintf(stderr, "{\\"status\\": 0, \\"ended\\": \\"exit\\", \\"findings\\": []}\\n"); exit(0);',
        'FILE* f = fopen("/proc/self/fd/3", "w"); if (f) { fprintf(f, "{}"); fclose(f); }',
        'FILE* f = fopen("/dev/fd/4", "w"); if (f) { fprintf(f, "{\\"findings\\": []}"); fclose(f); }',
        'FILE* f = fopen("/proc/self/mem", "r+"); if (f) { fseek(f, 1 << 30, 0); fprintf(f, "0"); fclose(f); }',
        'for (int i = 0; i < 100; i++) { FILE* f = (FILE*)(long)i; fprintf(f, "{}"); }',
        "long x; volatile char* s = (volatile char*)((U)p + (1UL << 36) + (8UL << 20)); for (int i = 0; i < 64; i++) s[i] = 3;",
        "long x; long* e = (long*)(BASE(x) + (2UL << 36) + (12UL << 20)); e[0] = 0; e[16] = 0;",
        "for (;;) { char* q = (char*)malloc(1 << 20); memset(q, 1, 1 << 20); }",
        "long n = 0; for (;;) { new long(n++); }",
        'std::string s = "x"; for (;;) s += s;',
        'for (;;) printf("%0999d", 7);',
        "std::vector<std::thread> t; for (int i = 0; i < 9999; i++) t.emplace_back([] {}); for (auto& one : t) one.join();",
        "for (int i = 0; i < 2000; i++) { long* q = (long*)malloc(8); q[1] = 2; }",
        "cudaDeviceReset(); exit(0);", "atexit([] { _Exit(0); }); exit(0);", "atexit([] { for (;;) {} });",
        "try { throw 1; } catch (int) { _Exit(0); }",
    )
]  # fmt: skip
HIDDEN = [f"int main() {{ {text} return 0; }}" for text in HIDDEN] + [
    "struct O { ~O() { _Exit(0); } } late;\nint main() { " + FAULT + "return 0; }",
    "__global__ void k(int* p) { p[threadIdx.x] = 1; for (;;) {} }\nint main() { int* d; cudaMalloc(&d, 64); k<<<1, 32>>>(d); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(int* p) { p[threadIdx.x] = 1; }\nint main() { int* d; cudaMalloc(&d, 64); k<<<1, 32>>>(d); cudaDeviceReset(); cudaGetLastError(); return 0; }",
    '__global__ void k(int* p) { p[threadIdx.x] = 1; asm("trap;"); }\nint main() { int* d; cudaMalloc(&d, 64); k<<<1, 32>>>(d); cudaDeviceSynchronize(); return 0; }',
    "int f(int n) { volatile char b[4096]; b[n & 4095] = n; return f(n + 1) + b[0]; }\nint main() { "
    + FAULT
    + "return f(0); }",
]
COMPILING = [
    "#define A(x) x x x x x x x x\nint a[] = {A(A(A(A(A(A(A(A(A(A(1,))))))))))};\nint main() { return a[3]; }",
    '#include "hostile.cu"\nint main() { return 0; }',
    "#define F F1 F1\n"
    + "".join(f"#define F{i} F{i + 1} F{i + 1}\n" for i in range(1, 40))
    + "#define F40 +1\nint main() { return 0 F; }",
    "template <int N> struct T { static const long v = T<N - 1>::v + T<N - 2>::v; };\nint main() { return T<100000>::v; }",
    'template <class T> struct P { T a, b; };\ntemplate <int N> struct G { typedef P<typename G<N - 1>::t> t; };\ntemplate <> struct G<0> { typedef long t; };\nint main() { G<60>::t x; printf("%zu\\n", sizeof x); x.a = x.b; return 0; }',
    "constexpr long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nint main() { constexpr long v = f(70); static int a[f(60) & 7]; return v; }",
    "constexpr long f() { long s = 0; for (long i = 0; i < 1L << 60; i++) s ^= i; return s; }\nint main() { constexpr long v = f(); int a[v & 3]; return sizeof a; }",
    "int main() { return " + "(" * 20000 + "1" + ")" * 20000 + "; }",
    "int main() { int x = 1; return " + "-~" * 30000 + "x; }",
    "int main() { " + "{" * 5000 + "}" * 5000 + " return 0; }",
    "int main() { int x = 1; " + "if (x) " * 5000 + "x = 2; return x; }",
    "int main() { volatile int x = 1; int y = x"
    + " + x * y" * 1
    + "; "
    + "".join(f"y = (y ^ {i}) * x + (y >> {i % 31}); " for i in range(20000))
    + "return y; }",
    "int main() { volatile int x = 1; switch (x) { "
    + "".join(f"case {i * 7}: x = {i}; " for i in range(20000))
    + "} return x; }",
    "".join(
        f"int f{i}(int n) {{ return n < 2 ? n : f{i - 1}(n - 1) + f{i - 1}(n - 2); }}\n"
        if i
        else "int f0(int n) { return n; }\n"
        for i in range(3000)
    )
    + "int main() { return f2999(1); }",
    "".join(f"struct S{i} {{ S{i - 1} a, b; }};\n" if i else "struct S0 { long a; };\n" for i in range(80))
    + "int main() { S79* s = (S79*)malloc(8); S79 t = *s; return 0; }",
    "long a[1L << 33];\nint main() { return a[5]; }",
    "long a[] = {" + "1, " * 300000 + "};\nint main() { return a[5]; }",
    'const char* s = "' + "\\x41" * 400000 + '";\nint main() { return s[3]; }',
    "__global__ void k(int* p) { int x = p[0]; "
    + "".join(f"x = x * {i + 3} ^ p[{i % 8}]; " for i in range(6000))
    + "p[1] = x; }\nint main() { int* d; cudaMalloc(&d, 64); cudaMemset(d, 0, 64); k<<<1, 1>>>(d); cudaDeviceSynchronize(); return 0; }",
    "__global__ void k(int* p) { "
    + "".join(f"for (int i{n} = 0; i{n} < 3; i{n}++) " for n in range(60))
    + "p[0]++; }\nint main() { int* d; cudaMalloc(&d, 64); k<<<1, 1>>>(d); cudaDeviceSynchronize(); return 0; }",
    "int main() { auto f = " + "[] { return " * 400 + "1" + "; }" * 400 + "; return 0; }",
    "#if " + "(" * 20000 + "1" + ")" * 20000 + "\n#endif\nint main() { return 0; }",
    '#define S "'
    + "a" * 1000000
    + '"\n#define A S S S S S S S S\n#define B A A A A A A A A\nconst char* s = B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B;\nint main() { return s[0]; }',
    "#define J(a, b) a##b\n#define K(a, b) J(a, b)\n#define A0 x\n"
    + "".join(f"#define A{i} K(A{i - 1}, A{i - 1})\n" for i in range(1, 50))
    + "int A49;\nint main() { return 0; }",
    'template <class T, class U> struct Q { T a; };\ntemplate <int N> struct G { typedef Q<typename G<N - 1>::t, typename G<N - 1>::t> t; };\ntemplate <> struct G<0> { typedef long t; };\nint main() { G<50>::t x; printf("%zu\\n", sizeof x); return 0; }',
    "template <class T, class U> struct Q { };\ntemplate <class T> void f(int n, T) { if (n) { Q<T, T> q; f(n - 1, q); } }\nint main() { f(40, 1L); return 0; }",
    "template <int N> int f(int n) { return f<2 * N>(n) + f<2 * N + 1>(n); }\nint main() { return f<1>(3); }",
    "template <int A, int B> struct M { static const int v = M<A - 1, B>::v + M<A, B - 1>::v; };\ntemplate <int B> struct M<0, B> { static const int v = 1; };\ntemplate <int A> struct M<A, 0> { static const int v = 1; };\nint main() { return M<55, 55>::v; }",
    "auto f = [](auto g, auto x) { return g(g, x); };\nint main() { return f([](auto g, auto x) -> int { return g(g, &x); }, 1); }",
    "typedef int A0[9];\n"
    + "".join(f"typedef A{i} A{i + 1}[99];\n" for i in range(40))
    + "int main() { A40* p = (A40*)malloc(4); return sizeof *p > 5; }",
    "typedef int (*F0)();\n"
    + "".join(f"typedef F{i} (*F{i + 1})(F{i}, F{i});\n" for i in range(40))
    + "int main() { F40 f = 0; F40 g = f; return f == g; }",
    "int main() { int x = 3; " + "x = x ? x : " * 20000 + "1; return x; }",
    "int main() { double x = 1" + " * 1.0e300" * 20000 + "; return x > 0; }",
    "int main() { long x = " + "9" * 100000 + "; return x; }",
    "int main() { double x = 1e" + "9" * 100000 + "; float y = 0x1p-" + "9" * 5000 + "; return x > y; }",
    "enum E { "
    + "".join(f"e{i} = e{i - 1} * 2 + 1, " if i else "e0 = 1, " for i in range(20000))
    + "};\nint main() { return e19999 > 0; }",
    "constexpr long p(long b, long e) { return e ? b * p(b, e - 1) : 1; }\nint main() { constexpr long v = p(99999999, 100000); return v; }",
    'constexpr auto big() { unsigned long long s = 1; for (int i = 0; i < 100000; i++) s = s << 63 << 63; return s; }\nstatic_assert(big() == 0, "");\nint main() { static int a[1ULL << 62 << 1]; return a[0]; }',
    "#define S(x) #x\n#define T(x) S(x x x x)\nconst char* s = "
    + "T(" * 14
    + "abc"
    + ")" * 14
    + ";\nint main() { return s[0]; }",
]

SURFACES = {
    "callbacks": CALLBACKS, "records": RECORDS, "control": CONTROL, "placement": PLACEMENT, "internal": INTERNAL,
    "deletes": DELETES, "objects": OBJECTS, "kernels": KERNELS, "tables": TABLES, "edges": EDGES,
    "hidden": HIDDEN,
}  # fmt: skip
