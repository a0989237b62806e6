"""Kernels that are wrong in unusual ways: none of them may be proved, and none of the named properties."""

from __future__ import annotations

import pytest

from proof_programs import proof_of
from tilewise.emulator.prove.prove import Verdict

pytest.importorskip("z3")

KERNEL = """
#define T 4
{before}
__global__ void MatrixMulKernel({parameters})
{{
    int Row = blockIdx.y * T + threadIdx.y;
    int Col = blockIdx.x * T + threadIdx.x;
    {body}
}}
void host(float* M, float* N, float* P, int Width)
{{
    {host}
}}
"""
PARAMETERS = "float* M, float* N, float* P, int Width"
GUARDED = """if (Row < Width && Col < Width) {{
        float sum = 0;
        for (int k = 0; k < Width; ++k) sum += M[Row * Width + k] * N[k * Width + Col];
        {last}
    }}"""
STORE = "P[Row * Width + Col] = sum;"
LAUNCH = """int blocks = (Width + T - 1) / T;
    MatrixMulKernel<<<dim3(blocks, blocks), dim3(T, T)>>>(M, N, P, Width);"""
TILED = """__shared__ float Ms[T][T]; __shared__ float Ns[T][T];
    int tx = threadIdx.x, ty = threadIdx.y;
    float sum = 0;
    for (int ph = 0; ph < (Width + T - 1) / T; ++ph) {{
        {fill}
        Ms[ty][tx] = Row < Width && ph * T + tx < Width ? M[Row * Width + ph * T + tx] : 0;
        Ns[ty][tx] = ph * T + ty < Width && Col < Width ? N[(ph * T + ty) * Width + Col] : 0;
        {first}
        for (int k = 0; k < T; ++k) sum += Ms[ty][k] * Ns[k][tx];
        {second}
    }}
    if (Row < Width && Col < Width) P[Row * Width + Col] = sum;"""
SYNC = "__syncthreads();"


def kernel(body: str, before: str = "", parameters: str = PARAMETERS, host: str = LAUNCH) -> str:
    return KERNEL.format(body=body, before=before, parameters=parameters, host=host)


def guarded(last: str, **others: str) -> str:
    return kernel(GUARDED.format(last=last), **others)


def tiled(fill: str = "", first: str = SYNC, second: str = SYNC, **others: str) -> str:
    return kernel(TILED.format(fill=fill, first=first, second=second), **others)


def launched(host: str) -> str:
    return guarded(STORE, host=host)


