"""Wrong programs, one step beside those of test_never_proved_programs.py: sizes, names and calls of the host that only
look as if they stayed what they are, and kernels whose arithmetic only looks as if it did."""

from __future__ import annotations

import pytest

from proof_programs import (
    ARRAYS,
    GLOBAL,
    INSIDE,
    KERNEL,
    LAUNCH,
    MEETS,
    RIGHT,
    SHARED,
    SIZE,
    between,
    program,
    proof_of,
    sums,
)
from tilewise.emulator.prove.prove import Verdict

pytest.importorskip("z3")

GO = "void go(float* a, float* b, int n) "
WRONG = {
    "a size of the file by a reference": (
        program(f"{ARRAYS} grow(n); {LAUNCH}", before="int n = 1000;", between="void grow(int& k) { k += 3; }"),
            INSIDE),
    "a size of the file by another name": (
        program(f"{ARRAYS} int& r = n; r += 3; {LAUNCH}", before="int n = 1000;"), INSIDE),
    "a size of the file in parentheses": (program(f"{ARRAYS} (n) = 5000; {LAUNCH}", before="int n = 1000;"), INSIDE),
    "two sizes of the file swapped": (
        program(f"{ARRAYS} std::swap(n, m); {LAUNCH}", before="int n = 1000, m = 5000;"), INSIDE),
    "a size of the file by an address in a function": (
        program(f"{ARRAYS} grow(&n); {LAUNCH}", before="int n = 1000;", between="void grow(int* k) { *k += 3; }"),
            INSIDE),
    "a local size named as one of the file": (
        program(f"{ARRAYS} {{ int n = atoi(argv[1]); {LAUNCH} }}", before="const int n = 1000;"), INSIDE),
    "a parameter named as a size of the file": (
        program(f"{ARRAYS} go(a, b, atoi(argv[1]));", before="const int n = 1000;", between=GO + f"{{ {LAUNCH} }}"),
            INSIDE),
    "a macro and a local of its name elsewhere": (
        program("float *a, *b; cudaMalloc(&a, N * 4); cudaMalloc(&b, N * 4); go(a, b, atoi(argv[1]));", before=
            "#define "
            "N 1000", between="#undef N\nvoid go(float* a, float* b, int N) { move<<<(N + 255) / 256, 256>>>(a, "
            "b, N); }"), INSIDE),
    "a macro that is defined twice": (
        program("float *a, *b; make(&a, &b);", before="#define N 500", between="void make(float** p, float** q) "
            "{ float *a, *b; cudaMalloc(&a, N * 4); cudaMalloc(&b, N * 4);\n#undef N\n#define N 1000\nmove<<<(N "
            "+ 255) / 256, 256>>>(a, b, N); }"), INSIDE),
    "the other name keeps its value": (program(f"int m = 1000; int& n = m; {ARRAYS} m = 5000; {LAUNCH}"), INSIDE),
    "a name of an element": (
        program(f"int v[1]; v[0] = atoi(argv[1]); int& n = v[0]; {ARRAYS} v[0] = 5000; {LAUNCH}"), INSIDE),
    "two references of one number": (
        program("int k = 1000; float *a, *b; go(a, b, k, k);", between="void go(float* a, float* b, int& n, int& "
            "m) {" + ARRAYS.replace("float *a, *b;", "") + " m = 5000; " + LAUNCH + "}"), INSIDE),
    "a reference to a number of the file": (
        program("float *a, *b; go(a, b, g);", before="int g = 1000;", between="void go(float* a, float* b, int& n) {"
            + ARRAYS.replace("float *a, *b;", "") + " g = 5000; " + LAUNCH + "}"), INSIDE),
    "a const reference to a number of the file": (
        program("float *a, *b; go(a, b, g);", before="int g = 1000;", between="void go(float* a, float* b, const "
            "int& n) {" + ARRAYS.replace("float *a, *b;", "") + " g = 5000; " + LAUNCH + "}"), INSIDE),
    "a static size": (
        program("float *a, *b; go(); go();", between=f"void go() {{ const int m = 1000; static int n = m; float "
            f"*a, *b; cudaMalloc(&a, 4 * m); cudaMalloc(&b, 4 * m); {LAUNCH} n += 5; }}"), INSIDE),
    "a static size in a loop": (
        program(f"int m = atoi(argv[1]); for (int k = 0; k < 3; ++k) {{ static int n = m; float *a, *b; "
            f"cudaMalloc(&a, 4 * m); cudaMalloc(&b, 4 * m); {LAUNCH} n += 5; }}"), INSIDE),
    "an allocation behind &&": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4); argc > 1 && cudaMalloc(&b, 4 * "
            f"n); {LAUNCH}"), INSIDE),
    "an allocation in a conditional": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4); int e = argc > 1 ? "
            f"cudaMalloc(&b, 4 * n) : 0; {LAUNCH}"), INSIDE),
    "an allocation behind && of a check": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4); if (argc > 1 && cudaMalloc(&b, 4 "
            f"* n)) return 1; {LAUNCH}"), INSIDE),
    "an allocation in a lambda that is not called": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4); auto make = [&]() {{ "
            f"cudaMalloc(&b, 4 * n); }}; {LAUNCH}"), INSIDE),
    "a function that calls itself": (
        program(f"{SIZE} {ARRAYS} go(a, b, n);", between=GO + f"{{ {LAUNCH} if (n < 4000) go(a, b, 2 * n); }}"),
            INSIDE),
    "a function by its address": (
        program(f"{SIZE} {ARRAYS} void (*f)(float*, float*, int) = go; f(a, b, 2 * n); go(a, b, n);", between=GO +
            f"{{ "
            f"{LAUNCH} }}"), INSIDE),
    "a method by two calls": (
        program(f"{SIZE} {ARRAYS} Runner r; r.go(a, b, 2 * n); r.all(a, b, n);", between=f"struct Runner {{ {GO} "
            f"{{ {LAUNCH} }} void all(float* a, float* b, int n) {{ go(a, b, n); }} }};"), INSIDE),
    "a default that is a number of the file": (
        program("float *a, *b; cudaMalloc(&a, 4 * 100); cudaMalloc(&b, 4 * 100); go(a, b);", before="const int m "
            "= 100;", between="void go(float* a, float* b, int m = 200) { move<<<(m + 255) / 256, 256>>>(a, b, m); }"
            ), INSIDE),
    "std::tie": (
        program(f"int n = 1000, m = 5; {ARRAYS} std::tie(n, m) = std::make_tuple(5000, 1); {LAUNCH}", before=
            "#include "
            "<tuple>"), INSIDE),
    "std::from_chars": (
        program(f"{SIZE} {ARRAYS} std::from_chars(argv[1], argv[1] + 3, n); {LAUNCH}", before="#include <charconv>"),
            INSIDE),
    "a parameter pack": (
        program(f"int n = 1000, m = 0; {ARRAYS} grow(m, n); {LAUNCH}", between="template <class... T> void "
            "grow(T&... k) { ((k += 3), ...); }"), INSIDE),
    "a template's reference": (
        program(f"{SIZE} {ARRAYS} grow(n); {LAUNCH}", between="template <class T> void grow(T& k) { k += 3; }"),
            INSIDE),
    "a template's rvalue reference": (
        program(f"{SIZE} {ARRAYS} grow(n); {LAUNCH}", between="template <class T> void grow(T&& k) { k += 3; }"),
            INSIDE),
    "an assignment in a declaration, and another name": (
        program(f"int n = 3; int& r = n; int m = (n = 1000); {ARRAYS} r = 5000; {LAUNCH}"), INSIDE),
    "a step in a declaration": (between("int m = n++;"), INSIDE),
    "a step in an argument": (between("printf(\"%d\", n++);"), INSIDE),
    "the size by a method's reference": (
        between("Maker m; m.grow(n);", between="struct Maker { void grow(int& k) { k += 3; } };"), INSIDE),
    "the size by a constructor's reference": (
        between("Maker m(n);", between="struct Maker { Maker(int& k) { k += 3; } };"), INSIDE),
    "the size by an operator": (
        between("Maker m; m << n;", between="struct Maker { };  void operator<<(Maker& m, int& k) { k += 3; }"),
            INSIDE),
    "the size by a union": (program(f"union {{ int n; int m; }}; n = 1000; {ARRAYS} m = 5000; {LAUNCH}"), INSIDE),
    "a struct's size by its pointer": (
        program("Sizes s; s.n = 1000; Sizes* p = &s; float *a, *b; cudaMalloc(&a, 4 * s.n); cudaMalloc(&b, 4 * "
            "s.n); p->n = 5000; move<<<(s.n + 255) / 256, 256>>>(a, b, s.n);", before="struct Sizes { int n; };"),
            INSIDE),
    "a struct's size by a reference": (
        program("Sizes s; s.n = 1000; float *a, *b; cudaMalloc(&a, 4 * s.n); cudaMalloc(&b, 4 * s.n); grow(s); "
            "move<<<(s.n + 255) / 256, 256>>>(a, b, s.n);", before="struct Sizes { int n; }; void grow(Sizes& s) "
            "{ s.n = 5000; }"), INSIDE),
    "a struct assigned as a whole": (
        program("Sizes s, t; s.n = 1000; t.n = 5000; float *a, *b; cudaMalloc(&a, 4 * s.n); cudaMalloc(&b, 4 * "
            "s.n); s = t; move<<<(s.n + 255) / 256, 256>>>(a, b, s.n);", before="struct Sizes { int n; };"), INSIDE),
    "two launches, the second with more": (program(RIGHT + " n += 256; " + LAUNCH), INSIDE),
    "two kernels, one launch with more": (program(RIGHT + "move<<<(n + 255) / 256, 512>>>(a, b, 2 * n);"), INSIDE),
    "the float that rounds": (
        program(f"{SIZE} int m = (int)ceilf((float)(n * 1000) / 1024) * 1024; float *a, *b; cudaMalloc(&a, m * "
            f"sizeof(float)); cudaMalloc(&b, m * sizeof(float)); move<<<(m + 255) / 256, 256>>>(a, b, n * 1000);"),
            INSIDE),
    "ceil of a negative number": (
        program(f"{SIZE} int m = -(int)ceil((n - 1000) / 16.0); int k = -((n - 1000 + 15) / 16); float *a, *b; "
            f"cudaMalloc(&a, 4 * (m + n)); cudaMalloc(&b, 4 * (m + n)); move<<<(n + 255) / 256, 256>>>(a, b, n);",
            kernel="if (i < n) y[i] = x[i];"), INSIDE),
    "a size in a short": (
        program("short n = atoi(argv[1]); float *a, *b; cudaMalloc(&a, n * 2 * sizeof(float)); cudaMalloc(&b, n "
            "* 2 * sizeof(float)); short m = n * 3; move<<<(m + 255) / 256, 256>>>(a, b, m);"), INSIDE),
    "an unsigned size minus one": (
        program(f"unsigned n = atoi(argv[1]); {ARRAYS} move<<<(n + 255) / 256, 256>>>(a, b, n - 5);", kernel="if "
            "((unsigned)i < (unsigned)n) y[i] = x[i];"), INSIDE),
    "the size is shifted behind": (between("n <<= 1;"), INSIDE),
    "the other launch's template": (
        program(RIGHT.replace("move<<<", "move<256><<<") + LAUNCH.replace("move<<<", "move<128><<<")).replace(
            "__global__", "template <int B> __global__").replace(KERNEL, "__shared__ float s[B]; s[threadIdx.x] = "
            "1; if (i < n) y[i] = s[threadIdx.x];"), SHARED),
    "the first launch's template": (
        program(LAUNCH.join([SIZE + ARRAYS, ""]).replace("move<<<", "move<128><<<") + LAUNCH.replace("move<<<",
            "move<256><<<")).replace("__global__", "template <int B> __global__").replace(KERNEL, "__shared__ "
            "float s[B]; s[threadIdx.x] = 1; if (i < n) y[i] = s[threadIdx.x];"), SHARED),
    "another file's function": (program(f"{ARRAYS} grow(); {LAUNCH}", before="int n = 1000; void grow();"), INSIDE),
    "the array by a function of another file": (
        program("int n = 1000; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4 * n); grow(); " + LAUNCH, before="float "
            "*a, *b; void grow();"), INSIDE),
    "a structured binding": (
        program(f"{SIZE} {ARRAYS} auto [n, m] = std::make_pair(5000, 1); {LAUNCH}").replace(SIZE + " " + ARRAYS, SIZE
            + " " + ARRAYS + " {").replace("(a, b, n);", "(a, b, n); }"), INSIDE),
    "a range's variable": (program(f"{SIZE} {ARRAYS} for (int n : {{500, 5000}}) {LAUNCH}"), INSIDE),
    "a condition's variable": (program(f"{SIZE} {ARRAYS} if (int n = atoi(argv[1])) {LAUNCH}"), INSIDE),
    "a while condition's variable": (program(f"{SIZE} {ARRAYS} while (int n = atoi(argv[1])) {LAUNCH}"), INSIDE),
    "a switch's variable": (program(f"{SIZE} {ARRAYS} switch (argc) {{ default: int n = 5000; {LAUNCH} }}"), INSIDE),
    "a switch's value": (program(f"{SIZE} {ARRAYS} switch (int n = atoi(argv[1])) {{ default: {LAUNCH} }}"), INSIDE),
    "a lambda's parameter": (program(f"{SIZE} {ARRAYS} auto go = [&](int n) {{ {LAUNCH} }}; go(5000);"), INSIDE),
    "a lambda that is called behind": (
        program(f"{SIZE} {ARRAYS} auto go = [&]() {{ {LAUNCH} }}; n = 5000; go();"), INSIDE),
    "a comma before the launch": (program(f"{SIZE} {ARRAYS} n = 5000, {LAUNCH}"), INSIDE),
    "a call whose other argument changes the size": (
        program(f"{SIZE} {ARRAYS} go(a, b, (n = n + 5000));", between=GO + f"{{ {LAUNCH} }}"), INSIDE),
    "a call whose step changes the size": (
        program(f"{SIZE} {ARRAYS} n++; go(a, b, n++);", between=GO + f"{{ {LAUNCH} }}"), INSIDE),
    "a size of the file behind a local": (
        program(f"{{ int n = atoi(argv[1]); cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4 * n); }} {LAUNCH}", before=
            "const "
            "int n = 1000; float *a, *b;"), INSIDE),
    "a size of the file behind a local, arrays of main": (
        program(f"float *a, *b; {{ int n = atoi(argv[1]); cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4 * n); }} {LAUNCH}",
            before="const int n = 1000;"), INSIDE),
    "a variable of the file that another's beginning changes": (
        program(f"{ARRAYS} {LAUNCH.replace(', n)', ', n)')}", before="int m = 1000; int n = m; int k = (m = 5);").
            replace("sizeof(float)", "sizeof(float)").replace("cudaMalloc(&b, n *", "cudaMalloc(&b, m *"), INSIDE),
    "a constexpr and a change": (
        program(f"constexpr int n = 1000; {ARRAYS} move<<<(n + 255) / 256, 256>>>(a, b, n + argc);"), INSIDE),
    "a struct's constructor with its own size": (
        program(f"{SIZE} {ARRAYS} Maker m = n; {LAUNCH}", between="struct Maker { Maker(int& k) { k += 3; } };"),
            INSIDE),
    "a temporary with a reference": (
        program(f"{SIZE} {ARRAYS} Maker(n).go(); {LAUNCH}", between="struct Maker { int& k; Maker(int& k) : k(k) "
            "{} void go() { k += 3; } };"), INSIDE),
    "an object that keeps a reference": (
        program(f"{SIZE} Maker m{{n}}; {ARRAYS} m.k += 3; {LAUNCH}", between="struct Maker { int& k; };"), INSIDE),
    "an object that keeps a pointer": (
        program(f"{SIZE} Maker m{{&n}}; {ARRAYS} *m.k += 3; {LAUNCH}", between="struct Maker { int* k; };"), INSIDE),
    "a call of a function object": (
        program(f"{SIZE} {ARRAYS} Maker m; m(n); {LAUNCH}", between="struct Maker { void operator()(int& k) { k "
            "+= 3; } };"), INSIDE),
    "an address that a function keeps": (
        program(f"{SIZE} keep(&n); {ARRAYS} *kept = 5000; {LAUNCH}", before="int* kept; void keep(int* p) { kept "
            "= p; }"), INSIDE),
    "an address that a function returns": (
        program(f"{SIZE} int* kept = same(&n); {ARRAYS} *kept = 5000; {LAUNCH}", before="int* same(int* p) { "
            "return p; }"), INSIDE),
    "an address that a function of a function keeps": (
        program(f"{SIZE} outer(&n); {ARRAYS} *kept = 5000; {LAUNCH}", before="int* kept; void keep(int* p) { "
            "kept = p; } void outer(int* p) { keep(p); }"), INSIDE),
    "an address that a function of another file keeps": (
        program(f"{SIZE} keep(&n); {ARRAYS} change(); {LAUNCH}", before="void keep(int* p); void change();"), INSIDE),
    "a rectangle by its other side": (
        program("int h = 30, w = 40; float *a, *b; cudaMalloc(&a, h * w * 4); cudaMalloc(&b, h * w * 4); "
            "move<<<(h * w + 255) / 256, 256>>>(a, b, h, w);", kernel="if (i < h * w) { int r = i / h, c = i % "
            "h; y[r * w + c] = x[i]; }").replace("int n)", "int h, int w)"), INSIDE),
    "a rectangle's column moved": (
        program("int h = 30, w = 40; float *a, *b; cudaMalloc(&a, h * w * 4); cudaMalloc(&b, h * w * 4); "
            "move<<<(h * w + 255) / 256, 256>>>(a, b, h, w);", kernel="if (i < h * w) { int r = i / w, c = i % "
            "w; y[r * w + c + 1] = x[i]; }").replace("int n)", "int h, int w)"), INSIDE),
    "a rectangle transposed by the wrong side": (
        program("int h = 30, w = 40; float *a, *b; cudaMalloc(&a, h * w * 4); cudaMalloc(&b, h * w * 4); "
            "move<<<(h * w + 255) / 256, 256>>>(a, b, h, w);", kernel="if (i < h * w) { int r = i / w, c = i % "
            "w; y[c * w + r] = x[i]; }").replace("int n)", "int h, int w)"), INSIDE),
    "a row of a rectangle by all": (
        program("int h = 30, w = 40; float *a, *b; cudaMalloc(&a, h * w * 4); cudaMalloc(&b, h * 4); move<<<(h * "
            "w + 255) / 256, 256>>>(a, b, h, w);", kernel="if (i < h * w) { int r = i / w, c = i % w; y[r] = x[i]; }"
            ).replace("int n)", "int h, int w)"), GLOBAL),
    "a column of a rectangle by all": (
        program("int h = 30, w = 40; float *a, *b; cudaMalloc(&a, h * w * 4); cudaMalloc(&b, w * 4); move<<<(h * "
            "w + 255) / 256, 256>>>(a, b, h, w);", kernel="if (i < h * w) { int c = i % w; y[c] = x[i]; }").replace(
            "int "
            "n)", "int h, int w)"), GLOBAL),
    "a remainder in an array of the other side": (
        program("int h = 30, w = 40; float *a, *b; cudaMalloc(&a, h * w * 4); cudaMalloc(&b, h * 4); move<<<(h * "
            "w + 255) / 256, 256>>>(a, b, h, w);", kernel="if (i < h * w) { int c = i % w; if (i < w) y[c] = x[i]; }"
            ).replace("int n)", "int h, int w)"), INSIDE),
    "rows beyond the last": (
        program("int h = 30, w = 40; float *a, *b; cudaMalloc(&a, h * w * 4); cudaMalloc(&b, h * w * 4); "
            "move<<<(h * w + 255) / 256, 256>>>(a, b, h, w);", kernel="if (i <= h * w) { int r = i / w, c = i % "
            "w; y[r * w + c] = x[i]; }").replace("int n)", "int h, int w)"), INSIDE),
    "a remainder by one less": (program(kernel="if (i < n) y[i % (n - 1) + 1] = x[i];"), GLOBAL),
    "a remainder by nothing": (program(kernel="if (i < n) y[i] = x[(i % (n - 1)) * n];"), INSIDE),
    "a remainder by what is read": (program(kernel="if (i < n) y[i] = x[i % (int)x[0]];"), INSIDE),
    "a quotient of a negative number": (program(kernel="if (i < n) y[i] = x[(i - n) / n + 1 + n - 1];"), INSIDE),
    "a remainder of a negative number in one branch": (
        program(kernel="int k = i - 3; int c = i > 2 ? k % n : k / n * 2 - 1; if (i < n) y[i] = x[c];"), INSIDE),
    "a remainder whose number is negative for others": (
        program(kernel="int k = (i - 3) % n; if (i < n && (i > 4 || k < 0)) y[i] = x[k];"), INSIDE),
    "the grid's threads as an end": (program(kernel="y[gridDim.x * blockDim.x - 1 - i] = 1;"), INSIDE),
    "a grid stride from the block": (
        program(kernel="for (int k = threadIdx.x; k < n; k += gridDim.x * blockDim.x) y[k] = x[k];"), GLOBAL),
    "a grid stride of blocks": (program(kernel="for (int k = i; k < n; k += gridDim.x) y[k] = x[k];"), GLOBAL),
    "a grid stride of half": (
        program(kernel="for (int k = i; k < n; k += gridDim.x * blockDim.x / 2) y[k] = x[k];"), GLOBAL),
    "a grid stride, a tail behind": (
        program(kernel="int k = i; for (; k < n; k += gridDim.x * blockDim.x) y[k] = x[k]; y[k] = 0;"), INSIDE),
    "a constant of the file named as a parameter": (
        program("int m = atoi(argv[1]); float *a, *b; cudaMalloc(&a, 4 * m); cudaMalloc(&b, 4 * m); " + LAUNCH.
            replace("n", "m").replace("(m +", "(1000 +"), kernel="if (i < last()) y[i] = x[i];", before="const "
            "int n = 1000; __device__ int last() { return n; }"), INSIDE),
    "a constant of the file named as a local": (
        program(kernel="int limit = n; if (i < last()) y[i] = x[i];", before="const int limit = 5000; __device__ "
            "int last() { return limit; }"), INSIDE),
    "max of int and unsigned": (program(kernel="if (i < n) y[max(i - 1, 0u) / 2u] = 1;"), INSIDE),
    "min of int and unsigned": (program(kernel="if (i < n) y[n - 1 + min(i - 1, 0u)] = 1;"), INSIDE),
    "max of int and unsigned, halved": (program(kernel="if (i < n) y[i] = x[max(i - 1, 0u) / 2u];"), INSIDE),
    "a ternary of int and unsigned": (program(kernel="if (i < n) y[i] = x[(i > 0 ? i - 1 : -1 + 0u) / 2];"), INSIDE),
    "a shift that wraps": (program(kernel="unsigned k = (unsigned)i << 30; if (k < n) y[i] = x[i];"), INSIDE),
    "a 3-D block": (program(RIGHT.replace("256>>>", "dim3(16, 4, 4)>>>"), kernel="if (i < n) y[i] = x[i];"), GLOBAL),
    "a 3-D block, linear but for z": (
        program(RIGHT.replace("256>>>", "dim3(16, 4, 4)>>>"), kernel="int k = blockIdx.x * 256 + threadIdx.y * "
            "16 + threadIdx.x + threadIdx.z * 48; if (k < n) y[k] = x[k];"), GLOBAL),
    "a 3-D block, past the end": (
        program(RIGHT.replace("256>>>", "dim3(16, 4, 4)>>>"), kernel="int k = blockIdx.x * 256 + (threadIdx.z * "
            "4 + threadIdx.y) * 16 + threadIdx.x; if (k <= n) y[k] = x[k];"), INSIDE),
    "a grid stride with a first step": (
        program(kernel="for (int k = i; k < n; k += gridDim.x * blockDim.x) y[k + 1] = x[k];"), INSIDE),
    "a grid stride of one less": (
        program(kernel="for (int k = i; k < n; k += gridDim.x * blockDim.x - 1) y[k] = x[k];"), GLOBAL),
    "an early return the wrong way": (program(kernel="if (i > n) return; y[i] = x[i];"), INSIDE),
    "an early return of another size": (program(kernel="if (i >= n && i >= 10) return; y[i] = x[i];"), INSIDE),
    "do while one too far": (
        program(kernel="int k = i; do { y[k] = x[k]; k += gridDim.x * blockDim.x; } while (k < n);"), INSIDE),
    "an out parameter": (
        program(kernel="int k; place(i, k); if (i < n) y[k] = x[k];", before="__device__ void place(int i, int& "
            "k) { k = i + 1; }"), INSIDE),
    "an out parameter by another": (
        program(kernel="int k = 0; outer(i, k); if (i < n) y[k] = x[k];", before="__device__ void place(int& k) "
            "{ k++; } __device__ void outer(int i, int& k) { k = i; place(k); }"), INSIDE),
    "an out parameter in an early return": (
        program(kernel="int k = 0; place(i, k, n); if (i < n) y[k] = x[k];", before="__device__ void place(int "
            "i, int& k, int n) { k = i; if (i + 1 < n) { k++; return; } k = n; }"), INSIDE),
    "two out parameters of one variable": (
        program(kernel="int k = i; place(k, k); if (i < n) y[k] = x[k];", before="__device__ void place(int& a, "
            "int& b) { a += 1; b = b; }"), INSIDE),
    "dynamic arrays overlap": (
        program(RIGHT.replace("256>>>", "256, 512 * sizeof(float)>>>"), kernel="extern __shared__ float s[]; "
            "float* p = s; float* q = s + 255; p[threadIdx.x] = 1; q[threadIdx.x] = 2;"), MEETS),
    "a dynamic array one short": (
        program(RIGHT.replace("256>>>", "256, 511 * sizeof(float)>>>"), kernel="extern __shared__ float s[]; "
            "float* q = s + 256; q[threadIdx.x] = 2;"), SHARED),
    "a struct's cells": (
        program(RIGHT.replace("cudaMalloc(&b, n * sizeof(float));", "cudaMalloc(&b, n * sizeof(float));"), kernel=
            "if "
            "(i < n) { ((float2*)y)[i].x = 1; }"), INSIDE),
    "a struct member beyond": (
        program("int n = 1000; Pair *a; float* b; cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); move<<<(n + 255) "
            "/ 256, 256>>>((float*)a, b, n);", before="struct Pair { float x, y; };", kernel="Pair* p = "
            "(Pair*)x; if (i < n) y[i] = p[i].y;"), INSIDE),
    "negative stride": (program(kernel="if (i < n) y[n - i] = x[i];"), INSIDE),
    "a loop downwards past 0": (
        program(kernel="for (int k = n - 1 - i; k >= -1; k -= gridDim.x * blockDim.x) y[k] = x[k];"), INSIDE),
    "a loop downwards, unsigned": (
        program(kernel="for (unsigned k = n - 1 - i; k >= 0; k -= 256) y[k] = x[k];"), INSIDE),
    "a 64-bit index of a 32-bit product": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, (size_t)n * n * 4); cudaMalloc(&b, (size_t)n * n * 4); "
            f"{LAUNCH}", kernel="size_t k = i * n; if (i < n) y[k + n] = x[k];"), INSIDE),
    "a remainder by the size": (program(kernel="y[i % (n + 1)] = 1;"), INSIDE),
    "a remainder by the size races": (program(kernel="y[i % n] = x[0];"), GLOBAL),
    "a negative remainder by the size": (program(kernel="if (i < n) y[i] = x[(i - 1) % n];"), INSIDE),
    "a quotient by the size": (program(kernel="y[i / n] = 1;"), INSIDE),
    "a wrapped neighbour": (program(kernel="if (i < n) y[i] = x[(i + 1) % (n + 1)];"), INSIDE),
    "a remainder by an unsigned size": (program(kernel="if (i < n) y[i] = x[(i - 1) % (unsigned)n + 1];"), INSIDE),
    "a clamp the wrong way": (program(kernel="int k = min(i + 1, n); if (i < n) y[i] = x[k];"), INSIDE),
    "a clamp of one side": (program(kernel="int k = max(i - 1, 0); y[i] = x[k];"), INSIDE),
    "a barrier behind an early return": (
        sums("if (i >= n) return; s[t] = x[i]; __syncthreads(); y[i] = s[t];"), "barriers"),
    "a barrier in one branch by thread": (
        sums("if (t < 128) { s[t] = 1; __syncthreads(); } else { s[t] = 2; } y[0] = 1;"), "barriers"),
    "a barrier in a loop by the block's end": (
        sums("for (int k = blockIdx.x; k < n; k += t + 1) { __syncthreads(); }"), "barriers"),
    "a ring without a barrier": (sums("s[t] = x[0]; __syncthreads(); float v = s[(t + 1) % 256]; s[t] = v;"), MEETS),
    "a neighbour across a warp": (
        sums("s[t] = 1; __syncwarp(); float v = s[(t / 32) * 32 + (t + 1) % 33]; if (v > 3) s[0] = 0;"), MEETS),
    "two functions' shared memory": (
        program(RIGHT, kernel="put(i); float v = get(threadIdx.x + 1); if (v > 0) y[0] = v;", before="__device__ "
            "float* box() { __shared__ float s[256]; return s; } __device__ void put(int i) { box()[threadIdx.x] "
            "= i; } __device__ float get(int i) { return box()[i]; }"), SHARED),
    "an index of a mask": (program(kernel="if (i < n) y[i & 1023] = x[i];"), GLOBAL),
    "a mask of a negative number": (program(kernel="if (i < n) y[i] = x[(i - 1) & 255];"), INSIDE),
    "an xor neighbour": (program(kernel="if (i < n) y[i] = x[i ^ 1];"), INSIDE),
    "an or": (program(kernel="if (i < n) y[i] = x[i | 1];"), INSIDE),
    "a block's first cell": (program(kernel="if (threadIdx.x == 0) y[blockIdx.x * 256 + 1] = 1;"), INSIDE),
    "coarsened by two, stride of one": (
        program(kernel="for (int k = 0; k < 2; ++k) if (i + k < n) y[i + k] = x[i];"), GLOBAL),
}  # fmt: skip


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_not_proved(name):
    text, where = WRONG[name]
    proof = proof_of(text)
    assert not proof.proved, proof
    assert where not in [a.name for a in proof.answers if a.verdict is Verdict.PROVED], (where, proof)


