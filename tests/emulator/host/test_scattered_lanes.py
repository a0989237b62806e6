"""Gathers and scatters in initialised arrays: the results and reports of single threads."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.machine.atomics import ATOMICS, _added

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = """\
#include <cstdio>
__global__ void k(const TYPE *in, TYPE *out, int n, int step, int far) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  TYPE sum = 0;
  for (int t = 0; t < step; t++) sum += in[i * step + t];
  int where = (i * 7) % n + (i == 37 ? far : 0);
  out[where] = sum + out[where];
}
int main() {
  const int n = 96, step = STEP;
  TYPE h[n * step], r[n], *in, *out;
  for (int i = 0; i < n * step; i++) h[i] = i % 13;
  cudaMalloc(&in, sizeof h); cudaMalloc(&out, sizeof r);
  cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice); cudaMemset(out, 0, sizeof r);
  k<<<3, 32>>>(in, out, n, step, FAR);
  cudaMemcpy(r, out, sizeof r, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) printf("%g ", (double)r[i]);
  cudaFree(in); cudaFree(out);
}
"""


def ran(tmp_path, type_, step, far, interpret, text=PROGRAM):
    path = tmp_path / "k.cu"
    path.write_text(text.replace("TYPE", type_).replace("STEP", str(step)).replace("FAR", str(far)))
    return run_program(path, [], Options(interpret=interpret), capture=True)


@pytest.mark.parametrize("type_", ["float", "double", "int", "unsigned char"])
def test_gathers_and_scatters_agree_with_single_threads(tmp_path, type_):
    compiled, interpreted = (ran(tmp_path, type_, 3, 0, most) for most in (0.0, 1e6))
    assert compiled.launches[0]["lanes"] == 16
    assert compiled.output == interpreted.output
    assert not compiled.findings
    assert not interpreted.findings


@pytest.mark.parametrize("access", ["load", "store"])
@pytest.mark.parametrize("far", [96, -97, 5_000_000])
def test_one_lane_outside_is_reported_and_the_others_continue(tmp_path, far, access):
    text = PROGRAM if access == "load" else PROGRAM.replace(" + out[where]", "")
    right, wrong = (ran(tmp_path, "float", 3, f, 0.0, text) for f in (0, far))
    assert [(f.kind.value, f.place.line, f.access) for f in wrong.findings if f.place] == [("out-of-bounds", 7, access)]
    differ = [i for i, (a, b) in enumerate(zip(right.output.split(), wrong.output.split(), strict=True)) if a != b]
    assert differ == [37 * 7 % 96]


def test_lanes_that_add_to_one_element_do_so_in_order():
    draw = random.Random(os.environ["TILEWISE_TEST_SEED"])
    for dtype in (np.int32, np.uint32, np.uint64):
        data = np.array([draw.randrange(1 << 31) for _ in range(9)], dtype)
        cells = np.array([draw.randrange(9) for _ in range(300)])
        values = np.array([draw.randrange(1 << 31) for _ in range(300)], dtype)
        one_by_one, found = data.copy(), []
        with np.errstate(all="ignore"):
            for cell, value in zip(cells, values, strict=True):
                found.append(one_by_one[cell])
                one_by_one[cell] = ATOMICS["atomicAdd"][1](one_by_one[cell], value)
            assert np.array_equal(_added(data, cells, values), np.array(found, dtype))
        assert np.array_equal(data, one_by_one)
