"""Compiled kernels: the same results as the interpreter, faults at their line, no crashes."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

import tilewise
from seeds import next_seed
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.machine.findings import Kind

pytestmark = pytest.mark.drawn(3)  # each program is compiled in a process, 0.2 to 2 s

HEAD = "#include <cstdio>\n#include <cstdlib>\n"
MAIN = """
int main() {
  const int n = SIZE;
  float* h = (float*)malloc(2 * n * sizeof(float));
  for (int i = 0; i < n; i++) h[i] = (i * 37 % 101) * 0.25f - 11;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(y, 0, n * sizeof(float));
  k<<<GRID, BLOCK, SHARED>>>(x, y, n);
  cudaError_t e = cudaDeviceSynchronize();
  if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorName(e)); return 3; }
  cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
  unsigned long sum = 0;
  for (int i = 0; i < n; i++) sum = sum * 31 + *(unsigned int*)&h[i];
  printf("%lu %g %g\\n", sum, h[0], h[n - 1]);
  cudaFree(x); cudaFree(y); free(h);
}
"""
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
KERNELS = {
    "map": f"{INDEX} if (i < n) y[i] = sqrtf(x[i] * x[i] + 1.0f) / (i % 7 + 1);",
    "reduce": f"{INDEX} __shared__ float s[256]; int t = threadIdx.x; s[t] = i < n ? x[i] : 0; __syncthreads();"
    " for (int d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }"
    " if (i < n) y[i] = s[0];",
    "counted": f"{INDEX} __shared__ float s[256]; int t = threadIdx.x; s[t] = 1; __syncthreads();"
    " atomicAdd(&s[t * 7 % blockDim.x], 2.0f); __syncthreads(); if (i < n) y[i] = s[t] + x[i];",
    "dynamic": f"{INDEX} extern __shared__ float s[]; s[threadIdx.x] = i < n ? x[i] : 1; __syncthreads();"
    " if (i < n) y[i] = s[blockDim.x - 1 - threadIdx.x];",
    "shuffle": f"{INDEX} float v = i < n ? x[i] : 0; for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);"
    " v = __shfl_sync(0xffffffff, v, 0); if (i < n) y[i] = v;",
    "atomics": f"{INDEX} if (i < n) atomicAdd(&y[i % 16], (float)(i % 5));",
    "loop": f"{INDEX} for (; i < n; i += gridDim.x * blockDim.x) {{ float a = 0; for (int j = 0; j <= i % 9; j++) {{ if (j == 4) continue; a += x[(i + j) % n]; }} y[i] = a; }}",
}


@pytest.fixture
def run(tmp_path):
    def go(text, **options):
        path = tmp_path / "program.cu"
        path.write_text(HEAD + text)
        return run_program(path, [], Options(**options), capture=True)

    return go


def program(body, size=1000, grid=5, block=256, before="", shared=1024):
    text = f"{before}\n__global__ void k(const float* x, float* y, int n) {{ {body} }}\n{MAIN}"
    for word, value in (("SIZE", size), ("GRID", grid), ("BLOCK", block), ("SHARED", shared)):
        text = text.replace(word, str(value))
    return text


def test_compiled_and_interpreted_give_the_same_bits(run):
    seed = next_seed() % 2**32
    draw = random.Random(seed)
    block = draw.choice([32, 64, 128, 256])
    size = draw.randint(1, 3000)
    parts = {}
    for name, body in KERNELS.items():
        grid = -(-size // block) if name != "loop" else 3
        parts[name] = program(body, size, grid, block).replace(" k(", f" {name}(").replace(" k<<<", f" {name}<<<")
    text = "\n".join(part.replace("int main() {", f"int run_{name}() {{") for name, part in parts.items())
    text = text.replace("free(h);\n}", "free(h); return 0;\n}")
    text += "int main() { " + " ".join(f"run_{name}();" for name in parts) + " }"
    interpreted, compiled = run(text, interpret=100.0), run(text, interpret=0.0)
    assert compiled.ended == "exit", (seed, compiled.message)
    assert interpreted.output == compiled.output, (seed, size, block)
    assert not compiled.faults, (seed, [f.message for f in compiled.faults])
    assert all(launch["compiled_blocks"] == launch["grid"][0] for launch in compiled.launches)


def test_a_large_grid_is_interpreted_in_part_and_compiled_for_the_rest(run):
    text = program(KERNELS["reduce"], 200_000, 782, 256)
    whole, part = run(text, interpret=100.0), run(text, interpret=0.05)
    assert whole.output == part.output
    launch = part.launches[0]
    assert launch["interpreted_blocks"] > 0
    assert launch["interpreted_blocks"] + launch["compiled_blocks"] == 782


def test_a_kernel_with_long_loops_is_restarted_as_compiled_code(run):
    body = f"{INDEX} if (i >= n) return; float a = y[i]; for (int j = 0; j < 300000; j++) a = a * 0.5f + x[i]; y[i] = a + y[i];"
    report = run(program(body, 64, 1, 64), interpret=1.0, seconds=30)
    assert report.ended == "exit", report.message
    assert report.launches[0]["compiled_blocks"] == 1
    assert report.output.endswith("-22 -18\n")  # 2 · x: y was restored before the restart


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (f"{INDEX} y[i] = x[i < n ? i : 0];", Kind.OUT_OF_BOUNDS, "past the end of y"),
        (f"{INDEX} if (i < n) y[i] = x[i + 5];", Kind.OUT_OF_BOUNDS, "past the end of x"),
        (f"{INDEX} float* p = 0; if (i == 3) p[0] = 1; else y[0] = 1;", Kind.NULL_POINTER, "thread (x 3, y 0) of block (x 0, y 0)"),
        (f"{INDEX} float a[4]; a[1] = 2; if (i < n) y[i] = a[i % 4];", Kind.UNINITIALISED_READ, "before it was given a value"),
    ],
)  # fmt: skip
def test_faults_of_compiled_code_are_named_at_their_line(run, body, kind, words):
    report = run(program(body), interpret=0.0)
    found = [f for f in report.faults if f.kind is kind]
    assert found, [f.message for f in report.findings]
    assert words in found[0].message
    assert found[0].line == 4
    assert report.ended == "exit"
    assert (report.status == 3) == (kind is Kind.NULL_POINTER)  # the card's error is returned to the program


def test_a_division_by_zero_does_not_stop_a_kernel(run):
    report = run(
        program(f"{INDEX} int z = n - n; if (i < n) y[i] = (float)(7 / (z + (i > 0 ? 1 : 0)));"), interpret=0.0
    )
    assert report.ended == "exit"
    assert report.output.endswith("-1 7\n")


def test_kernels_that_the_interpreter_does_not_support_run_compiled(run):
    before = """