STRIDE = "for (int k = i; k < n; k += gridDim.x * blockDim.x) y[k] = x[k];"
RIGHT_ONES = {
    "grid stride": program(kernel=STRIDE),
    "grid stride unsigned": program(kernel=STRIDE.replace("int k", "unsigned k")),
    "grid stride size_t": (
        program(kernel="for (size_t k = i; k < n; k += (size_t)gridDim.x * blockDim.x) y[k] = x[k];")),
    "grid stride, fixed grid": program(RIGHT.replace("(n + 255) / 256,", "64,"), kernel=STRIDE),
    "while stride": program(kernel="int k = i; while (k < n) { y[k] = x[k]; k += gridDim.x * blockDim.x; }"),
    "early return": program(kernel="if (i >= n) return; y[i] = x[i];"),
    "ternary": program(kernel="if (i < n) y[i] = i > 0 ? x[i - 1] : 0;"),
    "a clamp": program(kernel="int k = min(i + 1, n - 1); if (i < n) y[i] = x[k];"),
    "two clamps": program(kernel="int k = max(0, min(i - 1, n - 1)); if (i < n) y[i] = x[k];"),
    "a clamp by ternaries": (
        program(kernel="int k = i - 1 < 0 ? 0 : i - 1 > n - 1 ? n - 1 : i - 1; if (i < n) y[i] = x[k];")),
    "a wrapped neighbour": program(kernel="if (i < n) y[i] = x[(i + 1) % n];"),
    "a wrapped left neighbour": program(kernel="if (i < n) y[i] = x[(i + n - 1) % n];"),
    "reversed": program(kernel="if (i < n) y[n - 1 - i] = x[i];"),
    "unsigned i": program(kernel="unsigned k = i; if (k < (unsigned)n) y[k] = x[k];"),
    "a size_t size": program(RIGHT.replace("int n", "size_t n")),
    "an unsigned size": program(RIGHT.replace("int n", "unsigned n")),
    "a 3-D block": (
        program(RIGHT.replace("256>>>", "dim3(16, 4, 4)>>>"), kernel="int k = blockIdx.x * 256 + (threadIdx.z * "
            "4 + threadIdx.y) * 16 + threadIdx.x; if (k < n) y[k] = x[k];")),
    "out parameter": (
        program(kernel="int k; place(i, k); if (k < n) y[k] = x[k];", before="__device__ void place(int i, int& "
            "k) { k = i; }")),
    "do while": (
        program(kernel="int k = i; if (k < n) do { y[k] = x[k]; k += gridDim.x * blockDim.x; } while (k < n);")),
    "dynamic": (
        program(RIGHT.replace("256>>>", "256, 256 * sizeof(float)>>>"), kernel="extern __shared__ float s[]; "
            "s[threadIdx.x] = 2; __syncthreads(); if (i < n) y[i] = s[255 - threadIdx.x];")),
    "two dynamic arrays": (
        program(RIGHT.replace("256>>>", "256, 512 * sizeof(float)>>>"), kernel="extern __shared__ float s[]; "
            "float* q = s + 256; s[threadIdx.x] = 1; q[threadIdx.x] = 2; __syncthreads(); if (i < n) y[i] = "
            "s[255 - threadIdx.x] + q[255 - threadIdx.x];")),
    "struct members": (
        program("int n = 1000; Pair* a; float* b; cudaMalloc(&a, n * sizeof(Pair)); cudaMalloc(&b, n * 4); "
            "move<<<(n + 255) / 256, 256>>>((float*)a, b, n);", before="struct Pair { float x, y; };", kernel=
            "Pair* "
            "p = (Pair*)x; if (i < n) y[i] = p[i].y + p[i].x;")),
    "two launches": program(RIGHT + LAUNCH.replace("(a, b", "(b, a")),
    "a size that is changed before": program(f"int n = atoi(argv[1]); n *= 2; {ARRAYS} {LAUNCH}"),
    "64-bit": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, (size_t)n * n * 4); cudaMalloc(&b, (size_t)n * n * 4); "
            f"{LAUNCH}", kernel="if (i < n) for (int k = 0; k < n; ++k) y[(size_t)i * n + k] = x[(size_t)i * n + k];"
            )),
    "a row each": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, n * n * 4); cudaMalloc(&b, n * 4); {LAUNCH}", kernel="if "
            "(i < n) { float s = 0; for (int k = 0; k < n; ++k) s += x[i * n + k]; y[i] = s; }")),
    "a column each": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, n * n * 4); cudaMalloc(&b, n * 4); {LAUNCH}", kernel="if "
            "(i < n) { float s = 0; for (int k = 0; k < n; ++k) s += x[k * n + i]; y[i] = s; }")),
    "row and column of a flat index": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, n * n * 4); cudaMalloc(&b, n * n * 4); move<<<(n * n + 255) "
            f"/ 256, 256>>>(a, b, n);", kernel="if (i < n * n) { int r = i / n, c = i % n; y[r * n + c] = x[i]; }")),
    "coarsened": (
        program(RIGHT.replace("255) / 256", "511) / 512"), kernel="for (int k = 0; k < 2; ++k) { int j = "
            "blockIdx.x * 512 + k * 256 + threadIdx.x; if (j < n) y[j] = x[j]; }")),
    "unrolled by four": (
        program(RIGHT.replace("255) / 256", "1023) / 1024"), kernel="int j = blockIdx.x * blockDim.x * 4 + "
            "threadIdx.x; if (j + 3 * blockDim.x < n) { y[j] = x[j]; y[j + blockDim.x] = x[j]; y[j + 2 * "
            "blockDim.x] = x[j]; y[j + 3 * blockDim.x] = x[j]; }")),
    "a scan": (
        sums("s[t] = i < n ? x[i] : 0; for (int d = 1; d < 256; d *= 2) { __syncthreads(); float v = t >= d ? "
            "s[t - d] : 0; __syncthreads(); s[t] += v; } if (i < n) y[i] = s[t];")),
    "a histogram": (
        sums("s[t] = 0; __syncthreads(); if (i < n) atomicAdd(&s[t & 31], x[i]); __syncthreads(); if (t < 32) "
            "atomicAdd(&y[0], s[t]);")),
    "two checks": program(kernel="if (i < n) if (i > 0) y[i] = x[i - 1];"),
    "a const size": program("const int n = 1000; " + ARRAYS + LAUNCH),
    "an interleaved pair": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 2 * n * 4); cudaMalloc(&b, n * 4); {LAUNCH}", kernel="if "
            "(i < n) y[i] = x[2 * i] + x[2 * i + 1];")),
    "float2": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 2 * n * 4); cudaMalloc(&b, n * 4); {LAUNCH}", kernel="if "
            "(i < n) { float2 v = ((float2*)x)[i]; y[i] = v.x + v.y; }")),
}  # fmt: skip


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", RIGHT_ONES)
def test_a_right_program_is_proved(name):
    proof = proof_of(RIGHT_ONES[name])
    assert proof.proved, proof
