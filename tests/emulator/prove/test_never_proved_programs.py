"""Wrong programs whose kernels multiply no matrices: sizes, arrays and launches that only look right."""

from __future__ import annotations

import pytest

from proof_programs import (
    ARRAYS,
    GLOBAL,
    INSIDE,
    LAUNCH,
    MEETS,
    RIGHT,
    SHARED,
    SIZE,
    START,
    between,
    passing,
    program,
    proof_of,
    sums,
)
from tilewise.emulator.prove.prove import Verdict

pytest.importorskip("z3")

TREE = "s[t] = i < n ? x[i] : 0; __syncthreads(); for (int d = 128; d > 0; d >>= 1) {{ if (t < d) {0} {1} }}"
WRONG = {
    "no check": (program(kernel="y[i] = x[i];"), INSIDE),
    "one too far": (program(kernel="if (i <= n) y[i] = x[i];"), INSIDE),
    "the left neighbour": (program(kernel="if (i < n) y[i] = x[i - 1];"), INSIDE),
    "the right neighbour": (program(kernel="if (i < n && i > 0) y[i] = x[i + 1];"), INSIDE),
    "unsigned i - 1": (program(kernel="if (i < n) y[i] = x[(unsigned)i - 1u];"), INSIDE),
    "a stencil in place": (program(kernel="if (i > 0 && i < n) x[i] = x[i - 1];"), GLOBAL),
    "every other cell": (program(kernel="if (2 * i <= n) y[2 * i] = x[i];"), INSIDE),
    "two threads a cell": (program(kernel="if (i < n) y[i / 2] = x[i];"), GLOBAL),
    "a remainder": (program(kernel="if (i < n) y[i % 100] = x[i];"), GLOBAL),
    "a sum without an atomic": (program(kernel="if (i < n) y[0] += x[i];"), GLOBAL),
    "a histogram without an atomic": (program(kernel="if (i < n) y[(int)x[i] & 1] += 1;"), GLOBAL),
    "data is an index": (program(kernel="if (i < n) atomicAdd(&y[(int)x[i]], 1);"), INSIDE),
    "data is a shift": (program(kernel="if (i < n) atomicAdd(&y[(int)x[i] >> 2], 1);"), INSIDE),
    "a stride that is not the grid's": (
        program(kernel="for (int k = i; k < n; k += 128) y[k] = x[k];"), GLOBAL),
    "a stride loop, one too far": (
        program(kernel="for (int k = i; k <= n; k += gridDim.x * blockDim.x) y[k] = x[k];"), INSIDE),
    "a stride of one block": (
        program(kernel="for (int k = i; k < n; k += blockDim.x) y[k] = x[k];"), GLOBAL),
    "bytes, not elements": (program(RIGHT.replace("n * sizeof(float)", "n", 1)), INSIDE),
    "the bytes of a smaller type": (program(RIGHT.replace("sizeof(float)", "sizeof(short)")), INSIDE),
    "the bytes of a pointer to it, in elements of double": (
        program(f"{SIZE} double *a; float *b; cudaMalloc(&a, n); cudaMalloc(&b, 4 * n);"
                " move<<<(n + 255) / 256, 256>>>((float*)a, b, n);"), INSIDE),
    "one array too short": (program(RIGHT.replace("&b, n *", "&b, (n - 1) *")), INSIDE),
    "a fixed array": (program(RIGHT.replace("&b, n *", "&b, 1000 *")), INSIDE),
    "an array of another size": (program(RIGHT.replace("&b, n *", "&b, m *").replace(SIZE, SIZE + " int m = 1000;")),
                                 INSIDE),
    "a number that is too large": (passing("a, b, n + 1"), INSIDE),
    "twice the number": (passing("a, b, 2 * n"), INSIDE),
    "bytes as the number": (passing("a, b, n * sizeof(float)"), INSIDE),
    "a number that was read": (passing("a, b, m", "int m = atoi(argv[1]);"), INSIDE),
    "the size grows behind the allocations": (between("n += 1;"), INSIDE),
    "the size is read behind the allocations": (between('scanf("%d", &n);'), INSIDE),
    "the size is stepped": (between("n++;"), INSIDE),
    "the size by a reference": (between("int& m = n; m += 5;"), INSIDE),
    "the size in a branch": (between("if (argc > 1) n = 5000;"), INSIDE),
    "the size in a loop": (between("for (int k = 0; k < argc; ++k) n += k;"), INSIDE),
    "the size in a function": (between("grow(n);", between="void grow(int& n) { n += 3; }"), INSIDE),
    "the size by an address": (between("grow(&n);", between="void grow(int* n) { *n += 3; }"), INSIDE),
    "the size by a pointer kept": (program(f"{SIZE} int* m = &n; {ARRAYS} *m = 5000; {LAUNCH}"), INSIDE),
    "the size by a lambda": (between("auto grow = [&]() { n += 3; }; grow();"), INSIDE),
    "the size by a lambda made before": (
        program(f"{SIZE} auto grow = [&]() {{ n += 3; }}; {ARRAYS} grow(); {LAUNCH}"), INSIDE),
    "the size by a reference made before": (program(f"{SIZE} int& m = n; {ARRAYS} m += 3; {LAUNCH}"), INSIDE),
    "the array by a pointer kept": (
        program(f"{SIZE} float** p; {ARRAYS} p = &b; cudaMalloc(p, 4); {LAUNCH}"), INSIDE),
    "a size of the file by a method": (
        program(f"{ARRAYS} Maker m; m.grow(); {LAUNCH}", before="int n = 1000;",
                between="struct Maker { void grow() { n += 3; } };"), INSIDE),
    "a size of the file by a constructor": (
        program(f"{ARRAYS} Maker m; {LAUNCH}", before="int n = 1000;\nstruct Maker { Maker() { n += 3; } };"), INSIDE),
    "goto back": (
        program(f"{SIZE} {ARRAYS} again: {LAUNCH} if (n < 4000) {{ n *= 2; goto again; }}"), INSIDE),
    "the size behind the launch of a loop": (
        program(f"{SIZE} {ARRAYS} while (argc-- > 0) {{ {LAUNCH} n *= 2; }}"), INSIDE),
    "the array behind the launch of a loop": (
        program(f"{SIZE} {ARRAYS} while (argc-- > 0) {{ {LAUNCH} cudaMalloc(&b, 4); }}"), INSIDE),
    "a check that does not leave": (between("if (n > 100) printf(\"large\");", kernel="y[i % 100] = 0;"), INSIDE),
    "a number that is taken from the user, and read before": (
        program("int t = 256; int m = 4 * t; float *a, *b; cudaMalloc(&a, m); cudaMalloc(&b, m); if (argc > 1)"
                " t = atoi(argv[1]); move<<<1, t>>>(a, b, t);", kernel="y[i] = x[i];"), INSIDE),
    "a freed array": (between("cudaFree(a);"), INSIDE),
    "another name of a freed array": (between("float* c = a; cudaFree(c);"), INSIDE),
    "an array that a branch frees": (between("if (argc > 1) cudaFree(a);"), INSIDE),
    "an array that a function frees": (between("done(b);", between="void done(float* p) { cudaFree(p); }"), INSIDE),
    "an array freed behind the launch of a loop": (
        program(f"{SIZE} {ARRAYS} while (argc-- > 0) {{ {LAUNCH} cudaFree(b); }}"), INSIDE),
    "a check of an earlier value": (
        program(f"{SIZE} if (n % 256 != 0) return 1; n = n + 1; {ARRAYS} {LAUNCH}", kernel="y[i] = x[i];"), INSIDE),
    "a check of a size that is read again": (
        program(f"{SIZE} if (n % 256 != 0) return 1; scanf(\"%d\", &n); {ARRAYS} {LAUNCH}", kernel="y[i] = x[i];"),
        INSIDE),
    "a check of bytes that wrapped": (
        program(f"int n = atoi(argv[1]); int bytes = n * 4; if (bytes < 0) return 1; if (bytes > 4000) return 1;"
                f" float *a, *b; cudaMalloc(&a, bytes); cudaMalloc(&b, bytes); {LAUNCH}", kernel="y[i] = x[i];"),
        INSIDE),
    "a check the wrong way round": (
        program(f"{SIZE} if (n % 256 == 0) return 1; {ARRAYS} {LAUNCH}", kernel="y[i] = x[i];"), INSIDE),
    "a check with a side that goes on": (
        program(f"{SIZE} if (n % 256 != 0) {{ if (argc > 1) return 1; }} {ARRAYS} {LAUNCH}", kernel="y[i] = x[i];"),
        INSIDE),
    "a check in a function that only returns": (
        program(f"{SIZE} {ARRAYS} check(n); {LAUNCH}", kernel="y[i] = x[i];",
                between="void check(int n) { if (n % 256 != 0) return; }"), INSIDE),
    "a size of the file": (
        program(f"{ARRAYS} grow(); {LAUNCH}", before="int n = 1000;", between="void grow() { n += 3; }"), INSIDE),
    "a size of the file by two calls": (
        program(f"{ARRAYS} outer(); {LAUNCH}", before="int n = 1000;",
                between="void grow() { n += 3; }\nvoid outer() { grow(); }"), INSIDE),
    "a size of the file in another file": (
        program(f"{ARRAYS} grow(); {LAUNCH}", before="extern int n; void grow();"), INSIDE),
    "std::swap of the sizes": (
        program(f"int n = 1000, m = 4000; {ARRAYS} std::swap(n, m); {LAUNCH}"), INSIDE),
    "swapped arrays of two lengths": (
        program(RIGHT.replace("&b, n *", "&b, 2 * n *").replace("move<<<", "std::swap(a, b); move<<<")
                .replace("(a, b, n)", "(b, a, 2 * n)")), INSIDE),
    "a macro that the kernel has, too": (
        program(f"int n = N; {ARRAYS} {LAUNCH}", kernel="if (i < N + 1) y[i] = x[i];", before="#define N 500"), INSIDE),
    "a constant of another constant": (
        program(f"int n = N; {ARRAYS} {LAUNCH}", kernel="if (i < M) y[i] = x[i];",
                before="const int N = 500;\nconst int M = N + 1;"), INSIDE),
    "a constant of the file in a function of the kernel": (
        program("int m = n; float *a, *b; cudaMalloc(&a, 4 * m); cudaMalloc(&b, 4 * m); "
                + LAUNCH.replace(", n)", ", m)"), kernel="if (i < last()) y[i] = x[i];",
                before="const int n = 500;\n__device__ int last() { return n + 1; }"),
        INSIDE),
    "a macro of another macro": (
        program(f"int n = N; {ARRAYS} {LAUNCH}", kernel="if (i < M) y[i] = x[i];",
                before="#define N 500\n#define M (N + 1)"), INSIDE),
    "two names of one array": (passing("a, a + 1, n - 1"), GLOBAL),
    "another name of the array": (
        program(f"{SIZE} {ARRAYS} float* c = a; move<<<(n + 255) / 256, 256>>>(a, c + 1, n - 1);"), GLOBAL),
    "an offset": (passing("a + 1, b, n"), INSIDE),
    "an address in the array": (passing("&a[2], b, n"), INSIDE),
    "a negative offset": (passing("a - 1, b, n"), INSIDE),
    "the pointer moved on": (between("a++;"), INSIDE),
    "the pointer moved on by a size": (between("a += n;"), INSIDE),
    "another array in a branch": (
        between("float* c; cudaMalloc(&c, 4); if (argc > 1) b = c;"), INSIDE),
    "a smaller array where the first fails": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 4 * n); if (cudaMalloc(&b, 4 * n)) cudaMalloc(&b, 4); {LAUNCH}"),
        INSIDE),
    "an array made in a function": (
        between("make(&b);", between="void make(float** p) { cudaMalloc(p, 4); }"), INSIDE),
    "an array made by a reference": (
        between("make(b);", between="void make(float*& p) { cudaMalloc(&p, 4); }"), INSIDE),
    "an array of the file made in a function": (
        program("int n = 1000; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4 * n); make(); " + LAUNCH,
                before="float *a, *b;", between="void make() { cudaMalloc(&b, 4); }"), INSIDE),
    "an array of the host": (between("b = (float*)malloc(8);"), INSIDE),
    "a launch in a function, one too far": (
        program(f"{SIZE} {ARRAYS} go(a, b, n);",
                between="void go(float* a, float* b, int n) { move<<<(n + 255) / 256, 256>>>(a, b, n + 1); }"), INSIDE),
    "a launch in a function that is called twice": (
        program(f"{SIZE} {ARRAYS} go(a, b, n); go(a, b, 2 * n);",
                between=f"void go(float* a, float* b, int n) {{ {LAUNCH} }}"), INSIDE),
    "a launch in a function that changes its size": (
        program(f"{SIZE} {ARRAYS} go(a, b, n);",
                between=f"void go(float* a, float* b, int n) {{ n *= 2; {LAUNCH} }}"), INSIDE),
    "arrays in the wrong order": (
        program(f"{SIZE} float *a, *b; cudaMalloc(&a, 8 * n); cudaMalloc(&b, 4 * n); go(a, b, n);",
                between="void go(float* a, float* b, int n) { move<<<(2 * n + 255) / 256, 256>>>(a, b, 2 * n); }"),
        INSIDE),
    "a second launch, one too far": (program(RIGHT + LAUNCH.replace(", n);", ", n + 1);")), INSIDE),
    "a launch in a loop over sizes": (
        program(f"{SIZE} {ARRAYS} for (int m = 1; m < 5000; m *= 2) move<<<(m + 255) / 256, 256>>>(a, b, m);"), INSIDE),
    "a launch in a loop to the size": (
        program(f"{SIZE} {ARRAYS} for (int m = 0; m <= n; m++) move<<<(n + 255) / 256, 256>>>(a, b, m + 1);"), INSIDE),
    "a loop whose counter is stepped in it": (
        program(f"{SIZE} {ARRAYS} for (int m = 0; m < n; m++) {{ m += 2; move<<<n, 256>>>(a, b, m); }}"), INSIDE),
    "a loop whose counter a function steps": (
        program(f"{SIZE} {ARRAYS} for (int m = 0; m < n; m++) {{ grow(m); move<<<n, 256>>>(a, b, m); }}",
                between="void grow(int& n) { n += 3; }"), INSIDE),
    "a launch behind goto": (between("again: if (n < 4000) { n *= 2; goto again; }"), INSIDE),
    "a launch in a case": (
        program(f"{SIZE} {ARRAYS} switch (argc) {{ case 1: n = 4000; case 2: {LAUNCH} break; }}"), INSIDE),
    "a grid in z": (program(RIGHT.replace("(n + 255) / 256,", "dim3((n + 255) / 256, 1, 2),")), GLOBAL),
    "a block in y": (program(RIGHT.replace("256>>>", "dim3(256, 2)>>>")), GLOBAL),
    "more threads than a block has": (program(RIGHT.replace("256>>>", "1025>>>")), START),
    "the size as the block": (program(RIGHT.replace("(n + 255) / 256, 256", "1, n").replace("1000", "2000")), START),
    "no block at small sizes": (program(RIGHT.replace("(n + 255) / 256", "n / 256")), START),
    "a constant array that is too short": (
        program(kernel="if (i < n) y[i] = x[i] * w[i % 9];", before="__constant__ float w[8];"), INSIDE),
    "a constant that the host writes": (
        program(kernel="if (i < limit) y[i] = x[i];", before="__constant__ int limit = 0;"), INSIDE),
    "a device variable that the host writes": (
        program(kernel="if (i < limit) y[i] = x[i];", before="__device__ int limit = 0;"), INSIDE),
    "shared memory that is too short": (sums("s[t + 1] = x[0];"), SHARED),
    "a block that is wider than its array": (
        program(RIGHT.replace("256>>>", "257>>>"), "__shared__ float s[256]; s[threadIdx.x] = 1;"), SHARED),
    "dynamic memory in elements": (
        program(RIGHT.replace("256>>>", "256, 256>>>"), "extern __shared__ float s[]; s[threadIdx.x] = 1;"), SHARED),
    "a sum in a tree without barriers": (sums(TREE.format("s[t] += s[t + d];", "")), MEETS),
    "a sum in a tree, a barrier too few": (
        sums(TREE.replace("__syncthreads();", "", 1).format("s[t] += s[t + d];", "__syncthreads();")), MEETS),
    "a sum in a tree, one too far": (sums(TREE.format("s[t] += s[t + d + 1];", "__syncthreads();")), SHARED),
    "a sum in a tree, the last steps of a warp": (
        sums(TREE.replace("d > 0", "d > 32").format("s[t] += s[t + d];", "__syncthreads();")
             + " if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8]; }"), MEETS),
    "a scan in place": (
        sums("s[t] = 1; __syncthreads(); for (int d = 1; d < 256; d *= 2) { if (t >= d) s[t] += s[t - d];"
             " __syncthreads(); }"), MEETS),
    "a barrier under the check": (sums("s[t] = 1; if (i < n) __syncthreads();"), "barriers"),
    "a barrier in a loop of the thread": (sums("for (int k = i; k < n; k += 256) __syncthreads();"), "barriers"),
    "a tile that is not filled": (sums("if (i < n) s[t] = 1; __syncthreads(); y[i % 2] = s[255 - t];"), "shared reads"),
}  # fmt: skip


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_not_proved(name):
    text, where = WRONG[name]
    proof = proof_of(text)
    assert not proof.proved, proof
    proved = [a.name for a in proof.answers if a.verdict is Verdict.PROVED]
    assert where not in proved, (where, proof)


