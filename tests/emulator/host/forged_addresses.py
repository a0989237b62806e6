"""Accesses through addresses that a program made up, each to every place of the memory of a program and around it.

The places are those of WebAssembly: the page of NULL, the stack that LLVM spills to, the shadow, the control words (line,
epoch, the stack pointer of checked variables), the data of the module, the ends of the linear memory, and numbers that
are none of its addresses. A program knows them all from the address of one variable. Every access must be reported: the
control words and the shadow are what a program would change to hide its faults."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

HEAD = r"""#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>
typedef unsigned long U;
struct Big { long v[9]; Big() { for (int i = 0; i < 9; i++) v[i] = 0x41; } };
struct Ended { long v; ~Ended() { v = 0x41; } };
struct Shape { virtual long area(long x) { return x; } virtual ~Shape() {} long side; };
volatile U SIZE = 1UL << 36, ROOM = 4 << 20;
volatile long ZERO;
void escaped() { printf("ESCAPED\n"); }
"""
# of `first`, the program's memory: 1 MiB before the variable's page
PLACES = {
    "the page of NULL": "64",
    "the end of the page of NULL": "65528",
    "LLVM's stack": "(64UL << 20) + 65536 - 256",
    "before the memory": "first - 64",
    "the memory's end": "first + SIZE - 4",
    "the shadow": "(U)&here + SIZE + 2 * ROOM",
    "the shadow of the device": "first + SIZE + 2 * ROOM + SIZE / 2",
    "the control words": "first + 2 * SIZE + 3 * ROOM + 64",
    "the epoch": "first + 2 * SIZE + 3 * ROOM + 128",
    "the module's data": "first + 2 * SIZE + 3 * ROOM + (1UL << 20) + 64",
    "the end of the linear memory": "(1UL << 38) - 4",
    "behind the linear memory": "1UL << 38",
    "another address space": "0x7f0000001000UL + ZERO",
    "a negative address": "~0UL - 12",
}
ACCESSES = {
    "store": "*(long*)at = 0x41;",
    "byte": "*(volatile char*)at = 0x41;",
    "load": 'long v = *(volatile long*)at; printf("%ld\\n", v);',
    "struct": "Big b; *(Big*)at = b;",
    "struct read": 'Big b = *(Big*)at; printf("%ld\\n", b.v[3]);',
    "union": "union F { long a; float f[4]; }; ((F*)at)->f[3] = 1; ((F*)at)->a++;",
    "loop": "long* p = (long*)at; for (int i = 0; i < 64; i++) p[i] = 0x41;",
    "loop down": "long* p = (long*)at; for (int i = 63; i >= 0; i--) p[i * 1] += 1;",
    "sum": 'long s = 0; long* p = (long*)at; for (int i = 0; i < 64; i++) s += p[i]; printf("%ld\\n", s);',
    "index": 'long a[4] = {0}; long i = ((long)at - (long)a) / 8; a[i] = 0x41; printf("%ld\\n", a[1]);',
    "row": "float (*m)[16] = (float (*)[16])at; for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) m[i][j] = 1;",
    "reference": "long& r = *(long*)at; r = 0x41; r++;",
    "memset": "memset((void*)at, 0x41, 300);",
    "memcpy": "char t[256]; memset(t, 0x41, 256); memcpy((void*)at, t, 256);",
    "memmove": 'char t[256]; memmove(t, (void*)at, 256); printf("%d\\n", t[9]);',
    "strcpy": 'strcpy((char*)at, "0123456789");',
    "strlen": 'printf("%zu\\n", strlen((char*)at));',
    "sprintf": 'sprintf((char*)at, "%d %s", 65, "text");',
    "printf": 'printf("%.40s\\n", (char*)at);',
    "sscanf": 'sscanf("65", "%ld", (long*)at);',
    "sort": "std::sort((long*)at, (long*)at + 20);",
    "fill": "std::fill((long*)at, (long*)at + 20, 0x41L);",
    "new": "new ((void*)at) Big;",
    "delete": "delete (Ended*)at;",
    "free": "free((void*)at);",
    "realloc": "char* p = (char*)realloc((void*)at, 64); if (p) p[3] = 1;",
    "unique": "std::unique_ptr<Ended> p((Ended*)at); p.reset();",
    "vector": "std::vector<long> v(8, 1); *(long*)&v = (long)at; v[3] = 0x41; v.push_back(2);",
    "string": 'std::string s = "abc"; *(long*)&s = (long)at; s += "defghijklmnopqrstuvwxyz0123456789";',
    "virtual call": 'Shape* s = (Shape*)at; printf("%ld\\n", s->area(3));',
    "forged table": 'Shape* s = new Shape; *(long*)s = (long)at; printf("%ld\\n", s->area(3));',
    "call": "void (*f)() = (void (*)())at; f();",
    "call of escaped": "void (*f)() = (void (*)())((long)escaped ^ (long)at); f();",
    "function object": "std::function<void()> f = [] {}; for (U i = 0; i < sizeof f / 8; i++) ((long*)&f)[i] = (long)at; f();",
    "atexit": "atexit((void (*)())at); exit(3);",
    "qsort": "int a[3] = {3, 1, 2}; qsort(a, 3, 4, (int (*)(const void*, const void*))at); qsort((void*)at, 9, 8, 0);",
    "fread": 'FILE* f = fopen("hostile.cu", "r"); if (!f) { *(long*)at = 1; return 0; } fread((void*)at, 1, 256, f); fclose(f);',
    "fgets": 'FILE* f = fopen("hostile.cu", "r"); if (!f) { *(long*)at = 1; return 0; } fgets((char*)at, 100, f); fclose(f);',
    "cudaMemcpy": "char* d; cudaMalloc(&d, 512); cudaMemset(d, 65, 512); cudaMemcpy((void*)at, d, 512, cudaMemcpyDeviceToHost); cudaMemcpy(d, (void*)at, 512, cudaMemcpyHostToDevice);",
    "cudaMemset": "if (cudaMemset((void*)at, 65, 512)) *(long*)at = 1;",
    "kernel store": "put<<<1, 64>>>((long*)at); cudaDeviceSynchronize();",
    "kernel load": "long* d; cudaMalloc(&d, 512); take<<<1, 64>>>((long*)at, d); cudaDeviceSynchronize();",
    "kernel add": "add<<<4, 64>>>((unsigned*)at); cudaDeviceSynchronize();",
    "kernel loop": "run<<<1, 2>>>((float*)at, 64); cudaDeviceSynchronize();",
    "kernel argument": "Big b; long* d; cudaMalloc(&d, 512); pick<<<1, 64>>>(b, d, ((long)at - (long)&b) / 8); cudaDeviceSynchronize();",
    "kernel shared": "long* d; cudaMalloc(&d, 512); tile<<<1, 64>>>(d, (long)at / 8); cudaDeviceSynchronize();",
}
KERNELS = r"""
__global__ void put(long* p) { p[threadIdx.x] = 0x41; }
__global__ void take(long* p, long* d) { d[threadIdx.x] = p[threadIdx.x]; }
__global__ void add(unsigned* p) { atomicAdd(p + threadIdx.x, 1u); }
__global__ void run(float* p, int n) { for (int i = 0; i < n; i++) p[i * 2 + threadIdx.x] += 1; }
__global__ void pick(Big b, long* d, long i) { ((long*)&b)[i + threadIdx.x] = 3; d[threadIdx.x] = b.v[i]; }
__global__ void tile(long* d, long i) {
  __shared__ long s[64]; s[threadIdx.x] = 1; __syncthreads(); s[i + threadIdx.x] = 2; d[threadIdx.x] = s[3];
}
"""


def program(access: str, place: str) -> str:
    kernels = KERNELS if "<<<" in ACCESSES[access] else ""
    return (
        f"{HEAD}{kernels}int main() {{\n  long here = 1; U first = ((U)&here & ~0xfffUL) - 0x100000UL;\n"
        f"  U at = {PLACES[place]}; (void)first;\n  {ACCESSES[access]}\n  return 0;\n}}\n"
    )


ATTACKS = [(access, place) for access in ACCESSES for place in PLACES]
