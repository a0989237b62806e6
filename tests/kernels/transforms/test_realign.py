"""`realign.cu` and `realign_with_edges.cu` behind a C++ compiler: lines of every dtype that start anywhere arrive
whole, on boundaries, and are multiplied with an edge meanwhile."""

from __future__ import annotations

import ctypes
import math

import ml_dtypes
import numpy as np
import pytest

from behind_a_compiler import COMPILER, built
from host_card import parameter
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.shared.text import kernel_text
from tilewise.kernels.transforms.realign import (
    LINES,
    SEGMENT,
    Lines,
    LinesOfStack,
    Realigned,
    realign_launches,
    render_realign,
    scratch_bytes,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.text import SUMMED_ACROSS, SUMMED_ALONG, render_realign_with_edges
from tilewise.kernels.wgmma_gemm.wgmma_half.thin_edges import EdgeCopy, Sums, planes_of

BFLOAT16 = ml_dtypes.bfloat16

pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler"),
    pytest.mark.drawn(3),
]  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run


COPIES = """
typedef unsigned long long Barrier;
static void barrier_init(Barrier*, unsigned) {}
static void barrier_init_done() {}
static void barrier_arrive(Barrier*) {}
static void barrier_expect(Barrier*, unsigned) {}
static void barrier_wait(Barrier*, unsigned) {}
static void copy_bytes(void* to, const void* from, unsigned bytes, Barrier*) { memcpy(to, from, bytes); }
"""


def without_ptx(text):
    """Nothing is queued behind these kernels here, and copies of the copy engine finish at once."""
    return text.replace(kernel_text("shared/ptx.cuh"), COPIES)


@pytest.fixture(scope="module")
def realign(tmp_path_factory):
    return built(without_ptx(render_realign()), "realign", tmp_path_factory.mktemp("realign"))


@pytest.fixture(scope="module")
def realign_with_edges(tmp_path_factory):
    """By whether k lies along the lines."""
    folder = tmp_path_factory.mktemp("edges")
    return {
        along_k: built(without_ptx(render_realign_with_edges("bfloat16", along_k)), "realign_with_edges", folder)
        for along_k in (False, True)
    }


