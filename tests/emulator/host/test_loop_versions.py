"""Loops with a version without checks: their results, and that all faults in them are reported."""

from __future__ import annotations

import random

import pytest

from seeds import next_seed
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

HEAD = "#include <cstdio>\n#include <cstdlib>\n#include <vector>\n"
SUM = "float sum(const float* a, int n) { float s = 0; for (int k = 0; k < n; k++) s += a[k]; return s; }\n"
FILL = "float* a = (float*)malloc(n * sizeof(float)); for (int i = 0; i < n; i++) a[i] = i; "
FREES = "void floor(float* p, int k) { if (k == 30) free(p); } "
FAULTS = {
    "one too many": ("out-of-bounds", FILL + "float s = 0;\nfor (int k = 0; k <= n; k++) s += a[k];\n", "free(a);"),
    "half of it": (
        "uninitialised-read",
        "float* a = (float*)malloc(n * sizeof(float)); for (int i = 0; i < n / 2; i++) a[i] = i; float s = 0;\n"
        "for (int k = 0; k < n; k++) s += a[k];\n",
        "free(a);",
    ),
    "freed since": (
        "use-after-free",
        FILL
        + "float s = 0; for (int t = 0; t < 2; t++) {\nfor (int k = 0; k < n; k++) s += a[k];\nif (t == 0) free(a); }",
        "",
    ),
    "written behind": ("out-of-bounds", FILL + "float s = 0;\nfor (int k = 0; k < n; k++) a[k + 1] = k;\n", "free(a);"),
    "a vector cut": (
        "out-of-bounds",
        "std::vector<float> a(n, 1.0f); float s = 0; for (int t = 0; t < 2; t++) {\n"
        "for (int k = 0; k < n; k++) s += a[k];\na.resize(n / 2); }",
        "",
    ),
    "an object without values copied there": (
        "uninitialised-read",
        "struct Pair { float x, y; }; Pair none; Pair* p = (Pair*)malloc(n / 2 * sizeof(Pair)); float* a = (float*)p;"
        "for (int i = 0; i < n; i++) a[i] = i; float s = 0; for (int t = 0; t < 2; t++) {\n"
        "for (int k = 0; k < n; k++) s += a[k];\np[3] = none; }",
        "free(p);",
    ),
    "copied there by the loop itself": (
        "uninitialised-read",
        "struct Pair { float x, y; }; Pair none; Pair* p = (Pair*)malloc(n / 2 * sizeof(Pair)); float* a = (float*)p;"
        "for (int i = 0; i < n; i++) a[i] = i; float s = 0;\n"
        "for (int k = 0; k < n; k++) { s += a[k]; p[n / 2 - 1] = none; }\n",
        "free(p);",
    ),
    "freed by a function with a library's name": (
        "use-after-free",
        FILL + "float s = 0;\nfor (int k = 0; k < n; k++) { floor(a, k); s += a[k]; }\n",
        "",
    ),
    "a subscript too large": (
        "overflow",
        FILL + "float s = 0; int i = 1 << 20;\nfor (int k = 0; k < n; k++) s += a[(i * 4096 + k) - i * 4096];\n",
        "free(a);",
    ),
}


def run(folder, text):
    path = folder / "program.cu"
    path.write_text(text)
    return run_program(path, [], Options(), capture=True)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_versioned_loop_is_reported_at_its_line(tmp_path, name):
    kind, body, end = FAULTS[name]
    report = run(tmp_path, f'{HEAD}{FREES}int main() {{ int n = 40;\n{body} printf("%g\\n", s); {end} return 0; }}\n')
    lines = body.split("\n")
    wanted = 5 + next(i for i, line in enumerate(lines) if line.startswith("for (int k"))
    assert (kind, wanted) in [(f.kind.value, f.place.line) for f in report.faults if f.place is not None]


