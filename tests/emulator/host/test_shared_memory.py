"""Shared memory that is read before it is stored to, and barriers that some threads miss: found in kernels that only run
compiled as in those that are interpreted."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(3)  # half a second for each kernel: two compilations

KERNELS = {
    "right": "__shared__ float s[64]; s[t] = x[i]; __syncthreads(); y[i] = s[63 - t];",
    "one_cell_too_far": "__shared__ float s[65]; s[t] = x[i]; __syncthreads(); y[i] = s[t + 1];",
    "by_a_pointer": "__shared__ float s[65]; float* p = s; p[t] = x[i]; __syncthreads(); y[i] = p[t + 1];",
    "of_dynamic_size": "extern __shared__ float d[]; d[t] = x[i]; __syncthreads(); y[i] = d[t + 1];",
    "of_two_dimensions": "__shared__ float s[8][9]; s[t / 8][t % 8] = x[i]; __syncthreads(); y[i] = s[t % 8][t / 8] + s[t / 8][t % 8 + 1];",
    "an_atomic": "__shared__ int c[4]; if (t == 0) c[0] = 0; __syncthreads(); atomicAdd(&c[t % 2], 1); __syncthreads(); y[i] = c[0];",
    "vectors": "__shared__ float4 s[64]; s[t] = make_float4(x[i], 1, 2, 3); __syncthreads(); float4 v = s[63 - t]; y[i] = v.x + v.w;",
    "four_at_once": "__shared__ float s[256]; float4 v; v.x = x[i]; v.y = v.z = v.w = 1; *(float4*)&s[4 * t] = v; __syncthreads(); y[i] = s[255 - t];",
    "half_a_tile": "__shared__ float s[64]; if (t < 32) s[t] = x[i]; __syncthreads(); y[i] = s[t];",
    "in_the_first_block": "__shared__ float s[64]; if (blockIdx.x == 0) s[t] = x[i]; __syncthreads(); y[i] = s[t];",
    "a_flag": "__shared__ bool f; if (t == 0) f = false; __syncthreads(); if (x[i] > 3) f = true; __syncthreads(); y[i] = f;",
    "a_number": "__shared__ float f; if (t == 0) f += 1; __syncthreads(); y[i] = f;",
    "a_barrier_in_a_guard": "__shared__ float s[64]; s[t] = x[i]; if (t < 40) { __syncthreads(); y[i] = s[63 - t]; }",
    "a_barrier_after_a_return": "__shared__ float s[64]; s[t] = x[i]; if (t >= 40) return; __syncthreads(); y[i] = s[t];",
    "a_barrier_in_each_branch": "__shared__ float s[64]; s[t] = x[i]; if (t < 10) { __syncthreads(); }\nelse { __syncthreads(); } y[i] = s[t];",
    "one_more_iteration": "for (int j = 0; j < 2 + (t > 60); j++) __syncthreads(); y[i] = 1;",
    "a_return_in_the_loop": "for (int j = 0; j < 20; j++) { __syncthreads(); if (j == t) return; } y[i] = 1;",
    "a_later_barrier": "__shared__ float s[64]; s[t] = x[i]; if (t < 40) { __syncthreads(); }\n__syncthreads(); y[i] = s[t];",
    "in_a_function": "__shared__ float s[64]; s[t] = x[i]; if (t % 2) wait(s); y[i] = s[t];",
    "a_whole_block": "if (blockIdx.x == 1) { y[i] = 1; return; } __shared__ float s[64]; s[t] = x[i]; __syncthreads(); y[i] = s[63 - t];",
    "past_its_end": "__shared__ float s[32]; s[t] = x[i]; __syncthreads(); y[i] = s[0];",
    "past_a_local_array": "float a[4] = {0}, b[9]; b[t % 9] = a[t % 5] = 1; y[i] = b[t % 9];",
    "a_count": "if (t != 3) y[i] = __syncthreads_count(t > 3);",
}
RIGHT = {
    "right",
    "vectors",
    "four_at_once",
    "a_flag",
    "a_barrier_after_a_return",
    "a_return_in_the_loop",
    "a_whole_block",
}
MAIN = """
int main() { float *x, *y, h[128]; for (int i = 0; i < 128; i++) h[i] = i;
cudaMalloc(&x, 512); cudaMalloc(&y, 512); cudaMemcpy(x, h, 512, cudaMemcpyHostToDevice); cudaMemset(y, 0, 512);
LAUNCHES
cudaMemcpy(h, y, 512, cudaMemcpyDeviceToHost); cudaFree(x); cudaFree(y); }"""


RECURSION = "if (deep(1) != 1) return;"  # is only compiled
NAMES = list(KERNELS)


def program(kernels, first):
    """One kernel a line, which begins with `first`."""
    text = "__device__ int deep(int n) { return n <= 0 ? 0 : 1 + deep(n - 1); }\n"
    text += "__device__ void wait(float* s) { __syncthreads(); s[threadIdx.x] += 1; }\n"
    for name, body in kernels.items():
        head = f"int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; {first}"
        text += f"__global__ void {name}(float* y, const float* x) {{ {head} {body} }}\n"
    return text + MAIN.replace("LAUNCHES", "\n".join(f"{name}<<<2, 64, 1024>>>(y, x);" for name in kernels))


def findings(tmp_path, text, **options):
    path = tmp_path / "program.cu"
    path.write_text(text)
    report = run_program(path, [], Options(**options), capture=True)
    assert report.ended == "exit", report.message
    return report, {(str(f.kind), f.line, f.array) for f in report.faults}


@pytest.mark.parametrize("names", [NAMES[i::7] for i in range(7)], ids=lambda names: names[0])
def test_both_executors_find_the_same_in_shared_memory(tmp_path, names):
    kernels = {name: KERNELS[name] for name in names}
    text = program(kernels, "")
    interpreted, expected = findings(tmp_path, text, interpret=100.0)
    compiled, found = findings(tmp_path, program(kernels, RECURSION))
    assert not any("compiled_blocks" in launch for launch in interpreted.launches)
    assert all(launch["compiled_blocks"] == 2 for launch in compiled.launches)
    assert found == expected
    lines = text.splitlines()
    wrong = {name for name in names if any(f" {name}(" in lines[line - 1] for _, line, _ in found)}
    assert wrong | {"in_a_function", "a_barrier_in_each_branch"} >= set(names) - RIGHT
    assert not wrong & RIGHT


def test_what_is_read_before_a_racing_store_is_a_race_only(tmp_path):
    kernels = {"k": "__shared__ float s[64]; s[t] = x[i]; y[i] = s[63 - t];"}
    _, found = findings(tmp_path, program(kernels, RECURSION))
    assert {kind for kind, *_ in found} == {"race"}


@pytest.mark.parametrize("interpret", [0.0, 100.0])
def test_classes_that_are_defined_where_shared_variables_are(tmp_path, interpret):
    body = "__shared__ struct { float a[64]; int n; } s; __shared__ struct T { int b[2]; } u[4]; s.a[t] = x[i];"
    body += " if (t == 0) { s.n = 3; u[1].b[1] = 5; } __syncthreads(); y[i] = s.a[63 - t] + s.n + u[1].b[1];"
    text = program({"k": body}, "").replace("cudaFree(x)", 'printf("%g %g", h[0], h[127]); cudaFree(x)')
    report, found = findings(tmp_path, text, interpret=interpret)
    assert (report.output, found) == ("71 72", set())


def test_memcpy_and_memset_in_kernels_are_the_cards(tmp_path):
    body = "__shared__ float s[64]; memset(&s[t], 1, 4); memcpy(&s[t], &x[i], sizeof(float)); memmove(&s[t], &s[t], 4);"
    body += " __syncthreads(); y[i] = s[63 - t];"
    text = program({"k": body}, "").replace("cudaFree(x)", 'printf("%g %g", h[0], h[127]); cudaFree(x)')
    report, found = findings(tmp_path, text)
    assert (report.output, found) == ("63 64", set())
    assert {kind for kind, *_ in findings(tmp_path, text.replace("sizeof(float)", "8"))[1]} == {"out-of-bounds", "race"}