INSIDE, ROWS, SHARED, RACES, GLOBAL = "global bounds", "rows", "shared bounds", "shared races", "global races"
BARRIERS, ARITHMETIC, START = "barriers", "arithmetic", "launch"
WRONG = {
    "a reference changes the row": (guarded(f"int& r = Row; r += 1; {STORE}"), INSIDE),
    "an auto reference changes the row": (guarded(f"auto& r = Row; r += 1; {STORE}"), INSIDE),
    "a pointer to the row changes it": (guarded(f"int* r = &Row; *r += 1; {STORE}"), INSIDE),
    "a function changes its reference": (
        guarded(f"moved(Row); {STORE}", before="__device__ void moved(int& r) { r += 1; }"), INSIDE),
    "a function of a function changes its reference": (
        guarded(f"outer(Row); {STORE}", before="__device__ void moved(int& r) { r += 1; }\n"
                "__device__ void outer(int& r) { moved(r); }"), INSIDE),
    "a loop with a reference": (guarded(f"for (int i = 0; i < 2; ++i) {{ int& r = Row; r++; }} {STORE}"), INSIDE),
    "the counter is changed in the body": (
        guarded("for (int i = 0; i < Width; ++i) { P[i * Width + Col] = sum; i += 2; P[i * Width + Col] = 1; }"),
        INSIDE),
    "do while with a step in its condition": (
        guarded("int i = -1; do { P[Row * Width + Col + i] = sum; } while (i++ < 0);"), INSIDE),
    "while with a step in its condition": (
        guarded("int i = 0; while (i++ < Row) ; P[i * Width + Col] = sum;"), INSIDE),
    "a loop downwards, one too far": (
        guarded("for (int i = Row; i >= -1; --i) P[i * Width + Col] = sum;"), INSIDE),
    "an unsigned loop downwards never ends": (
        guarded("for (unsigned i = Row; i >= 0 && i != 5; --i) P[i * Width + Col] = sum;"), INSIDE),
    "an unsigned difference wraps": (guarded("unsigned r = threadIdx.x; P[(r - 1u) / 2 * Width] = sum;"), INSIDE),
    "an unsigned comparison": (
        guarded("int d = threadIdx.x; d = d - 2; unsigned z = 1; if (d < z || d + 1 > z) P[d * Width + Col] = sum;"),
        INSIDE),
    "a conditional of int and unsigned": (
        guarded("unsigned u = 0; if ((Row == 0 ? -1 : u) < 5) ; else P[Width * Width] = sum;"), INSIDE),
    "division truncates towards zero": (
        guarded("int d = (int)threadIdx.x - 3; if (d / 4 == 0) P[d + Row * Width] = sum;"), INSIDE),
    "a remainder is negative": (
        guarded("int d = (int)threadIdx.x - 3; P[d % 4 + Row * Width] = sum;"), INSIDE),
    "a shift of a negative number": (guarded("int d = (int)threadIdx.x - 3; P[(d >> 1) + Row * Width] = sum;"), INSIDE),
    "a short counter wraps": (
        guarded("short s = 0; for (int i = 0; i < Width; ++i) s++; P[(s + 32768) * 0 + s] = sum;"), INSIDE),
    "a char row": (guarded("signed char r = Row; P[r * Width + Col] = sum;"), INSIDE),
    "a local named as a builtin": (
        guarded("struct D { int x; int y; }; D blockIdx; blockIdx.y = 77; P[(blockIdx.y * T) * Width + Col] = sum;"),
        INSIDE),
    "a parameter named as a builtin": (
        guarded("P[across(make_uint3(99, 99, 0)) * Width] = sum;",
                before="__device__ int across(uint3 threadIdx) { return threadIdx.x; }"), INSIDE),
    "a shadowing variable": (guarded("{ int Row = Width; P[Row * Width + Col] = sum; }"), INSIDE),
    "a macro named as a variable": (
        guarded("P[ROW_OF(Row) * Width + Col] = sum;", before="#define ROW_OF(x) (x + 1)"), INSIDE),
    "a macro without parentheses": (
        guarded("P[NEXT(Row) * Width + Col] = sum;", before="#define NEXT(x) x + x"), INSIDE),
    "an own min": (
        guarded("P[min(Row, Width) * Width + Col] = sum;",
                before="__device__ int min(int a, int b, int c = 3) { return a + b + c; }"), INSIDE),
    "an own function of a namespace": (
        guarded("P[mine::max(Row, 0) * Width + Col] = sum;",
                before="namespace mine { __device__ int max(int a, int b) { return a + 1; } }"), INSIDE),
    "an own barrier of a namespace": (
        tiled(first="mine::__syncthreads();", before="namespace mine { __device__ void __syncthreads() {} }"), RACES),
    "a template doubles the row": (
        guarded("P[twice<2>(Row) * Width + Col] = sum;",
                before="template <int N> __device__ int twice(int a) { return a * N; }"), INSIDE),
    "a constructor stores": (
        guarded(f"Out o(P, Row * Width + Col + Width); {STORE}",
                before="struct Out { __device__ Out(float* p, int i) { p[i] = 0; } };"), INSIDE),
    "a temporary's constructor stores": (
        guarded(f"Out(P, Row * Width + Col + Width); {STORE}",
                before="struct Out { __device__ Out(float* p, int i) { p[i] = 0; } };"), INSIDE),
    "a destructor stores": (
        guarded(f"Out o; o.p = P; {STORE}",
                before="struct Out { float* p; __device__ ~Out() { p[1 << 20] = 0; } };"), INSIDE),
    "an operator stores": (
        guarded(f"Out a, b; a + b; {STORE}",
                before="__device__ float shelf[2];\nstruct Out { int i; };\n"
                "__device__ Out operator+(Out a, Out b) { shelf[2] = 0; return a; }"), INSIDE),
    "a method stores": (
        guarded(f"Out a; a.put(P, Width * Width); {STORE}",
                before="struct Out { int i; __device__ void put(float* p, int at) { p[at] = 0; } };"), INSIDE),
    "a lambda stores": (guarded(f"auto put = [=](int at) {{ P[at] = 0; }}; put(Width * Width); {STORE}"), INSIDE),
    "a static variable is everybody's": (guarded(f"static int seen; seen = Row; {STORE}"), GLOBAL),
    "a step on the way to break": (
        guarded("int r = Row; for (int i = 0; i < Width; ++i) if (i == 3) { r = Width; break; } P[r * Width] = sum;"),
        INSIDE),
    "a step on the way to continue": (
        guarded("int r = 0; for (int i = 0; i < 9; ++i) { if (i == 3) { r = Width; continue; } P[r * Width] = sum; }"),
        INSIDE),
    "a function's step on the way to break": (
        guarded("int r = 0; for (int i = 0; i < 2; i++) if (Col == 3) { moved(r); break; } P[r * Width * Width] = sum;",
                before="__device__ void moved(int& r) { r += 1; }"), INSIDE),
    "two pointers are swapped in a loop": (
        guarded("float *p = M, *q = P; for (int i = 0; i < 3; ++i) { p[0] = Row; float* t = p; p = q; q = t; }"),
        GLOBAL),
    "a pointer moves to another array in a loop": (
        guarded("float* p = M; for (int i = 0; i < 3; ++i) { sum += p[0]; p = P; }" + STORE), GLOBAL),
    "a pointer that grows in a loop": (
        guarded("float* p = P + Row * Width; for (int i = 0; i <= Width; ++i) *p++ = sum;"), INSIDE),
    "an inner counter runs from the outer one": (
        guarded("for (int i = 0; i < Width; ++i) for (int j = i; j <= i + 1; ++j) P[j * Width + Col] = sum;"), INSIDE),
    "a loop whose end moves": (
        guarded("int e = Width; for (int i = 0; i < e; i++) { P[i * Width + Col] = sum; if (i == 0) e++; }"),
        INSIDE),
    "a variable of the device": (guarded(f"seen = Row; {STORE}", before="__device__ int seen;"), GLOBAL),
    "an array of the device, too short": (guarded(f"seen[Row] = 1; {STORE}", before="__device__ int seen[64];"),
        INSIDE),
    "an index with two steps": (guarded("int i = Row * Width + Col; P[i++]++; P[i] = sum;"), INSIDE),
    "an index that is assigned": (guarded(f"int i; P[i = Row * Width + Col + Width] = sum; {STORE}"), INSIDE),
    "a comma": (guarded("P[(Col++, Row * Width + Col)] = sum;"), ROWS),
    "a float4 store at the edge": (
        guarded("*reinterpret_cast<float4*>(&P[Row * Width + Col]) = make_float4(0, 0, 0, 0);"), INSIDE),
    "a double written through a cast": (guarded("((double*)P)[Row * Width + Col] = sum;"), INSIDE),
    "an unaligned float2": (
        guarded("if (Col + 1 < Width) { float2 v = *(float2*)&M[Row * Width + Col]; P[Row * Width + Col] = v.x; }"),
        INSIDE),
    "rows of a cast": (guarded("float (*rows)[4] = (float (*)[4])P; rows[Row][Col] = sum;"), INSIDE),
    "the transposed cell raced over": (guarded("P[Row * Width + Col] = sum; P[Col * Width + Row] = sum;"), GLOBAL),
    "a neighbour's cell": (guarded("if (Col + 1 < Width) P[Row * Width + Col + 1] = sum;" + STORE), GLOBAL),
    "every block the same cell": (guarded(f"{STORE} if (threadIdx.x == 0 && threadIdx.y == 0) P[0] = 1;"), GLOBAL),
    "an atomic beside a store": (guarded("atomicAdd(&P[0], sum); if (Row == 0) P[Col] = sum;"), GLOBAL),
    "an atomic of a block": (guarded("atomicAdd_block(&P[0], sum);"), GLOBAL),
    "a grid stride that misses": (
        guarded("for (int i = Row * Width + Col; i <= Width * Width; i += 4096) P[i] = sum;"), INSIDE),
    "one size squared wraps": (guarded("if (Row * Width * Width < 0) P[-1] = sum; " + STORE), INSIDE),
    "return before the barrier": (tiled(fill="if (Row >= Width) return;"), BARRIERS),
    "break before the barrier": (tiled(fill="if (ph * T + tx >= Width) break;"), BARRIERS),
    "continue before the barrier": (tiled(fill="if (Row >= Width) continue;"), BARRIERS),
    "a barrier in a branch of its own": (tiled(first=f"if (Row < Width) {{ {SYNC} }} else {{ {SYNC} }}"), BARRIERS),
    "a barrier by short circuit": (
        tiled(first="Row < Width && wait();", before="__device__ bool wait() { __syncthreads(); return true; }"),
        BARRIERS),
    "a barrier in a loop of its own": (tiled(first=f"for (int i = 0; i < ty + 1; ++i) {SYNC}"), BARRIERS),
    "a barrier of a warp only": (tiled(first="__syncwarp();"), RACES),
    "a fence is no barrier": (tiled(first="__threadfence_block();"), RACES),
    "a barrier in assert's condition": (tiled(second=""), RACES),
    "a barrier in the first phase only": (tiled(second=f"if (ph == 0) {SYNC}"), RACES),
    "a barrier in all but the last phase, read behind": (
        tiled(second=f"if (ph * T + T < Width) {SYNC}")
        .replace("if (Row < Width && Col < Width) P[", "Ms[tx][ty] = 1; if (Row + Col < 0) P["),
        RACES),
    "two dynamic arrays are one": (
        tiled(first=SYNC, second=SYNC).replace("__shared__ float Ms[T][T]; __shared__ float Ns[T][T];",
              "extern __shared__ float a[]; extern __shared__ float b[];").replace("Ms[ty][", "a[ty * T + ")
        .replace("Ns[ty][tx]", "b[tx * T + ty]").replace("Ns[k][tx]", "b[tx * T + k]")
        .replace("dim3(T, T)>>>", "dim3(T, T), T * T * sizeof(float)>>>"), RACES),
    "dynamic memory that is too small": (
        tiled().replace("__shared__ float Ms[T][T];", "extern __shared__ float a[];").replace("Ms[ty][", "a[ty * T + ")
        .replace("dim3(T, T)>>>", "dim3(T, T), T * T>>>"), SHARED),
    "two arrays of one line": (
        tiled(fill="{ __shared__ float s[64]; s[0] = 0; } { __shared__ float s[4]; float* p = s; p[20] = 0; }"),
        SHARED),
    "a local array's end": (guarded(f"float r[4]; for (int i = 0; i <= 4; ++i) r[i] = 0; {STORE}"), SHARED),
    "a local array by a pointer": (guarded(f"float r[4]; float* p = r + 2; p[threadIdx.x] = 0; {STORE}"), SHARED),
    "a shared flag that all set and read": (
        tiled(fill="__shared__ int flag; if (tx == 0) flag = ph;", second="if (flag) sum += 1; " + SYNC), RACES),
    "an array passed twice": (launched(LAUNCH.replace("(M, N, P, Width)", "(P, N, P, Width)")), GLOBAL),
    "another name of the array": (
        launched("float* Q = P;" + LAUNCH.replace("(M, N, P, Width)", "(Q, N, P, Width)")), GLOBAL),
    "arrays inside one allocation": (
        launched("float* all; cudaMalloc(&all, 2 * Width * Width * sizeof(float)); P = all; M = all + Width;" + LAUNCH),
        GLOBAL),
    "an allocation of another array": (
        launched("float* q; cudaMalloc(&q, 16 * sizeof(float)); P = q;" + LAUNCH), INSIDE),
    "an allocation without sizeof": (launched("cudaMalloc(&P, Width * Width);" + LAUNCH), INSIDE),
    "an allocation made twice": (
        launched("cudaMalloc(&P, Width * Width * 4); if (Width > 5) cudaMalloc(&P, 4);" + LAUNCH), INSIDE),
    "the size grows behind the allocation": (
        launched("cudaMalloc(&P, Width * Width * sizeof(float)); Width = Width + 4;" + LAUNCH), INSIDE),
    "an allocation whose size overflows a char": (
        launched("unsigned char bytes = Width * Width * 4; cudaMalloc(&P, bytes);" + LAUNCH), INSIDE),
    "no block at small sizes": (launched(LAUNCH.replace("(Width + T - 1) / T", "Width / T")), START),
    "the blocks of the other branch": (
        launched("dim3 b(T, T); if (Width < 9) { b.x = 64; b.y = 64; } else { b.x = 32; }"
                 + LAUNCH.replace("dim3(T, T)", "b")), START),
    "a launch in the else branch": (
        launched("int side = 2048; if (Width < 5) { side = T; } else { "
                 "MatrixMulKernel<<<dim3(9, 9), dim3(side, 1)>>>(M, N, P, Width); }"),
        START),
    "a launch in a loop": (
        launched("for (int s = 1; s < 4096; s *= 2) MatrixMulKernel<<<dim3(9, 9), dim3(s, 1)>>>(M, N, P, Width);"),
        START),
    "a second launch with another block": (
        launched(LAUNCH + "MatrixMulKernel<<<dim3(9, 9), dim3(1024, 2)>>>(M, N, P, Width);"), START),
    "more threads than a block has": (launched(LAUNCH.replace("dim3(T, T)", "dim3(Width, Width)")), START),
    "a block that is deeper than 64": (launched(LAUNCH.replace("dim3(T, T)", "dim3(1, 1, 128)")), START),
    "two blocks of one row along z": (
        launched(LAUNCH.replace("dim3(blocks, blocks)", "dim3(blocks, blocks, 2)")), GLOBAL),
    "two threads of one cell along z": (launched(LAUNCH.replace("dim3(T, T)", "dim3(T, T, 2)")), GLOBAL),
    "blocks that are wider than the tile": (launched(LAUNCH.replace("dim3(T, T)", "dim3(T + 1, T)")), GLOBAL),
    "a size of 16 bits": (
        tiled(parameters="float* M, float* N, float* P, short Width"), ARITHMETIC),
    "tiles for another block": (tiled(host=LAUNCH.replace("dim3(T, T)", "dim3(2 * T, T)")), SHARED),
    "the grid in float": (
        launched("float w = Width; int blocks = w / 4.0f + 0.75f; "
                 "MatrixMulKernel<<<dim3(blocks, blocks), dim3(T, T)>>>(M, N, P, Width + 1);"), INSIDE),
    "assembly": (guarded(f'asm("st.global.f32 [%0], 0;" :: "l"(P + Width * Width)); {STORE}'), INSIDE),
    "a switch": (guarded("switch (Width) { case 3: Row++; default: P[Row * Width + Col] = sum; }"), INSIDE),
    "an index from shared memory": (tiled(fill="__shared__ int at; at = Row; P[at * Width + Col] = 0;"), INSIDE),
    "an index from a vote": (guarded("P[__ballot_sync(0xffffffff, sum > 0)] = sum;"), INSIDE),
}  # fmt: skip

