"""`realign.cu` behind a C++ compiler: lines of every dtype that start anywhere arrive whole, on boundaries."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from behind_a_compiler import COMPILER, built
from tilewise.algebra.dtypes import DTYPES
from tilewise.engines.cuda.mma_sync import _realigned, _scratch_bytes
from tilewise.engines.cuda.placed import Placed
from tilewise.engines.cuda.realign import LINES, SEGMENT, Edge, Lines
from tilewise.kernels.render import kernel_text
from tilewise.kernels.render_hopper import ELEMENT
from tilewise.problem import Layout

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def realign(tmp_path_factory):
    alone = "static void let_next_kernel_start() {}\n"  # nothing is queued behind it here
    text = ELEMENT + alone + kernel_text("hopper/words.cuh") + kernel_text("hopper/realign.cu")
    return built(text, "realign", tmp_path_factory.mktemp("realign"))


def bytes_at(address, count):
    return bytes((ctypes.c_char * count).from_address(address))


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "cols", "extra", "offset", "turned"),
    [(37, 45, 6, 1, False), (300, 9, 1, 0, True), (17, 3030, 3, 3, False), (5, 2, 1, 1, False), (1, 700, 0, 5, False)],
)
def test_lines_arrive_whole(realign, name, rows, cols, extra, offset, turned):
    dtype = DTYPES[name]
    size, (count, length) = dtype.itemsize, (cols, rows) if turned else (rows, cols)
    lead = length + extra
    memory = np.random.default_rng(0).integers(0, 256, (count * lead + offset) * size + 16, np.uint8)
    start = -(-memory.ctypes.data // 16) * 16 + offset * size
    source = Placed(start, dtype, rows, cols, Layout(1, lead) if turned else Layout(lead, 1))
    scratch = np.zeros(_scratch_bytes(source, ()) + 128, np.uint8)
    made, (job,) = _realigned(source, (), -(-scratch.ctypes.data // 128) * 128)
    for along in {1, 2, math.ceil(job.length / SEGMENT)}:  # blocks that share a line
        scratch[:] = 0
        realign((math.ceil(job.lines / LINES), along, 1), (256,), (job, Lines(), Edge(), Edge()))
        lead_to = made.layout.col if turned else made.layout.row
        for line in range(count):
            wanted = bytes_at(start + line * lead * size, length * size)
            assert bytes_at(made.pointer + line * lead_to * size, length * size) == wanted