struct Cell { int tag; double weight; char mark; };
struct Twice { float by; __host__ __device__ float operator()(float v) const { return by * v; } };
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
template <class F> __device__ float apply(F f, float v) { return f(v); }
"""
    body = f"{INDEX} Cell c = {{i, 0.5 * i, 'a'}}; Cell* p = &c; Twice t; t.by = 2; if (i < n) y[i] = apply(t, (float)(p->weight + fib(i % 10))) + p->tag + p->mark;"
    report = run(program(body, before=before))
    assert report.ended == "exit", report.message
    assert report.output.split()[1:] == ["97", "2163"]  # 2 · (0 + 0) + 0 + 97, 2 · (499.5 + 34) + 999 + 97
    assert not report.faults


def test_cooperative_groups_of_the_block_and_of_tiles(run):
    before = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;"
    body = f"{INDEX} cg::thread_block b = cg::this_thread_block(); auto t = cg::tiled_partition<32>(b); int v = t.thread_rank();" \
        " for (int d = t.size() / 2; d > 0; d /= 2) v += t.shfl_down(v, d); v = t.shfl(v, 0); b.sync(); if (i < n) y[i] = v + b.size();"  # fmt: skip
    report = run(program(body, before=before), interpret=0.0)
    assert report.ended == "exit", report.message
    assert report.output.split()[1:] == ["752", "752"]


def test_barriers_do_not_wait_for_threads_that_returned(run):
    body = f"{INDEX} __shared__ float s[256]; if (threadIdx.x >= 100) return; s[threadIdx.x] = 1; __syncthreads(); float a = 0; for (int j = 0; j < 100; j++) a += s[j]; if (i < n) y[i] = a;"
    report = run(program(body), interpret=0.0)
    assert report.ended == "exit"
    assert report.output.split()[1:2] == ["100"]


DOWN = "__device__ void down(float* s, int k) { if (k == 0) return; __syncthreads(); s[threadIdx.x] += 1; down(s, k - 1); }"
STEP = "__device__ void step(float* s) { __syncthreads(); s[threadIdx.x] += 1; }\ntypedef void (*act)(float*); __device__ act chosen = step;"


def test_a_function_with_a_barrier_may_be_called_by_a_pointer_but_not_by_itself(run):
    body = (
        f"{INDEX} __shared__ float s[256]; s[threadIdx.x] = i; chosen(s); chosen(s); if (i < n) y[i] = s[threadIdx.x];"
    )
    report = run(program(body, before=STEP), interpret=0.0)
    assert report.ended == "exit", report.message
    assert report.output.split()[1:] == ["2", "1001"]
    report = run(program(body.replace("chosen(s); chosen(s);", "down(s, 2);"), before=DOWN), interpret=0.0)
    assert report.ended != "exit"
    assert "a function with a barrier calls itself" in report.message


THERE = """
import json, pathlib, sys
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
sys.executable = sys.argv[1]
report = run_program(pathlib.Path(sys.argv[2]), [], Options(interpret=0.0, seconds=250, wall=560), capture=True)
print(json.dumps([report.ended, report.output, report.message, [x["compiled_blocks"] for x in report.launches]]))
"""


@pytest.mark.emulated
@pytest.mark.slow
@pytest.mark.parametrize("name", ["reduce", "shuffle"])
def test_barriers_on_the_other_architecture(name, run, tmp_path):
    """Coroutines of another code generator, under an emulator: takes minutes (TILEWISE_EMULATED_PYTHON)."""
    emulated = os.environ["TILEWISE_EMULATED_PYTHON"]
    here = run(program(KERNELS[name], 300, 3, 128), interpret=100.0)
    environment = {**os.environ, "PYTHONPATH": str(Path(tilewise.__file__).parents[1])}
    command = [emulated, "-c", THERE, emulated, str(tmp_path / "program.cu")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["exit", here.output, "", [3]]


def test_constants_that_are_structs_of_members_of_several_sizes(tmp_path):
    (tmp_path / "p.cu").write_text("""#include <cstdio>
