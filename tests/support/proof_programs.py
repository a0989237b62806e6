"""Programs that move x to y, whole or with one thing changed: their kernel, their host, and what is proved of them."""

from __future__ import annotations

from tilewise.emulator.check.loading import choose, load
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.limits import DEFAULT
from tilewise.emulator.prove.prove import Proof, prove

PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <utility>
{before}
__global__ void move(float* x, float* y, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {kernel}
}}
{between}
int main(int argc, char** argv)
{{
    {host}
}}
"""
KERNEL = "if (i < n) y[i] = x[i];"
ARRAYS = "float *a, *b; cudaMalloc(&a, n * sizeof(float)); cudaMalloc(&b, n * sizeof(float));"
SIZE = "int n = 1000;"
LAUNCH = "move<<<(n + 255) / 256, 256>>>(a, b, n);"
RIGHT = f"{SIZE} {ARRAYS} {LAUNCH}"
INSIDE, GLOBAL, START, SHARED, MEETS = "global bounds", "global races", "launch", "shared bounds", "shared races"


def program(host: str = RIGHT, kernel: str = KERNEL, before: str = "", between: str = "") -> str:
    return PROGRAM.format(host=host, kernel=kernel, before=before, between=between)


def proof_of(text: str) -> Proof:
    loaded = load(text, None, None, DEFAULT)
    return prove(Prepared(loaded, choose(loaded, None)[0]), DEFAULT)


def passing(arguments: str, more: str = "") -> str:
    return program(RIGHT.replace("move<<<", more + " move<<<").replace("(a, b, n)", f"({arguments})"))


def between(more: str, **others: str) -> str:
    """Between the allocations and the launch."""
    return program(f"{SIZE} {ARRAYS} {more} {LAUNCH}", **others)


def sums(kernel: str, shared: str = "") -> str:
    """With s[256] in shared memory, 256 threads a block."""
    return program(
        RIGHT.replace("256>>>", f"256{shared}>>>"), f"__shared__ float s[256]; int t = threadIdx.x; {kernel}"
    )