def test_random_products_are_right(tmp_path):
    """Through pointers and vectors, by rows and columns, backwards, and with arrays that the loop initialises."""
    seed = next_seed() % (1 << 30)
    r = random.Random(seed)
    m, k, n = (r.randrange(9, 40) for _ in range(3))
    text = f"""{HEAD}
void times(const std::vector<int>& A, const int* B, std::vector<int>& C, int m, int k, int n) {{
  for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) {{
    int s = 0; for (int t = 0; t < k; t++) s += A[i * k + t] * B[t * n + j];
    C[i * n + j] = s; }}
}}
int main() {{ int m = {m}, k = {k}, n = {n}; std::vector<int> A(m * k), C(m * n); int* B = new int[k * n];
  for (int i = 0; i < m * k; i++) A[i] = i % 7 - 3;
  for (int i = 0; i < k * n; i++) B[k * n - 1 - i] = i % 5;
  times(A, B, C, m, k, n); long h = 0; for (int i = 0; i < m * n; i++) h = h * 31 % 1000003 + C[i];
  printf("%ld\\n", h); delete[] B; return 0; }}
"""
    a = [[(i * k + t) % 7 - 3 for t in range(k)] for i in range(m)]
    b = [[(k * n - 1 - (t * n + j)) % 5 for j in range(n)] for t in range(k)]
    h = 0
    for i in range(m):
        for j in range(n):
            h = int(h * 31 - 1000003 * int(h * 31 / 1000003)) + sum(a[i][t] * b[t][j] for t in range(k))
    report = run(tmp_path, text)
    assert (report.output, report.faults) == (f"{h}\n", []), f"seed {seed}"


KERNEL = """
struct Pair {{ float x, y; }};
__global__ void k(const float* a, float* p, Pair* pairs, int n) {{
  Pair none; float s = 0;
  for (int t = 0; t < 2; t++) {{
for (int k = 0; k {test} n; k++) s += a[k] * p[k];
    if ({copies}) pairs[3] = none;
  }}
  p[0] = s;
}}
int main() {{ int n = 40; float h[40]; for (int i = 0; i < n; i++) h[i] = i; float *a, *p;
  cudaMalloc(&a, n * sizeof(float)); cudaMalloc(&p, n * sizeof(float));
  cudaMemcpy(a, h, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(p, h, {given} * sizeof(float), cudaMemcpyHostToDevice);
  k<<<1, 1>>>(a, p, (Pair*)p, n); cudaMemcpy(h, p, 4, cudaMemcpyDeviceToHost);
  printf("%g\\n", h[0]); cudaFree(a); cudaFree(p); return 0; }}
"""
ON_THE_CARD = {
    "right": (None, {}),
    "one too many": ("out-of-bounds", {"test": "<="}),  # of both arrays
    "half of it": ("uninitialised-read", {"given": "n / 2"}),
    "an object without values": ("uninitialised-read", {"copies": "t == 0"}),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ON_THE_CARD)
def test_a_fault_in_a_versioned_loop_of_a_kernel_is_reported(tmp_path, name):
    kind, changes = ON_THE_CARD[name]
    path = tmp_path / "program.cu"
    path.write_text(HEAD + KERNEL.format(**{"test": "<", "given": "n", "copies": "0", **changes}))
    report = run_program(path, [], Options(interpret=0.0), capture=True)
    told = [(f.kind.value, f.place.line) for f in report.faults if f.place is not None]
    assert told == ([(kind, 9)] * (2 if name == "one too many" else 1) if kind else [])
    if kind is None:
        assert report.output == f"{2 * sum(i * i for i in range(40))}\n"


def test_an_overflow_in_every_iteration_is_fast(tmp_path):
    body = "int s = 1; for (int i = 0; i < 3000000; i++)\ns = s * 1103515245 + 12345;"
    report = run(tmp_path, f'{HEAD}int main() {{ {body} printf("%d\\n", s & 255); return 0; }}\n')
    assert [(f.kind.value, f.place.line, f.count) for f in report.faults] == [("overflow", 5, 10_000)]
    assert report.ended == "exit"