def rows_at(made, source, scratch):
    """The kernel's parameters for a single matrix, its holes filled with these addresses."""
    bases = {"M": source, "scratch": -(-scratch.ctypes.data // 128) * 128}
    return Lines.from_buffer_copy(parameter(made.lines, bases)), bases["scratch"]


def bytes_at(address, count):
    return bytes((ctypes.c_char * count).from_address(address))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "cols", "extra", "offset", "transposed"),
    [(37, 45, 6, 1, False), (300, 9, 1, 0, True), (17, 3030, 3, 3, False), (5, 2, 1, 1, False), (1, 700, 0, 5, False)],
)
def test_rows_arrive_whole(realign, name, rows, cols, extra, offset, transposed):
    dtype = DTYPES[name]
    size, (count, length) = dtype.itemsize, (cols, rows) if transposed else (rows, cols)
    lead = length + extra
    memory = np.random.default_rng(0).integers(0, 256, (count * lead + offset) * size + 16, np.uint8)
    start = -(-memory.ctypes.data // 16) * 16 + offset * size
    source = Placed(Address("M", 0, start % 16), dtype, rows, cols, Layout(1, lead) if transposed else Layout(lead, 1))
    scratch = np.zeros(scratch_bytes(source, ()) + 128, np.uint8)
    made = Realigned(source, (), Address("scratch"))
    job, target = rows_at(made, start, scratch)
    for along in {1, 2, math.ceil(job.length / SEGMENT)}:  # blocks that share a line
        scratch[:] = 0
        realign((math.ceil(job.lines / LINES), along, 1), (256,), (LinesOfStack(job, 1), LinesOfStack()))
        lead_to = made.placed.layout.col if transposed else made.placed.layout.row
        for line in range(count):
            wanted = bytes_at(start + line * lead * size, length * size)
            assert bytes_at(target + line * lead_to * size, length * size) == wanted


@pytest.mark.drawn(2)
@pytest.mark.parametrize("along_k", [False, True])
@pytest.mark.parametrize(
    ("lines", "length", "extra", "offset"),
    [(70, 1100, 1, 3), (33, 512, 3, 0), (8, 1030, 0, 1), (100, 9, 8, 7), (2, 1, 5, 2)],
)
def test_rows_are_multiplied_with_an_edge_meanwhile(realign_with_edges, lines, length, extra, offset, along_k):
    random = np.random.default_rng(1)
    lead = length + extra
    memory = np.full(lines * lead + offset + 8, np.nan, BFLOAT16)  # what lies between the lines spoils every sum
    first = -memory.ctypes.data % 16 // 2 + offset
    cells = np.lib.stride_tricks.as_strided(memory[first:], (lines, length), (2 * lead, 2))
    cells[:] = random.normal(size=(lines, length)).astype(BFLOAT16)
    edge = random.normal(size=(length if along_k else lines, 3)).astype(BFLOAT16)
    source = Placed(Address("M", 0, cells.ctypes.data % 16), DTYPES["bfloat16"], lines, length, Layout(lead, 1))
    scratch = np.zeros(scratch_bytes(source, ()) + 128, np.uint8)
    made = Realigned(source, (), Address("scratch"))
    job, target = rows_at(made, cells.ctypes.data, scratch)
    count, pitch = planes_of(source, along_k)
    planes = np.full(count * pitch + 8, np.nan, np.float32)
    at = -(-planes.ctypes.data // 16) * 16
    copied = np.zeros(3 * edge.shape[0], BFLOAT16)
    sums = Sums(edge.ctypes.data + 2, 3, at, pitch)  # the second of three columns
    aside = EdgeCopy(edge.ctypes.data, copied.ctypes.data, edge.shape[0], 3, 3, 1)
    segment, block = SUMMED_ALONG if along_k else SUMMED_ACROSS
    grid = (math.ceil(lines / block), math.ceil(length / segment), 2)
    realign_with_edges[along_k](grid, (256,), (job, Lines(), sums, Sums(), aside, EdgeCopy()))
    for line in range(lines):
        wanted = bytes_at(cells.ctypes.data + line * lead * 2, length * 2)
        assert bytes_at(target + line * made.placed.layout.row * 2, length * 2) == wanted
    found = np.frombuffer((ctypes.c_char * (4 * count * pitch)).from_address(at), np.float32).reshape(count, pitch)
    wide, weights = cells.astype(np.float64), edge[:, 1].astype(np.float64)
    expected = wide @ weights if along_k else weights @ wide
    np.testing.assert_allclose(found.sum(0)[: len(expected)], expected, rtol=1e-5, atol=1e-4)
    assert copied.reshape(3, -1).T.tobytes() == edge.tobytes()


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("members", "rows", "cols", "extra", "apart"),
    [(3, 17, 33, 0, 5), (1, 5, 7, 1, 0), (4, 9, 256, 3, 1), (2, 300, 1, 0, 0)],
)
def test_short_rows_of_a_stack_arrive_whole(tmp_path_factory, members, rows, cols, extra, apart):
    kernel = built(without_ptx(render_realign()), "realign_short", tmp_path_factory.mktemp("short"))
    lead, step = cols + extra, rows * (cols + extra) + apart
    memory = np.random.default_rng(0).integers(0, 2**16, members * step + 16, np.uint16)
    start = -(-memory.ctypes.data // 16) * 16 + 2
    source = Placed(Address("M", 0, 2), DTYPES["bfloat16"], rows, cols, Layout(lead, 1, (step,)))
    scratch = np.full(scratch_bytes(source, (members,)) + 128, 0xEE, np.uint8)
    made = Realigned(source, (members,), Address("scratch"))
    (launch,) = realign_launches([made])
    assert launch.name == "realign_short"
    target = -(-scratch.ctypes.data // 128) * 128
    kernel(launch.grid, (256,), [parameter(a, {"M": start, "scratch": target}) for a in launch.arguments])
    for member in range(members):
        for row in range(rows):
            at = target + 2 * (
                member * (made.placed.layout.stack[0] if members > 1 else 0) + row * made.placed.layout.row
            )
            assert at % 16 == 0
            assert bytes_at(at, 2 * cols) == bytes_at(start + 2 * (member * step + row * lead), 2 * cols)