struct Setting { float scale; int offset; unsigned char flags[4]; double d; };
__constant__ Setting given;
__device__ Setting kept;
__global__ void use(float* out) { int i = threadIdx.x; out[i] = given.scale * i + given.offset + given.flags[i & 3] + given.d; }
__global__ void set(float* out) { if (threadIdx.x == 0) { kept.flags[1] = 7; kept.scale = 2; kept.d = 0.5; } __syncthreads(); out[threadIdx.x] = kept.flags[1] + kept.scale + kept.d; }
int main() { Setting h{2.f, 3, {0, 1, 2, 3}, 0.25}; float *d, r[8]; cudaMemcpyToSymbol(given, &h, sizeof h); cudaMalloc(&d, 32);
  use<<<1, 8>>>(d); cudaMemcpy(r, d, 32, cudaMemcpyDeviceToHost); for (float x : r) printf("%g ", x);
  set<<<1, 8>>>(d); cudaMemcpy(r, d, 32, cudaMemcpyDeviceToHost); printf("%g", r[3]); cudaFree(d); }
""")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.output == "3.25 6.25 9.25 12.25 11.25 14.25 17.25 20.25 9.5", report.message
    assert report.findings == []


SHUFFLED = r"""
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void a(int* o) { int v; if (threadIdx.x % 32 == 0) v = threadIdx.x; v = __shfl_sync(0xffffffff, v, 0); o[threadIdx.x] = v; }
__global__ void b(int* o) { auto g = cg::coalesced_threads(); int v; if (g.thread_rank() == 0) v = threadIdx.x; o[threadIdx.x] = g.shfl(v, 0) + g.thread_rank(); }
__global__ void c(int* o) { auto t = cg::tiled_partition<16>(cg::this_thread_block()); float f; if (t.thread_rank() == 3) f = 2.5f; o[threadIdx.x] = (int)t.shfl(f, 3); }
int main() { int h[64], *p; cudaMalloc(&p, 256);
  a<<<1, 64>>>(p); cudaMemcpy(h, p, 256, cudaMemcpyDeviceToHost); printf("%d %d\n", h[5], h[40]);
  b<<<1, 64>>>(p); cudaMemcpy(h, p, 256, cudaMemcpyDeviceToHost); printf("%d %d\n", h[5], h[40]);
  c<<<1, 64>>>(p); cudaMemcpy(h, p, 256, cudaMemcpyDeviceToHost); printf("%d %d\n", h[5], h[40]);
  cudaFree(p); }