RIGHT_ONES = {
    "a copy": program(),
    "a size that is read": program(RIGHT.replace("1000", "atoi(argv[1])")),
    "a size of the file": program(RIGHT.replace(SIZE, ""), before="const int n = 1000;"),
    "a macro": program(f"{ARRAYS} {LAUNCH}".replace("n *", "N *").replace("(n ", "(N ").replace(", n)", ", N)"),
                       before="#define N 1000"),
    "whole blocks": program(f"{SIZE} if (n % 256 != 0) {{ return 1; }} {ARRAYS} {LAUNCH}", kernel="y[i] = x[i];"),
    "a check of an error": program(
        f"{SIZE} float *a, *b; cudaError_t e = cudaMalloc(&a, n * 4); if (e != cudaSuccess) exit(1);"
        f" if (cudaMalloc(&b, n * 4) != cudaSuccess) {{ cudaFree(a); exit(1); }} {LAUNCH}"),
    "a stencil": program(kernel="if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i + 1];"),
    "a sum with an atomic": program(kernel="if (i < n) atomicAdd(&y[0], x[i]);"),
    "a launch in a function": program(f"{SIZE} {ARRAYS} go(a, b, n);",
                                      between=f"void go(float* a, float* b, int n) {{ {LAUNCH} }}"),
    "a sum in a tree": sums(TREE.format("s[t] += s[t + d];", "__syncthreads();") + " if (t == 0) atomicAdd(y, s[0]);"),
    "a launch in a loop": program(f"{SIZE} {ARRAYS} for (int m = 0; m < n; m++) {LAUNCH.replace(', n)', ', m)')}"),
}  # fmt: skip


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", RIGHT_ONES)
def test_a_right_program_is_proved(name):
    proof = proof_of(RIGHT_ONES[name])
    assert proof.proved, proof
