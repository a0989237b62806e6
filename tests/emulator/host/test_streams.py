"""Work of several streams: what nothing orders is a race; kernels that wait for their whole grid."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.runtime.stream_order import Access, StreamOrder
from tilewise.teaching.trace import check

COPIES = """#include <cstdio>
__global__ void twice(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
int main() {
  const int n = 1024, bytes = n * sizeof(float);
  float *in, *out, *d;
  cudaMallocHost(&in, bytes); cudaMallocHost(&out, bytes); cudaMalloc(&d, bytes);
  for (int i = 0; i < n; i++) in[i] = 1;
  cudaStream_t s, t; cudaEvent_t e;
  cudaStreamCreateWithFlags(&s, FLAGS); cudaStreamCreate(&t); cudaEventCreate(&e);
BODY
  cudaDeviceSynchronize();
  printf("%g\\n", out[n - 1]);
  cudaEventDestroy(e); cudaStreamDestroy(s); cudaStreamDestroy(t);
  cudaFree(d); cudaFreeHost(in); cudaFreeHost(out);
}
"""
UP, DOWN = "cudaMemcpyAsync(d, in, bytes, cudaMemcpyHostToDevice, {});", "cudaMemcpyAsync(out, d, bytes, {}, {});"
DOWN = DOWN.replace("{}", "cudaMemcpyDeviceToHost", 1)
KERNEL = "twice<<<n / 256, 256, 0, {}>>>(d, n);"
LINE = 10  # of BODY's first line

ORDERED = {
    "one stream": [UP.format("s"), KERNEL.format("s"), DOWN.format("s")],
    "an event": [UP.format("s"), "cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0);",
                 KERNEL.format("t"), DOWN.format("t")],
    "the host waits for the stream": [UP.format("s"), "cudaStreamSynchronize(s);",
                                      KERNEL.format("t"), DOWN.format("t")],
    "the host waits for the event": [UP.format("s"), "cudaEventRecord(e, s); cudaEventSynchronize(e);",
                                     DOWN.format("t")],
    "the default stream": [UP.format("s"), KERNEL.format("0"), DOWN.format("t")],
    "parts": ["for (int i = 0; i < 2; i++) { cudaStream_t u = i ? s : t; int at = i * n / 2;",
              "cudaMemcpyAsync(d + at, in + at, bytes / 2, cudaMemcpyHostToDevice, u);",
              "twice<<<2, 256, 0, u>>>(d + at, n / 2);",
              "cudaMemcpyAsync(out + at, d + at, bytes / 2, cudaMemcpyDeviceToHost, u); }"],
    "two readers": [UP.format("s"), "cudaStreamSynchronize(s);", DOWN.format("s"),
                    "float* more; cudaMallocHost(&more, bytes);",
                    "cudaMemcpyAsync(more, d, bytes, cudaMemcpyDeviceToHost, t);",
                    "cudaStreamSynchronize(t); cudaFreeHost(more);"],
}  # fmt: skip
RACING = {  # the body, the line of the second access, the array
    "copy and copy": ([UP.format("s"), DOWN.format("t")], 1, "d"),
    "copy and kernel": ([UP.format("s"), KERNEL.format("t"), DOWN.format("t")], 1, "d"),
    "kernel and copy": ([UP.format("s"), KERNEL.format("s"), DOWN.format("t")], 2, "d"),
    "an event recorded too early": (
        ["cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0);", UP.format("s"), DOWN.format("t")], 2, "d"),
    "the host waits for another stream": ([UP.format("s"), "cudaStreamSynchronize(t);", DOWN.format("t")], 2, "d"),
    "cudaMemsetAsync": (["cudaMemsetAsync(d, 0, bytes, s);", DOWN.format("t")], 1, "d"),
    "the host's memory": ([UP.format("s"), "cudaStreamSynchronize(s);", DOWN.format("s"),
                           "cudaMemcpyAsync(d, out, bytes, cudaMemcpyHostToDevice, t);"], 3, "d"),
}  # fmt: skip


@pytest.fixture
def ran(tmp_path):
    def run(text):
        path = tmp_path / "program.cu"
        path.write_text(text)
        return run_program(path, capture=True)

    return run


def program(body, flags="cudaStreamDefault"):
    return COPIES.replace("FLAGS", flags).replace("BODY", "\n".join(body))


@pytest.mark.drawn(2)  # of each: a program is compiled in a process
@pytest.mark.parametrize("name", ORDERED)
def test_ordered_work_does_not_race(ran, name):
    assert ran(program(ORDERED[name])).findings == []


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RACING)
def test_work_of_two_streams_that_nothing_orders_is_a_race(ran, name):
    body, after, array = RACING[name]
    found = ran(program(body)).findings
    assert [(f.kind.value, f.line, f.array) for f in found] == [("race", LINE + after, array)]


def test_a_stream_of_its_own_is_not_ordered_with_the_default_stream(ran):
    body = [UP.format("s"), KERNEL.format("0"), "cudaDeviceSynchronize();", DOWN.format("t")]
    found = ran(program(body, "cudaStreamNonBlocking")).findings
    assert [(f.kind.value, f.line) for f in found] == [("race", LINE + 1)]


def test_check_reports_a_program_without_kernels(tmp_path):
    path = tmp_path / "copies.cu"
    path.write_text("\n".join(line for line in program(RACING["copy and copy"][0]).splitlines() if "twice" not in line))
    assert [f.kind.value for f in check(path).seen] == ["race"]


def test_clocks_are_transitive():
    order = StreamOrder()
    order.start(7)
    assert order.add(1, Access(0, 8, True, 7, 1)) is None
    order.record(70, 7)
    order.wait(8, 70)
    order.record(80, 8)
    order.wait(9, 80)
    order.start(9)
    assert order.add(1, Access(0, 8, True, 9, 2)) is None
    order.start(5)
    assert order.add(1, Access(4, 5, False, 5, 3)).line in (1, 2)
    assert order.add(1, Access(8, 9, False, 5, 3)) is None


GRID = """#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void total(const float* x, float* part, float* out, int n) {
  cg::grid_group grid = cg::this_grid();
  float sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
  part[grid.thread_rank()] = sum;
  BARRIER;
  if (grid.thread_rank() == 0) { sum = 0; for (int i = 0; i < grid.size(); i++) sum += part[i]; *out = sum; }
}
int main() {
  int n = 1000; float *x, *part, *out;
  cudaMallocManaged(&x, n * 4); cudaMallocManaged(&part, 256 * 4); cudaMallocManaged(&out, 4);
  for (int i = 0; i < n; i++) x[i] = 1;
  void* arguments[] = {&x, &part, &out, &n};
  LAUNCH;
  cudaError_t failed = cudaGetLastError(), after = cudaDeviceSynchronize();
  printf("%d %d\\n", failed, failed || after ? 0 : (int)*out);
  cudaFree(x); cudaFree(part); cudaFree(out);
}
"""
TOGETHER = "cudaLaunchCooperativeKernel((void*)total, dim3(BLOCKS), dim3(64), arguments)"


def grid(barrier="grid.sync()", launch=TOGETHER, blocks=4):
    return GRID.replace("BARRIER", barrier).replace("LAUNCH", launch).replace("BLOCKS", str(blocks))


def test_a_barrier_of_the_grid_orders_its_blocks(ran):
    report = ran(grid())
    assert (report.output, report.findings) == ("0 1000\n", [])
    assert ran(grid("cg::sync(grid)")).output == "0 1000\n"


def test_a_barrier_of_the_block_does_not_order_blocks(ran):
    found = ran(grid("__syncthreads()")).findings
    assert [(f.kind.value, f.line, f.scope, f.array) for f in found] == [("race", 10, "between blocks", "part")]


def test_a_barrier_of_the_grid_needs_a_cooperative_launch_of_all_its_threads(ran):
    plain = ran(grid(launch="total<<<4, 64>>>(x, part, out, n)"))
    assert (plain.output, [(f.kind.value, f.line) for f in plain.findings]) == ("719 0\n", [("launch", 17)])
    large = ran(grid(blocks=4000))
    assert (large.output, [(f.kind.value, f.line) for f in large.findings]) == ("720 0\n", [("launch", 17)])
    some = ran(grid("if (blockIdx.x < 2) grid.sync()"))
    assert [(f.kind.value, f.line) for f in some.findings] == [("divergent-barrier", 9)]
