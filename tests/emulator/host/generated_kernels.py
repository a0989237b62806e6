"""Random kernels without races, with divergent threads: branches, loops with early exits, local arrays, barriers."""

# ruff: noqa: E501 — lines of CUDA C
from __future__ import annotations

import random
import re

BLOCKS = [(16, 2, 1), (8, 4, 1), (32, 1, 1), (5, 3, 1), (33, 1, 1), (7, 2, 3), (48, 1, 1), (3, 1, 1), (4, 8, 2)]


LEAVES = ["a", "b", "c", "t", "n", "(int)threadIdx.x", "(int)threadIdx.y", "(int)blockIdx.x", "u", "N", "N"]
INTEGERS = [
    "(I + I)", "(I - I)", "((I) * 3 % 101)", "((I) % 7 * (I % 5))", "(I / 3)", "(I / -2)", "(I / (n + 1))", "(I / (1 + (t & 3)))",
    "(I & I)", "(I ^ 5)", "-(I)", "((I) >> 1)", "((I & 15) << 2)", "in[(I & 63)]", "mine[I & 3]", "mine[D]", "(C ? I : I)",
    "(int)(x * 0.5f)", "twice(I % 50)", "min(I, I)", "(int)(short)(I)", "(int)(unsigned char)(I)",
    "(int)((unsigned)(I) / 3u % 97u)", "in[((t + u) & 63)]", "grid[I & 1][I & 1]", "(I % (n + 2))",
]  # fmt: skip
REALS = [
    "(R + R)", "(R - R)", "(R * 0.5f)", "(float)(I % 9)", "fabsf(R)", "sqrtf(fabsf(R))", "(C ? R : R)", "fmaxf(R, R)",
    "(float)((double)(R) / 3.0)",
]  # fmt: skip
CONDITIONS = [
    "t % 3 == D % 3",
    "t % 2 == 0",
    "I < I",
    "(I) != 0",
    "t < n",
    "x > R",
    "(int)threadIdx.x < D + D",
    "n > 3",
]
SIMPLE = [
    "a = I % 1000;", "b += I % 100;", "c = I % 500;", "x = R;", "y += R;", "mine[I & 3] = I % 300;", "mine[D] += I % 9;",
    "++b;", "a--;", "out[t] = I % 1000;", "gives[t] += R;", "grid[I & 1][1] ^= I % 64;", "u = N;", "count(&tally[I & 7]);",
    "out[t] += 1; out[t]++;", "flag = C;", "if (flag) a = 1;",
]  # fmt: skip


class Draw:
    """One kernel: `k(int* out, const int* in, const float* real, float* gives, int* tally, int n)`.

    In the templates I stands for an int, R for a float, C for a condition, N for a number and D for one below 4."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.depth = 0
        self.fresh = 0
        self.loops = 0

    def made(self, text: str, deep: int) -> str:
        kinds = {"I": self.integer, "R": self.real, "C": self.condition}
        plain = {"N": lambda: str(self.random.randint(-5, 9)), "D": lambda: str(self.random.randint(0, 3))}
        return re.sub(r"\b[IRCND]\b", lambda m: kinds[m[0]](deep + 1) if m[0] in kinds else plain[m[0]](), text)

    def integer(self, deep: int = 0) -> str:
        """An expression without overflow or invalid index."""
        return self.made(self.random.choice(LEAVES if deep > 2 or self.random.random() < 0.25 else INTEGERS), deep)

    def real(self, deep: int = 0) -> str:
        leaves = ["x", "y", "0.25f", "2.0f", "real[t & 63]", "real[I & 63]"]
        return self.made(self.random.choice(leaves if deep > 2 or self.random.random() < 0.3 else REALS), max(2, deep))

    def condition(self, deep: int = 0) -> str:
        if deep < 2 and self.random.random() < 0.35:
            return self.made(self.random.choice(["(C && C)", "(C || C)", "!(C)"]), deep)
        return self.made(self.random.choice(CONDITIONS), max(deep, 1))

    def pick(self, *items: str) -> str:
        return self.random.choice(items)

    def statements(self, most: int = 4) -> str:
        return " ".join(self.statement() for _ in range(self.random.randint(1, most)))

    def statement(self) -> str:
        chosen = self.random.random()
        if chosen < 0.45 or self.depth > 2:
            return self.simple()
        self.depth += 1
        made = self.compound(chosen)
        self.depth -= 1
        return made

    def simple(self) -> str:
        if self.loops and self.random.random() < 0.12:
            return self.made(f"if (C) {self.pick('break', 'continue')};", 0)
        if self.random.random() < 0.03:
            return self.made("if (C) return;", 0)
        return self.made(self.random.choice(SIMPLE), 0)

    def compound(self, chosen: float) -> str:
        self.fresh += 1
        name = f"i{self.fresh}"
        if chosen < 0.65:
            other = f" else {{ {self.statements(2)} }}" if self.random.random() < 0.5 else ""
            return f"if ({self.condition()}) {{ {self.statements()} }}{other}"
        if chosen < 0.7:
            return f"{{ int a = {self.integer(1)} % 40; {self.statements(2)} b += a % 10; }}"
        self.loops += 1
        body = self.statements(3)
        self.loops -= 1
        bound = self.pick(str(self.random.randint(1, 5)), f"({self.integer(2)} & 7)", "(n & 3)", "(t & 3)")
        if chosen < 0.9:
            return f"for (int {name} = 0; {name} < {bound}; {name}++) {{ b += {name}; {body} }}"
        if chosen < 0.95:
            return f"{{ int {name} = {bound}; while ({name} > 0) {{ --{name}; {body} }} }}"
        return f"{{ int {name} = {bound}; do {{ {body} }} while (--{name} > 0); }}"

    def kernel(self, name: str) -> str:
        middle = ""
        if self.random.random() < 0.5:
            middle = "room[me] = a % 100; __syncthreads(); b += room[(me + 1) % size]; __syncthreads();"
            if self.random.random() < 0.5:
                middle = f"for (int p = 0; p < 3; p++) {{ {middle} c += p; }}"
        first = self.statements(5).replace("return;", "b++;") if middle else self.statements(5)
        return f"""
