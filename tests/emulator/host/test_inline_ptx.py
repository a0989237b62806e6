"""asm("...") with common PTX instructions: the results of equivalent C statements."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(3)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = """
#include <cstdio>
__global__ void k(long long* out, float* f) {{ __shared__ int s[4]; int a = 5, b = -7, c = 0; unsigned u = 0xabcdu; float x = 0; long long w = 0; s[0] = 41; (void)s; (void)u;
  {body}
  out[0] = c; out[1] = w; f[0] = x; }}
int main() {{ long long h[2], *d; float g[4], *e; cudaMalloc(&d, 16); cudaMalloc(&e, 16); cudaMemset(e, 0, 16); k<<<1, 1>>>(d, e);
  cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost); cudaMemcpy(g, e, 16, cudaMemcpyDeviceToHost); printf("%lld %lld %g %g\\n", h[0], h[1], g[0], g[1]); cudaFree(d); cudaFree(e); return 0; }}
"""
CASES = {
    "add": ('asm("add.s32 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));', "-2 0 0 0"),
    "a sum that wraps": ('asm("add.s32 %0, %1, %2;" : "=r"(c) : "r"(2147483647), "r"(1));', "-2147483648 0 0 0"),
    "registers of its own": ('asm("{ .reg .u32 t; mul.lo.u32 t, %1, %1; mul.lo.u32 %0, t, %1; }" : "=r"(c) : "r"(a));', "125 0 0 0"),
    "mad": ('asm("mad.lo.s32 %0, %1, %2, 100;" : "=r"(c) : "r"(a), "r"(b));', "65 0 0 0"),
    "mad.wide": ('asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(w) : "r"(1 << 30), "r"(8), "l"(1ll));', "0 8589934593 0 0"),
    "mul.hi": ('asm("mul.hi.u32 %0, %1, %2;" : "=r"(c) : "r"(0x80000000u), "r"(6));', "3 0 0 0"),
    "bfe": ('asm("bfe.u32 %0, %1, 4, 8;" : "=r"(c) : "r"(u));', "188 0 0 0"),
    "bfe of a sign": ('asm("bfe.s32 %0, %1, 12, 4;" : "=r"(c) : "r"(u));', "-6 0 0 0"),
    "bfi": ('asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(c) : "r"(0x5), "r"(0xffff));', "62975 0 0 0"),
    "shifts past the width": ('asm("shl.b32 %0, %1, 40;" : "=r"(c) : "r"(a)); int d; asm("shr.s32 %0, %1, 40;" : "=r"(d) : "r"(b)); w = d;', "0 -1 0 0"),
    "a predicate": ('asm("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.s32 %0, 1, 2, p; @p mov.u32 %0, 9; @!p add.s32 %0, %0, 40; }" : "=r"(c) : "r"(a), "r"(b));', "42 0 0 0"),
    "fma": ('asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(x) : "f"(2.f), "f"(3.f), "f"(0f3F800000));'.replace('"f"(0f3F800000)', '"f"(1.f)'), "0 0 7 0"),
    "a float by its bits": ('asm("mov.f32 %0, 0f40490FDB;" : "=f"(x)); asm("mov.b32 %0, %1;" : "=r"(c) : "f"(1.f));', "1065353216 0 3.14159 0"),
    "store and load": ('asm volatile("st.global.f32 [%0], %1;" :: "l"(f + 1), "f"(9.f) : "memory"); asm volatile("ld.global.f32 %0, [%1+4];" : "=f"(x) : "l"(f));', "0 0 9 9"),
    "shared memory": ('unsigned at = (unsigned)__cvta_generic_to_shared(s); asm volatile("ld.shared.s32 %0, [%1];" : "=r"(c) : "r"(at));', "41 0 0 0"),
    "cvt": ('asm("cvt.rni.s32.f32 %0, %1;" : "=r"(c) : "f"(2.6f)); asm("cvt.rn.f32.s32 %0, %1;" : "=f"(x) : "r"(b));', "3 0 -7 0"),
    "atom": ('out[1] = 4; asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(w) : "l"(out + 1), "l"(3ll)); w += out[1];', "0 11 0 0"),
    "who it is": ('unsigned lane, n; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); asm volatile("mov.u32 %0, %ntid.x;" : "=r"(n)); c = lane + 10 * n;', "10 0 0 0"),
    "nothing": ('asm volatile("" ::: "memory"); asm volatile("membar.gl;"); asm volatile("bar.sync 0;"); c = 1;', "1 0 0 0"),
    "two halves": ('asm("mov.b64 %0, {%1, %2};" : "=l"(w) : "r"(1), "r"(2)); unsigned lo, hi; asm("mov.b64 {%0, %1}, %2;" : "=r"(lo), "=r"(hi) : "l"(w)); c = lo + 10 * hi;', "21 8589934593 0 0"),
}  # fmt: skip


def run(tmp_path, body):
    path = tmp_path / "program.cu"
    path.write_text(PROGRAM.format(body=body))
    return run_program(path, [], Options(), capture=True)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", CASES)
def test_an_instruction_equals_its_statement_in_c(tmp_path, name):
    body, printed = CASES[name]
    report = run(tmp_path, body)
    assert (report.output.strip(), report.faults, report.message) == (printed, [], "")


def test_an_unknown_instruction_is_refused_by_its_name(tmp_path):
    report = run(tmp_path, 'asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0}, {%0};" : "=f"(x));')
    assert report.ended == "refused"
    assert "mma.sync" in report.message


WRONG = (
    'asm(".reg" : "=r"(c));', 'asm(".reg .u32;" : "=r"(c));', 'asm(".reg .u32 9;" : "=r"(c));', 'asm(42);',
    'asm("mov.f32 %0, 0f123456789;" : "=f"(x));', 'asm("@p @p @p mov.u32 %0, 1;" : "=r"(c));', 'asm("mov.u32 %0, 1;" : "=x"(c));',
    'asm("add.s32 %0, %0, %2;" : "=r"(c) : "0"(a), "r"(b));', 'asm("add.s32 %0, %9, 1;" : "=r"(c));', 'asm x;', 'asm("bra L1;");',
    'asm("' + "," * 5000 + '");', 'asm("mov.b64 {%0}, %1;" : "=r"(c) : "l"(w));', 'asm("ld.global.s32 %0, %1;" : "=r"(c) : "l"(w));',
)  # fmt: skip


@pytest.mark.drawn(3)
@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_invalid_ptx_is_refused_with_a_message(tmp_path, body):
    report = run(tmp_path, body)
    assert report.ended == "refused"
    assert "program.cu:4" in report.message


def test_an_operand_in_the_register_of_the_first(tmp_path):
    report = run(tmp_path, 'c = 30; asm("add.s32\t%0, %0, %2;" : "=r"(c) : "0"(c), "r"(12));')
    assert (report.output, report.faults) == ("42 0 0 0\n", [])


def test_a_fault_in_an_operand_is_reported_at_its_line(tmp_path):
    report = run(tmp_path, 'asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(f + 4));')
    assert [(f.kind.value, f.place.line) for f in report.faults] == [("out-of-bounds", 4)]


ASYNCHRONOUS = r"""
#include <cstdio>
__device__ void copy16(void* to, const void* from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from));
}
__global__ void k(const float* in, float* out) {
  __shared__ __align__(16) float a[128], b[128];
  int i = threadIdx.x * 4, first = blockIdx.x * 128;
  copy16(a + i, in + first + i); copy16(b + i, in + first + i);
  asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  for (int j = 0; j < 4; ++j) out[first + i + j] = a[127 - i - j] + b[i + j];
}
int main() {
  const int n = 512; float h[n], *x, *y;
  for (int i = 0; i < n; ++i) h[i] = i;
  cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4); cudaMemcpy(x, h, n * 4, cudaMemcpyHostToDevice);
  k<<<4, 32>>>(x, y);
  cudaMemcpy(h, y, n * 4, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[511]); cudaFree(x); cudaFree(y);
}
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("", ""), []),
        (("__syncthreads();", ""), ["race"]),
        (("copy16(b + i,", "copy16(b + i + 4,"), ["out-of-bounds", "uninitialised-read"]),
    ],
)  # fmt: skip
def test_asynchronous_copies_by_addresses_of_shared_memory(tmp_path, change, found):
    """Such addresses are offsets: the interpreter, whose shared variables are arrays apart, does not take them."""
    path = tmp_path / "program.cu"
    path.write_text(ASYNCHRONOUS.replace(*change))
    report = run_program(path, [], Options(), capture=True)
    assert sorted({f.kind.value for f in report.faults}) == found
    assert report.output == "127 895\n" or found
