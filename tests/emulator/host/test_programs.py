"""Whole programs: output, status, limits and refusals."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tilewise
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.program_report import received

pytestmark = pytest.mark.drawn(7)  # each program is compiled in a process, 0.2 to 2 s


@pytest.fixture(autouse=True)
def warm_starts():
    """A new interpreter starts every program here, as for callers with threads."""


@pytest.fixture
def run(tmp_path):
    def go(text, *arguments, stdin=b"", **options):
        path = tmp_path / "program.cu"
        path.write_text(text)
        return run_program(path, list(arguments), Options(**options), capture=True, stdin=stdin)

    return go


def test_arguments_status_and_both_streams(run):
    report = run(
        '#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char** v) { fprintf(stderr, "e\\n");'
        ' printf("%d %s %d\\n", c, v[1], atoi(v[2]) + 1); return 7; }',
        "one", "41",
    )  # fmt: skip
    assert (report.output, report.errors, report.status, report.ended) == ("3 one 42\n", "e\n", 7, "exit")


def test_a_goto_skips_declarations(run):
    """Of objects and of variables whose address is taken, which are in the frame."""
    report = run(r"""
#include <cstdio>
int main(int argc, char** argv) {
  int n = 3;
  if (argc > 1) goto end;
  float* q; cudaMalloc(&q, 16);
  cudaEvent_t a; cudaEventCreate(&a);
  float h[4]; h[0] = 1; cudaMemcpy(q, h, 4, cudaMemcpyHostToDevice); cudaEventDestroy(a); cudaFree(q);
end:
  if (argc < 2) printf("%g ", h[0]);
  printf("%d\n", n);
}""")
    assert (report.ended, report.output, report.faults) == ("exit", "1 3\n", []), report.message


def test_rand_gives_the_numbers_of_glibc(run):
    report = run(
        '#include <cstdio>\n#include <cstdlib>\nint main() { printf("%d %d ", rand(), rand()); srand(42); printf("%d\\n", rand()); }'
    )
    assert report.output == "1804289383 846930886 71876166\n"


def test_classes_templates_streams_and_the_library(run):
    report = run(r"""
#include <iostream>
#include <iomanip>
#include <vector>
#include <string>
#include <algorithm>
#include <numeric>
#include <random>
#include <memory>
using namespace std;
template <typename T, int N> class Stack { T items[N]; int count; public: Stack() : count(0) {} ~Stack() { cout << "gone " << count << endl; }
  void push(const T& x) { items[count++] = x; } T& operator[](int i) { return items[i]; } int size() const { return count; } };
struct V { float x, y; V operator+(const V& o) const { return {x + o.x, y + o.y}; } };
ostream& operator<<(ostream& o, const V& v) { return o << '(' << v.x << ", " << v.y << ')'; }
int apply(int (*f)(int), int x) { return f(x); }
int three(int x) { return 3 * x; }
int main() {
  Stack<double, 4> s; s.push(1.5); s.push(2.5); cout << s[1] << ' ' << s.size() << endl;
  cout << V{1, 2} + V{3, 4} << ' ' << apply(three, 5) << endl;
  vector<vector<int>> m(2, vector<int>(3, 7)); m[1][2] = 1; int sum = 0; for (auto& r : m) sum += accumulate(r.begin(), r.end(), 0);
  cout << sum << ' ' << fixed << setprecision(2) << 2.0 / 3 << setw(6) << 42 << endl;
  mt19937 g(42); uniform_int_distribution<int> d(1, 6); cout << g() << ' ' << d(g) << endl;
  unique_ptr<int> p(new int(5)); string t = "x" + to_string(*p); cout << t << t.size() << endl;
  auto add = [&](int k) { sum += k; return sum; }; add(2); cout << add(3) << endl;
  goto done;
done:
  return 0;
}""")
    assert report.output == "2.5 2\n(4, 6) 15\n36 0.67    42\n1608637542 5\nx52\n41\ngone 2\n"
    assert report.findings == []


def test_runtime_errors_are_returned_to_the_program(run):
    report = run(r"""
#include <stdio.h>
__global__ void k(int* p) { p[threadIdx.x] = 1; }
int main() {
  int* d; cudaMalloc(&d, 4096);
  k<<<1, 2048>>>(d);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  k<<<1, 32>>>(d);
  printf("%s %d\n", cudaGetErrorName(cudaGetLastError()), cudaFree(d));
  printf("%d\n", cudaFree(d));
  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); printf("%s %d\n", p.name, p.multiProcessorCount);
}""")
    assert report.output == "invalid configuration argument\ncudaSuccess 0\n1\nTesla T4 40\n"
    assert [str(f.kind) for f in report.faults] == ["launch", "double-free"]


def test_managed_memory_symbols_and_pitch(run):
    report = run(r"""