FIXED = """
#define WIDTH 16
#define SIDE 16
const int Pitch = 16;
__global__ void matmul(float A[][WIDTH], const float* B, float* C)
{
    int row = blockIdx.y * 4 + threadIdx.y, col = blockIdx.x * 4 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < WIDTH; ++k) sum += A[row][k] * B[k * WIDTH + col];
    C[row * WIDTH + col] = sum;
}
void host(float (*A)[WIDTH], const float* B, float* C) { matmul<<<dim3(4, 4), dim3(4, 4)>>>(A, B, C); }
"""
FIXED_WRONG = {
    "a block of columns too many, a block of rows too few": FIXED.replace("<<<dim3(4, 4)", "<<<dim3(8, 2)"),
    "the next column": FIXED.replace("C[row * WIDTH + col]", "C[row * WIDTH + col + (row < 15)]"),
    "the row before, from its end": FIXED.replace("C[row * WIDTH + col]", "C[(row + 1) * WIDTH + col - 16]"),
    "columns behind the row of a two-dimensional array": FIXED.replace(
        "A[row][k]", "A[row - (row > 0)][k + 16 * (row > 0)]"),
    "another number for the row's width": FIXED.replace("B[k * WIDTH + col]", "B[k * (WIDTH - 1) + col]"),
    "a local variable of the constant's name": FIXED.replace("float sum = 0;", "float sum = 0; int Pitch = 15;")
        .replace("C[row * WIDTH + col]", "C[row * Pitch + col]"),
}  # fmt: skip


def test_rows_of_a_constant_width_are_proved():
    for text in (FIXED, FIXED.replace("C[row * WIDTH", "C[WIDTH * row")):
        proof = proof_of(text)
        assert proof.proved, proof
        assert "for WIDTH = 16" in proof.assumption


@pytest.mark.parametrize("name", FIXED_WRONG)
def test_a_wrong_row_of_a_constant_width_is_not_proved(name):
    proof = proof_of(FIXED_WRONG[name])
    assert ROWS not in [a.name for a in proof.answers if a.verdict is Verdict.PROVED], proof


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_not_proved(name):
    text, where = WRONG[name]
    proof = proof_of(text)
    assert not proof.proved, proof
    proved = [a.name for a in proof.answers if a.verdict is Verdict.PROVED]
    assert where not in proved, (where, proof)
