"""Shared pages of the shadow agree with a plain byte for each byte."""

from __future__ import annotations

import mmap
import os
import random

import numpy as np
import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.runtime.uniform_shadow import PIECE, UniformShadow
from tilewise.system.memory import resident

pytestmark = pytest.mark.drawn(5)  # each program is compiled in a process, 0.2 to 2 s

ROOM = 12 * PIECE
STATES = (0, 1, 3, 4, 6, 9, 11, 2, 7)

# six arrays of 48 MB each: with a shadow of the same size they would exceed 512 MiB
SIX = """\
#include <cstdio>
#include <cstdlib>
#include <cstring>
__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
int main() {
  int n = 12000000;
  size_t m = n * sizeof(float);
  float *a = (float *)malloc(m), *b = (float *)malloc(m), *c = (float *)malloc(m), *x, *y, *z;
  for (int i = 0; i < n; i++) { a[i] = i % 5; b[i] = i % 3; }
  cudaMalloc(&x, m); cudaMalloc(&y, m); cudaMalloc(&z, m);
  cudaMemcpy(x, a, m, cudaMemcpyHostToDevice);
  cudaMemcpy(y, b, m, cudaMemcpyHostToDevice);
  add<<<(n + 255) / 256, 256>>>(x, y, z, n);
  cudaMemcpy(c, z, m, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; i++) sum += c[i];
  printf("%.0f\\n", sum);
  cudaFree(x); cudaFree(y); cudaFree(z);
  free(a); free(b); free(c);
}
"""


class Plain:
    """One byte for each byte, and nothing else."""

    def __init__(self) -> None:
        self.shadow = np.zeros(ROOM, np.uint8)

    def fill(self, at, size, state):
        self.shadow[at : at + size] = state

    def change(self, at, size, keep, give):
        self.shadow[at : at + size] = (self.shadow[at : at + size] & keep) | give

    def copy(self, to, source, size, own, take):
        self.shadow[to : to + size] = (self.shadow[to : to + size] & own) | (
            self.shadow[source : source + size].copy() & take
        )