__global__ void {name}(int* out, const int* in, const float* real, float* gives, int* tally, int n) {{
  __shared__ int room[128];
  int size = blockDim.x * blockDim.y * blockDim.z;
  int me = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int t = me + size * blockIdx.x;
  int a = t, b = 1, c = threadIdx.x; int u = 2; float x = 1.5f * t, y = in[t & 63]; bool flag = false;
  int mine[4] = {{1, t, 3}}; int grid[2][2] = {{{{1, 2}}, {{3, t}}}};
  {first}
  {middle}
  {self.statements(5)}
  out[t] += a % 1000 + b % 1000 + c % 1000 + mine[t & 3] + mine[1] + grid[1][t & 1] + u + flag;
  gives[t] += x + y;
}}"""


def program(seed: int, kernels: int) -> str:
    """A program that launches the kernels, each with its own block size, and prints their results."""
    draw = random.Random(seed)
    texts, launches = [], []
    for i in range(kernels):
        texts.append(Draw(seed * 1000 + i).kernel(f"k{i}"))
        block = draw.choice(BLOCKS)
        sizes = ", ".join(map(str, block))
        launches.append(f"  k{i}<<<2, dim3({sizes})>>>(out, in, real, gives, tally, {draw.randint(0, 40)}); show();")
    return f"""#include <cstdio>
#include <cstring>
__device__ int twice(int v) {{ if (v > 20) return v; return 2 * v + (int)threadIdx.x; }}
__device__ void count(int* where) {{ atomicAdd(where, 1 + (int)threadIdx.y); }}
{"".join(texts)}
int *out, *in, *tally; float *real, *gives;
void show() {{
  cudaDeviceSynchronize();
  unsigned long h = 7; for (int i = 0; i < 256; i++) h = h * 31 + (unsigned)out[i];
  for (int i = 0; i < 8; i++) h = h * 31 + (unsigned)tally[i];
  for (int i = 0; i < 256; i++) {{ unsigned bits; memcpy(&bits, &gives[i], 4); if (gives[i] != gives[i]) bits = 1; h = h * 31 + bits; }}
  printf("%lu %d %d %g\\n", h, out[0], out[17], gives[3]);
  for (int i = 0; i < 256; i++) {{ out[i] = i; gives[i] = 0; }}
}}
int main() {{
  cudaMallocManaged(&out, 1024); cudaMallocManaged(&in, 256); cudaMallocManaged(&real, 256); cudaMallocManaged(&gives, 1024); cudaMallocManaged(&tally, 32);
  for (int i = 0; i < 64; i++) {{ in[i] = i * 37 % 23 - 6; real[i] = i * 0.75f - 9; }}
  for (int i = 0; i < 256; i++) {{ out[i] = i; gives[i] = 0; }}
  for (int i = 0; i < 8; i++) tally[i] = 0;
{chr(10).join(launches)}
  cudaFree(out); cudaFree(in); cudaFree(real); cudaFree(gives); cudaFree(tally);
}}
"""