#include <cstdio>
__constant__ float weights[3];
__device__ int counter;
__global__ void k(float* m, size_t pitch, int* total) {
  int i = threadIdx.x, j = threadIdx.y;
  float* row = m + j * (pitch / sizeof(float));
  row[i] = weights[i] * j;
  atomicAdd(total, 1); atomicAdd(&counter, 2);
}
int main() {
  float w[3] = {1, 2, 3}, out[2][3]; cudaMemcpyToSymbol(weights, w, sizeof w);
  float* m; size_t pitch; cudaMallocPitch(&m, &pitch, 3 * sizeof(float), 2);
  int* total; cudaMallocManaged(&total, sizeof(int)); *total = 0;
  k<<<1, dim3(3, 2)>>>(m, pitch, total); cudaDeviceSynchronize();
  cudaMemcpy2D(out, 3 * sizeof(float), m, pitch, 3 * sizeof(float), 2, cudaMemcpyDeviceToHost);
  int n; cudaMemcpyFromSymbol(&n, counter, sizeof n);
  printf("%g %g %g %d %d %d\n", out[0][2], out[1][0], out[1][2], *total, n, (int)pitch);
  cudaFree(m); cudaFree(total);
}""")
    assert report.output == "0 1 3 6 12 512\n", (report.message, report.findings)


@pytest.mark.parametrize(("text", "options", "says"), [
    ("int main() { for (;;) {} }", {"seconds": 3.0}, "longer than"),
    ('#include <stdio.h>\nint main() { for (;;) puts("more"); }', {"output": 1000}, "printed or written more than 1000"),
    ("#include <stdlib.h>\nint main() { for (;;) malloc(1 << 20); }", {"memory": 64 << 20}, "over the limit"),
])  # fmt: skip
def test_limits_stop_a_program_and_keep_what_was_found(run, text, options, says):
    text = text.replace("int main() {", "int main() { int x[2]; x[0] = 1; int y = x[1];")
    report = run(text, **options)
    assert report.ended == "limit"
    assert says in report.message
    assert report.exit_code == 4
    assert [str(f.kind) for f in report.faults] == ["uninitialised-read"]


@pytest.mark.parametrize(("text", "options", "says"), [
    ("int main() {" + ";" * 8_000_000 + "}", {"seconds": 1.0}, "longer than"),
    ("#include <stdlib.h>\n#include <string.h>\nint main() { memset(malloc(900 << 20), 1, 900 << 20); for (;;) {} }",
     {"seconds": 60.0, "memory": 1 << 30}, "of memory were used up"),
])  # fmt: skip
def test_limits_apply_to_the_whole_process(run, text, options, says):
    """Parsing and compiling count, and so does the memory of the shadow."""
    began = time.monotonic()
    report = run(text, **options)
    assert report.ended == "limit"
    assert says in report.message
    assert time.monotonic() - began < 40


def test_nothing_outside_the_programs_folder_is_opened(run, tmp_path):
    (tmp_path / "data.txt").write_text("12 30")
    report = run(r"""
#include <stdio.h>
int main() {
  int a, b; FILE* f = fopen("data.txt", "r"); fscanf(f, "%d %d", &a, &b); fclose(f);
  printf("%d %d %d\n", a + b, fopen("/etc/passwd", "r") != 0, fopen("out.txt", "w") != 0);
}""")
    assert report.output == "42 0 1\n"
    assert not (tmp_path / "out.txt").exists()
    assert len(report.notes) == 2


def test_a_crash_is_reported_where_the_real_program_would_stop(run):
    report = run("int main() { int* p = 0;\n return *p; }")
    assert (report.status, report.ended) == (139, "crash")
    assert [(str(f.kind), f.line) for f in report.faults] == [("null-pointer", 2)]


def test_unsupported_code_is_refused_at_its_place(run):
    report = run("#include <stdio.h>\nint main() { return nothing_known(3); }")
    assert (report.ended, report.exit_code) == ("refused", 2)
    assert ":2:21: nothing_known is not known here" in report.message


def test_the_command_prints_the_program_on_stdout_and_findings_on_stderr(tmp_path):
    path = tmp_path / "p.cu"
    path.write_text(
        '#include <stdio.h>\n#include <stdlib.h>\nint main() { char* p = (char*)malloc(4); p[4] = 1; puts("out"); free(p); }'
    )
    done = subprocess.run(
        [sys.executable, "-m", "tilewise", "run", "--json", str(path)], capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("out\n", 1)
    assert json.loads(done.stderr)["findings"][0]["kind"] == "out-of-bounds"


def test_managed_memory_read_before_the_kernel_has_ended(run):
    text = r"""