def both() -> tuple[UniformShadow, np.ndarray, Plain]:
    pages = mmap.mmap(-1, ROOM, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    shadow = np.frombuffer(pages, np.uint8)
    return UniformShadow(shadow), shadow, Plain()


def some_range(draw: random.Random) -> tuple[int, int]:
    at = draw.choice((draw.randrange(ROOM - 1), draw.randrange(12) * PIECE))
    return at, min(ROOM - at, draw.choice((1, 100, PIECE, 3 * PIECE, draw.randrange(1, ROOM))))


def one_change(draw: random.Random, pair: tuple[UniformShadow, Plain], shadow: np.ndarray) -> None:
    at, size = some_range(draw)
    kind = draw.randrange(4)
    if kind == 3:  # as compiled code does
        state = draw.choice(STATES)
        shadow[at : at + size] = pair[1].shadow[at : at + size] = state
        return
    to = draw.randrange(ROOM - size + 1)
    give, keep, state = draw.choice((0, 2, 8)), draw.choice((255, 247, 0)), draw.choice(STATES)
    masks = draw.choice(((0, 255), (5, 2)))
    for each in pair:
        if kind == 0:
            each.fill(at, size, state)
        elif kind == 1:
            each.change(at, size, keep, give)
        else:
            each.copy(to, at, size, *masks)


@pytest.mark.parametrize("round_", range(6))
def test_any_changes_in_any_order_agree_with_plain_bytes(round_):
    draw = random.Random(f"{os.environ['TILEWISE_TEST_SEED']} {round_}")
    uniform, shadow, plain = both()
    for _ in range(25):
        one_change(draw, (uniform, plain), shadow)
        at, size = some_range(draw)
        if draw.random() < 0.3:
            uniform.collapse(at, size, draw.random() < 0.5)
        for wanted in (1, 2, 3):
            expected = plain.shadow[at : at + size]
            assert uniform.has(at, size, wanted) == ((expected & wanted) == wanted).all()
            assert uniform.has(at, size, wanted, exactly=True) == (expected == wanted).all()
        assert np.array_equal(shadow, plain.shadow)


@pytest.mark.skipif(resident() == 0, reason="this system does not tell what a process takes")
def test_pieces_of_equal_states_share_memory():
    uniform, shadow, _ = both()
    if not uniform.supported:
        pytest.skip("no files in memory here")
    shadow[:] = 3
    before = resident()
    uniform.collapse(0, ROOM)
    assert before - resident() > ROOM // 2
    assert uniform.has(0, ROOM, 3, exactly=True)
    assert before - resident() > ROOM // 2  # the pages were not accessed
    assert bytes(shadow[::4096]) == bytes([3]) * (ROOM // 4096)
    assert before - resident() < ROOM // 2  # now they are resident,
    uniform.collapse(0, ROOM, again=True)
    assert before - resident() > ROOM // 2  # until they are shared again


VECTORS = (
    SIX.replace("#include <cstring>", "#include <vector>\nstruct Pair { int one; float two; };")
    .replace("int n = 12000000;", "int n = 12000000; std::vector<Pair> p(2); p[0] = Pair{1, 2.0f}; p[1] = p[0];")
    .replace("*a = (float *)malloc(m), *b = (float *)malloc(m), *c = (float *)malloc(m), *x", "*x")
    .replace("float *x", "std::vector<float> a(n), b(n), c(n);\n  float *x")
    .replace("x, a, m", "x, a.data(), m").replace("y, b, m", "y, b.data(), m").replace("c, z, m", "c.data(), z, m")
    .replace("  free(a); free(b); free(c);\n", "")
)  # fmt: skip


@pytest.mark.skipif(resident() == 0, reason="this system does not tell what a process takes")
@pytest.mark.parametrize("text", [SIX, VECTORS])  # the second copies objects: bytes may be uninitialised
def test_arrays_of_half_the_limit_fit_it_with_their_shadow(tmp_path, text):
    path = tmp_path / "six.cu"
    path.write_text(text)
    ran = run_program(path, options=Options(memory=512 << 20, interpret=0.0), capture=True)
    assert (ran.ended, ran.message, ran.output) == ("exit", "", "36000000\n")
    assert not ran.findings


def test_one_uninitialised_element_of_a_large_array_is_reported(tmp_path):
    path = tmp_path / "six.cu"
    path.write_text(SIX.replace("i < n; i++) { a[i]", "i < n - 1; i++) { a[i]"))
    ran = run_program(path, options=Options(memory=1 << 30), capture=True)
    assert [f.kind.value for f in ran.findings] == ["uninitialised-read"] * 2
    path.write_text(SIX.replace("b[i] = i % 3; }", "if (i != 7000000) b[i] = i % 3; }"))
    assert len(run_program(path, options=Options(memory=1 << 30), capture=True).findings) == 1


@pytest.mark.skipif(resident() == 0, reason="this system does not tell what a process takes")
def test_memory_that_is_never_accessed_takes_no_pages(tmp_path):
    path = tmp_path / "large.cu"
    path.write_text("""#include <cstdio>
#include <cstdlib>
int main(int argc, char** argv) { size_t n = 800ul << 20; char *p = (char*)malloc(n), *d; cudaMalloc(&d, n);
  size_t touched = argc > 1 ? n : 1000; for (size_t i = 0; i < touched; i++) p[i] = i % 100;
  cudaMemcpy(d, p, 1000, cudaMemcpyHostToDevice); cudaMemcpy(p + 1000, d, 1000, cudaMemcpyDeviceToHost);
  printf("%d\\n", p[1007]); cudaFree(d); free(p); }
""")
    ran = run_program(path, options=Options(memory=512 << 20), capture=True)
    assert (ran.ended, ran.output, ran.findings) == ("exit", "7\n", [])
    ran = run_program(path, ["all"], options=Options(memory=512 << 20), capture=True)
    assert ran.ended == "limit"
    assert "memory were used up" in ran.message


def test_a_large_uninitialised_local_array_is_reported_once(tmp_path):
    """Each element once was a runtime call: 810,000 of them took 17 s."""
    path = tmp_path / "local.cu"
    path.write_text("""#include <cstdio>
int main() { double a[300][300]; double s = 0; struct { int one, two; } p;
  for (int i = 0; i < 300; i++) for (int j = 0; j < 300; j++)
    s += a[i][j];
  a[299][299] = 1;
  printf("%g %d\\n", s, p.one);
  printf("%d\\n", p.two); }
""")
    ran = run_program(path, capture=True)
    assert [(f.place.line, f.count) for f in ran.faults if f.place] == [(4, 1), (6, 1), (7, 1)]