"""
STAGED = r"""
#include <cuda_pipeline.h>
#include <cstdio>
__global__ void stage(const float4* in, float* out, int n, const double* q) {
  __shared__ float4 buf[2][32]; __shared__ double w[32]; __shared__ float raw[4];
  int t = threadIdx.x; float s = 0;
  __pipeline_memcpy_async(&buf[0][t], &in[t], sizeof(float4)); __pipeline_commit();
  if (t == 0) __pipeline_memcpy_async(raw, in, 16);
  for (int b = 0; b < n / 32; b++) {
    if (b + 1 < n / 32) __pipeline_memcpy_async(&buf[(b + 1) & 1][t], &in[(b + 1) * 32 + t], sizeof(float4));
    __pipeline_commit(); __pipeline_wait_prior(1); __syncthreads();
    float4 v = buf[b & 1][31 - t]; s += v.x + v.w; __syncthreads();
  }
  __pipeline_memcpy_async(&w[t], q + t, sizeof(double), t % 2 ? 8 : 0); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
  out[t] = s + (float)w[31 - t] + raw[2];
}
int main() { const int n = 128; float h[4 * n], r[32]; double q[32]; for (int i = 0; i < 4 * n; i++) h[i] = i; for (int i = 0; i < 32; i++) q[i] = 1000 * i;
  float4* d; float* o; double* e; cudaMalloc(&d, sizeof h); cudaMalloc(&o, sizeof r); cudaMalloc(&e, sizeof q); cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(e, q, sizeof q, cudaMemcpyHostToDevice);
  stage<<<1, 32>>>(d, o, n, e); cudaMemcpy(r, o, sizeof r, cudaMemcpyDeviceToHost); printf("%g %g\n", r[0], r[31]); cudaFree(d); cudaFree(o); cudaFree(e); }