__global__ void k(int* p) { p[threadIdx.x] = threadIdx.x; }
int main() {
  int* p; cudaMallocManaged(&p, 32 * sizeof(int));
  k<<<1, 32>>>(p);
  WAIT
  int last = p[31];
  cudaFree(p);
  return last - 31;
}"""
    found = run(text.replace("WAIT", ""))
    assert [(str(f.kind), f.line) for f in found.faults] == [("not-synchronised", 7)]
    assert run(text.replace("WAIT", "cudaDeviceSynchronize();")).findings == []


def test_a_report_larger_than_a_pipe_is_received(run):
    report = run(
        "__global__ void k(int* p) {}\nint main() { int* p; cudaMalloc(&p, 4);"
        " for (int i = 0; i < 800; i++) k<<<1, 1>>>(p); cudaFree(p); }"
    )
    assert report.ended == "exit"
    assert len(report.launches) == 800


def test_a_null_pointer_in_a_kernel_is_a_fault_and_a_sticky_error(run):
    report = run(
        "#include <stdio.h>\n__global__ void k(int* x) {\n  *x = 1;\n}\n"
        "int main() { k<<<1, 1>>>(0); puts(cudaGetErrorName(cudaDeviceSynchronize())); }"
    )
    assert report.output == "cudaErrorIllegalAddress\n"
    assert [(str(f.kind), f.line) for f in report.faults] == [("null-pointer", 3)]


def test_a_program_that_ctrl_c_ended_first_is_reported_as_interrupted(tmp_path):
    """It ended without a report, and this process has not yet received the signal."""
    with pytest.raises(KeyboardInterrupt):
        received("loop.cu", -signal.SIGINT, b"", False, Options())


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc how many threads there are")
def test_the_command_runs_a_program_in_a_copy_of_itself(tmp_path):
    """A new interpreter would import modules again."""
    (tmp_path / "own.cu").write_text('#include <cstdio>\nint main() { puts("here"); return 3; }\n')
    words = [sys.executable, "-X", "importtime", "-m", "tilewise", "run", "own.cu"]
    environment = os.environ | {"PYTHONPATH": str(Path(tilewise.__file__).parents[1])}
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ended.stdout, ended.returncode) == ("here\n", 3)
    assert "tilewise.emulator.host.running" in ended.stderr


def test_ctrl_c_ends_the_program_too(tmp_path):
    """The findings so far are reported, the status is 130, and no process remains."""
    (tmp_path / "loop.cu").write_text(
        '#include <cstdio>\nint main() { int a[4]; a[4] = 1; puts("on"); fflush(stdout); for (;;) {} }\n'
    )
    source = str(Path(tilewise.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewise", "run", "loop.cu", "--limit-time", "60"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": source},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"on\n"
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)  # the pipes close when no process holds them
    assert process.returncode == 130
    assert b"index 4 of a, an array of 4" in said
    assert b"stopped: by Ctrl-C; it was near line 2 then" in said
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_remaining_elements_of_an_array_are_constructed_in_a_loop(run):
    """Unrolled, 50,000 elements once took longer than most limits."""
    report = run(
        """
#include <cstdio>
struct P { int x = 7; float y; };
struct Q { int a; Q() : a(3) { } };
int main() {
  static P p[100000] = {P(), P()}; Q q[50000] = {}; long s = 0;
  for (int i = 0; i < 50000; i++) s += q[i].a + p[i].x;
  printf("%ld %g\\n", s, p[99999].y);
}""",
        seconds=10.0,
    )
    assert report.output == "500000 0\n", (report.message, report.findings)


def test_a_negative_precision_is_ignored(run):
    report = run("""
#include <iomanip>
#include <iostream>
int main() { std::cout << std::setprecision(-2) << 3.14159 << ' ' << std::fixed << std::setprecision(-7) << 2.5; }""")
    assert report.output == "3.14159 2.500000", (report.message, report.findings)
