"""Inputs nobody would write: the repository's kernels and generated ones, bent; and plain noise. By number, so that
any of them can be made again."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

from small_kernels import kernel

ROOT = Path(__file__).parents[3]
TOKEN = re.compile(r"\s+|\w+|[<>]{2,3}=?|[-+*/%&|^=!<>]=|&&|\|\||\+\+|--|->|::|.", re.S)
WORDS = """
    ( ) { } [ ] < > <<< >>> ; , * & + - / % ? : :: -> . = == += <<= ++ -- ! ~ && || # ## /* */ // 0 1 -1
    2147483647 0xffffffff 1e38f 1e400 1.f 0x 0b2 08 99999999999999999999 'ab' int float double unsigned char
    bool void auto size_t const static extern typedef struct template typename enum union class namespace using
    operator __global__ __device__ __shared__ __syncthreads() __constant__ threadIdx.x blockIdx.y blockDim if
    else for while do switch case default break continue return goto sizeof #if #else #elif #endif defined
    __VA_ARGS__ float4 half atomicAdd min printf assert M N P Width TILE_WIDTH dim3 $ @ `
"""
SPICE = (
    *WORDS.split(),
    "\\", "\n", "\"", "'", "long long", "#define X", "#define F(x) x", "#if 1", "#ifdef A", "#include <x>",
    "#undef X", "#pragma unroll", "#error no", "\0", "é", "中", "\r\n", "\t", "\ufeff",
)  # fmt: skip


@cache
def seeds() -> tuple[tuple[str, ...], ...]:
    """The files to bend, as tokens; long ones are left out, since most of their time would be spent reading them."""
    texts = [p.read_text(encoding="utf-8") for p in sorted(ROOT.rglob("*.cu")) if ".venv" not in p.parts]
    texts += [kernel(n, n) for n in range(6)]
    texts += [
        "__global__ void k(float* A, float* B, float* C, int n) { int i = threadIdx.y, j = threadIdx.x; float s = 0;"
        " for (int l = 0; l < n; ++l) s += A[i * n + l] * B[l * n + j]; C[i * n + j] = s; }",
        "#define T 2\n#define SQ(x) ((x) * (x))\n__global__ void k(int* A, int* B, int* C, int n) "
        "{ __shared__ int s[T][T]; s[threadIdx.y][threadIdx.x] = SQ(n); __syncthreads(); C[0] = s[0][1]; }",
        "struct Matrix { int width, height; float* elements; };\n__device__ float get(Matrix m, int r, int c) "
        "{ return m.elements[r * m.width + c]; }\n__global__ void k(Matrix A, Matrix B, Matrix C) "
        "{ C.elements[threadIdx.x] = get(A, 0, 0) * get(B, 0, 0); }",
        "template <typename T, int N> __global__ void k(const T* a, const T* b, T* c, int n) "
        "{ T s[N] = {0}; for (int i = 0; i < N; i++) s[i] = a[i]; c[threadIdx.x] = s[threadIdx.x % N] + b[0]; }\n"
        "void run(float* a, float* b, float* c) { k<float, 4><<<1, dim3(2, 2)>>>(a, b, c, 4); }",
    ]  # fmt: skip
    return tuple(tuple(TOKEN.findall(t)) for t in texts if len(t) < 3000)


def bent(number: int) -> str:
    """Input `number`."""
    r = random.Random(number)
    kind = r.random()
    if kind < 0.05:
        return "".join(chr(r.choice((r.randrange(128), r.randrange(0x3000)))) for _ in range(r.randrange(80))) + "\n"
    if kind < 0.15:
        body = " ".join(r.choice(SPICE) for _ in range(r.randrange(40)))
        return f"__global__ void k(float* A, float* B, float* C, int n) {{ {body} }}"
    tokens = list(r.choice(seeds()))
    for _ in range(r.choice((1, 1, 1, 2, 3, 8))):
        _bend(r, tokens)
    text = "".join(tokens)
    return text if "\n" in text else text + "\n"


def _bend(r: random.Random, tokens: list[str]) -> None:
    if not tokens:
        return
    at = r.randrange(len(tokens))
    way = r.randrange(9)
    if way == 0:
        del tokens[at]
    elif way == 1:
        tokens.insert(at, r.choice(SPICE))
    elif way == 2:
        tokens[at] = r.choice(SPICE)
    elif way == 3:
        other = r.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif way == 4:
        del tokens[at : at + r.randrange(1, 20)]
    elif way == 5:
        tokens[at:at] = tokens[at : at + r.randrange(1, 20)] * r.choice((1, 1, 30))
    elif way == 6:
        words = [i for i, t in enumerate(tokens) if t[0].isalnum() or t[0] == "_"]
        if len(words) > 1:
            tokens[r.choice(words)] = tokens[r.choice(words)]
    elif way == 7:
        other = r.choice(seeds())
        start = r.randrange(len(other))
        tokens[at:] = other[start:] if r.random() < 0.5 else other[start : start + 12]
    else:
        letters = list(tokens[at])
        letters[r.randrange(len(letters))] = chr(r.randrange(32, 127))
        tokens[at] = "".join(letters)