"""


@pytest.mark.parametrize("interpret", [0.0, 4.0])
def test_lanes_that_no_one_reads_need_no_value_in_a_shuffle(tmp_path, interpret):
    path = tmp_path / "program.cu"
    path.write_text(SHUFFLED)
    report = run_program(path, [], Options(interpret=interpret), capture=True)
    assert (report.output, report.findings) == ("0 32\n5 40\n2 2\n", []), report.message


@pytest.mark.parametrize("interpret", [0.0, 4.0])
def test_asynchronous_copies_of_the_pipeline_primitives(tmp_path, interpret):
    path = tmp_path / "program.cu"
    path.write_text(STAGED)
    report = run_program(path, [], Options(interpret=interpret), capture=True)
    assert (report.output, report.findings) == ("2542 1550\n", []), report.message


def test_calls_of_library_functions_by_divergent_lanes_may_take_and_give_bytes(run):
    body = f"{INDEX} float v = i % 5 == 3 ? 0 / (x[i] - x[i]) : x[i]; char letter = 60 + i % 40;"
    body += " if (i < n) y[i] = isnan(v) + 2 * isfinite(v) + 4 * (isupper(letter) != 0) + 8 * signbit(v);"
    report = run(program(body, 100, 1, 100), interpret=0.0)
    assert (report.ended, report.faults) == ("exit", []), report.message
    assert report.launches[0]["lanes"] > 1
    assert report.output == run(program(body, 100, 1, 100), interpret=100.0).output


# each line stores to o[0] to o[3]; t is the thread, v a number of its own
EXCHANGES = """
o[0] = __shfl_sync(~0u, v, 3); o[1] = __shfl_sync(~0u, v, t + 1, 8); o[2] = __shfl_down_sync(~0u, v, 3, 8); o[3] = __shfl_up_sync(~0u, v * 0.5f, 2, 16) * 2;
o[0] = __shfl_xor_sync(~0u, v, 5); o[1] = __shfl_xor_sync(~0u, v * 0.5, 12, 8) * 2; o[2] = __shfl(v, 2) + __shfl_up(v, 1); o[3] = __shfl_down(v, 1) - __shfl_xor(v, 1);
o[0] = __ballot_sync(~0u, t % 3 == 0); o[1] = __ballot_sync(0xff0, t % 3 == 0); o[2] = __any_sync(~0u, t == 33) + 2 * __all_sync(~0u, t < 32); o[3] = __ballot(t < 4);
o[0] = __reduce_add_sync(~0u, v); o[1] = __reduce_min_sync(0xf0u, v); o[2] = __reduce_max_sync(~0u, (unsigned)v); o[3] = __reduce_xor_sync(~0u, (unsigned)v);
o[0] = __reduce_and_sync(~0u, v | 8u); o[1] = __reduce_or_sync(~0u, 1u << (t & 7)); o[2] = __activemask(); o[3] = __any(t == 1) + __all(t < 20);
__shared__ unsigned n[4]; if (t < 4) n[t] = 5; __syncthreads(); atomicDec(&n[0], 9); atomicInc(&n[1], 9); atomicAdd_block(&n[2], v); atomicExch(&n[3], 7u); __syncthreads(); o[0] = n[0]; o[1] = n[1]; o[2] = n[2]; o[3] = n[3]; __syncthreads();
o[0] = __syncthreads_count(t > 5); o[1] = __syncthreads_and(t < 48) + 2 * __syncthreads_and(t); o[2] = __syncthreads_or(t == 40); o[3] = __half2float(__shfl_xor_sync(~0u, __float2half(v), 1));
"""
NUMBERS = """
unsigned u = v * 2654435761u; o[0] = __popc(u); o[1] = __clz((int)(u >> t % 32)); o[2] = __ffs((int)(u << t % 32)); o[3] = __clz(0) + __ffs(0) + __popc(~0u);
unsigned long long w = v * 0x9E3779B97F4A7C15ull; o[0] = __popcll(w); o[1] = __clzll((long long)(w >> t)); o[2] = __clzll(0); o[3] = (int)labs(-3L * t) + (int)llabs(-5LL * t);
double d = (t - 7) * 0.5; o[0] = lround(d) + 100 * lrint(d); o[1] = llround(d) + 100 * llrint(d); o[2] = lroundf(d) + 100 * lrintf(d); o[3] = llroundf(d) + 100 * llrintf(d);
float f = t == 3 ? 0.0f / (t - 3) : t == 4 ? 1.0f / (t - 4) : t; o[0] = isnan(f); o[1] = isinf(f); o[2] = std::isfinite(f); o[3] = (int)(100 * rsqrtf(v + 1.f)) + (int)(100 * rsqrt(v + 2.0));
float g = v * 0.7f; o[0] = __float_as_int(g); o[1] = (int)__int_as_float(o[0]); o[2] = __float_as_uint(g) >> 20; o[3] = __ulonglong_as_double(__double_as_longlong(3.0 * t));
float x = v + 1; int i = *(int*)&x; i = 0x5f3759df - (i >> 1); o[0] = 1000 * *(float*)&i; *(unsigned*)&x |= 0x80000000u; o[1] = x; o[2] = 0; o[3] = 0;
float nan = t % 3 ? v : 0.0f / (t - t); o[0] = 8 * min(nan, 2.0f); o[1] = 8 * max(2.0f, nan); o[2] = (int)fminf(nan, 1.f) + (int)fmax(1.0, (double)nan); o[3] = 1 / min(0.0f, -0.0f) < 0;
o[0] = v / (t % 2); o[1] = v % (t % 3); o[2] = v / (float)(t % 2) > 1e30f; o[3] = (unsigned)v / (unsigned)(t % 2) + -v / 7 + -v % 7 + v / -3;
o[0] = v * 1e9f; o[1] = -v * 1e9; o[2] = (unsigned)(-1.5f - t); o[3] = (short)(v * 1000) + (signed char)(v * 7) + (unsigned char)(300.5f + t);
short c = v * 700, e = v * 300; c += e; unsigned char l = v * 3; l *= 5; o[0] = c; o[1] = c * e; o[2] = l; o[3] = -5 >> (t & 31) | 1 << (t & 31);
__half a = __float2half(v * 0.25f), b = __int2half_rn(t); o[0] = 8 * __half2float(__hmax(a, b)); o[1] = 8 * __half2float(__hmin(a, b)); o[2] = __half2float(__hfma(a, b, a)); o[3] = 8 * __half2float(__hsub(__hadd(a, b), __hmul(a, b)));
__half h = __float2half(v * 0.25f), none = __float2half(0.0f / (t - t)); o[0] = __half_as_ushort(h) + __half_as_short(h); o[1] = 4 * __half2float(__ushort_as_half(__half_as_ushort(h))); o[2] = 4 * __half2float(__hmax(h, none)); o[3] = 4 * __half2float(__hmin(none, h));
__nv_bfloat16 p = __float2bfloat16(v * 0.3f), q = __float2bfloat16_rn(t * 1.7f); o[0] = 100 * __bfloat162float(__hadd(p, q)); o[1] = 100 * __bfloat162float(__hmul(p, q)); o[2] = 0; o[3] = 0;
"""


@pytest.mark.parametrize("lines", [EXCHANGES, NUMBERS], ids=["between threads", "of numbers"])
def test_device_functions_are_the_same_in_both_executors(run, lines):
    lines = lines.strip().splitlines()
    body = "".join(f"{{ int* o = out + {4 * i} + {4 * len(lines)} * t; {line} }}\n" for i, line in enumerate(lines))
    text = f"""#include <cmath>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(int* out, const int* in) {{ int t = threadIdx.x, v = in[t];
{body} }}
int main() {{ int n = 48, all = {48 * 4 * len(lines)}; int h[{48 * 4 * len(lines)}]; for (int i = 0; i < n; i++) h[i] = (i * 7 + 3) % 101;
  int *in, *out; cudaMalloc(&in, n * 4); cudaMalloc(&out, all * 4); cudaMemcpy(in, h, n * 4, cudaMemcpyHostToDevice);
  k<<<1, n>>>(out, in); cudaMemcpy(h, out, all * 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < all; i++) printf("%d%c", h[i], i % 4 == 3 ? '\\n' : ' '); cudaFree(in); cudaFree(out); }}"""
    interpreted, compiled = run(text, interpret=100.0), run(text, interpret=0.0)
    assert (interpreted.ended, interpreted.faults, compiled.faults) == ("exit", [], []), interpreted.message
    assert compiled.launches[0]["compiled_blocks"] == 1 > interpreted.launches[0].get("compiled_blocks", 0)
    rows = [out.output.splitlines() for out in (interpreted, compiled)]
    wrong = [
        (lines[i % len(lines)], i // len(lines), *pair)
        for i, pair in enumerate(zip(*rows, strict=True))
        if pair[0] != pair[1]
    ]
    assert not wrong, wrong[:3]


OTHER_NAMES = """__device__ float at(const float* from, int i) { return from[i]; }
__global__ void k(const float* in, float* out, int* row, float* none, int n) {
  int i = threadIdx.x; BEFORE
  out[i] = in[i + 9 * n] + 1;
  row[i - n] = 1;
  if (n < 0) out[i] = at(none, i);
}
int main() {
  float *a, *b, h[8]; int *c;
  cudaMalloc(&a, 32); cudaMalloc(&b, 32); cudaMalloc(&c, 32); cudaMemset(a, 0, 32);
  k<<<1, 8>>>(a, b, c, 0, 8); cudaMemcpy(h, b, 32, cudaMemcpyDeviceToHost); printf("%g\\n", h[3]);
  cudaFree(a); cudaFree(b); cudaFree(c);
}"""


@pytest.mark.parametrize("before", ["", "int z = 0; again: if (z++ < 0) goto again;"], ids=["lanes", "one by one"])
def test_both_executors_name_the_kernels_parameter_and_give_nan_from_outside(run, before):
    """The access may lie closer to another array, or to a variable of the library."""
    expected = run(OTHER_NAMES.replace("BEFORE", ""), interpret=100.0)
    found = run(OTHER_NAMES.replace("BEFORE", before), interpret=0.0)
    for report in (expected, found):
        assert [(f.kind, f.array) for f in report.findings] == [(Kind.OUT_OF_BOUNDS, "in"), (Kind.OUT_OF_BOUNDS, "row")]
        assert report.output == "nan\n"


def test_a_copied_object_outside_of_its_array_has_that_arrays_name(run):
    report = run("""struct Three { float v[3]; };
__global__ void k(const int* first, Three* to, const Three* from, int n) { to[0] = from[first[0] + n]; }
int main(int argc, char** argv) {
  int first; if (argc) first = 2;
  int* a; Three *b, *c; cudaMalloc(&a, 4); cudaMalloc(&b, 24); cudaMalloc(&c, 24);
  cudaMemset(a, 0, 4); cudaMemset(c, 0, 24); k<<<1, 1>>>(a, b, c, first); cudaDeviceSynchronize();
  cudaFree(a); cudaFree(b); cudaFree(c);
}""", interpret=0.0)  # fmt: skip
    assert [f.array for f in report.findings if f.kind is Kind.OUT_OF_BOUNDS] == ["from"]
