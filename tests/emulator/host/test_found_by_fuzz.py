"""Programs found by fuzzing: each once ended in an internal exception, and is now refused or run."""

from __future__ import annotations

import time

import pytest

from tilewise.emulator.host.lower.tables import table_bytes
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.running import build
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import INT, Array
from tilewise.errors import TilewiseError

pytestmark = pytest.mark.drawn(6)  # each program is compiled in a process, 0.2 to 2 s

REFUSED = {
    "called without an object": "struct Base { int f(int x) { return x; } };\nint main() { return Base::f(4); }\n",
    "only kernels have it": "int main() { __shared__ float a[4]; return (int)a[0]; }\n",
    "shared memory": "__shared__ float a[4];\nint main() { return (int)a[0]; }\n",
    "a name and not a value": "int f(int x) { return x; }\nint main() { return sizeof(f); }\n",
    "nothing to go through": "int f(int x) { return x; }\nint main() { for (int v : f) return v; }\n",
    "an empty list": "int main() { for (int v : {}) return v; }\n",
    "never closed": "int main() [ return 0; }\n",  # once an endless loop
    "4 hexadecimal digits": '#include <cstdio>\nint main() { printf("\\u32 %d", 1); }\n',
    "8 hexadecimal digits": "int main() { return '\\U1_000000'; }\n",
    "the value of B is no constant": "int c = 3;\nint main() { enum { A, B = c } e = B; return e; }\n",
    "the value of A is no constant": "int c = 3;\nenum class E { A = c };\nint main() { return (int)E::A; }\n",
    "; is expected here": "constexpr int f() { for (int i -= 0;;) {} return 1; }\nint main() { int v[f()]; }\n",
    "is no character": '#include <cstdio>\nint main() { puts("\\ud800"); }\n',
}
RUN = """
#include <fstream>
#include <string>
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
int main() {
  std::ifstream in; std::string word = "kept"; in >> word; std::getline(in, word);
  thrust::device_vector<int> v(8, 1); printf("%d %d\\n", (int)word.size(), (int)in.good());
  printf("%d\\n", thrust::reduce(v.begin(), v.begin() + 4000));
  return 0;
}
"""


@pytest.mark.parametrize("said", REFUSED)
def test_refused_with_a_message(tmp_path, said):
    path = tmp_path / "program.cu"
    path.write_text(REFUSED[said])
    with pytest.raises(TilewiseError, match=said):
        build(str(path), Options(), lambda report: None)


def test_files_that_are_not_open_and_invalid_iterators(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(RUN)
    report = run_program(path, [], Options(), capture=True)
    assert report.ended == "exit", report.message
    assert (report.output or "").splitlines()[0] == "0 0"
    assert "out-of-bounds" in [f.kind.value for f in report.faults]


def test_a_read_that_only_ends_in_memory_that_a_kernel_may_write(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(
        "__global__ void k(int* p) { p[0] = 1; }\n"
        "int main() { int* p; cudaMallocManaged(&p, 64); k<<<1, 1>>>(p); return *(int*)((char*)p - 2); }\n"
    )
    report = run_program(path, [], Options(), capture=True)
    assert report.ended != "failed", report.message
    assert "not-synchronised" in [f.kind.value for f in report.faults]


def test_a_call_through_a_pointer_that_is_not_a_function(tmp_path):
    """A number, and a function that returns an object; one with other pointer parameters is called, as in C."""
    path = tmp_path / "program.cu"
    text = (
        "#include <cstdio>\n#include <cstdlib>\n#include <pthread.h>\n"
        "struct Big { int a[9]; }; Big make() { Big b; b.a[8] = 1; return b; } "
        'int less(const int* a, const int* b) { return *a - *b; } void work() { printf("w"); }\n'
        "int main() { int v[2] = {2, 1}; qsort(v, 2, 4, (int (*)(const void*, const void*))less);"
        " pthread_t t; pthread_create(&t, 0, (void* (*)(void*))work, 0); pthread_join(t, 0);"
        ' printf("%d\\n", v[0]);'
        " fflush(stdout);\nvoid (*f)() = (void (*)())WHERE; f(); return 0; }\n"
    )
    for where in ("12345", "make"):
        path.write_text(text.replace("WHERE", where))
        report = run_program(path, [], Options(), capture=True)
        told = [(f.kind.value, f.place.line) for f in report.faults if f.place is not None]
        assert (report.output, report.ended, told) == ("w1\n", "crash", [("out-of-bounds", 6)]), report.message


def test_two_thousand_million_digits_exceed_a_limit(tmp_path):
    """setprecision(2147483647) once took 4.4 GB with a limit of 512 MiB; also a width, and both of printf."""
    path = tmp_path / "program.cu"
    for printed in (
        "std::cout << std::fixed << std::setprecision(2147483647) << 5.0;", "std::cout << std::setw(2147483647) << 5;",
        'printf("%.2147483647f", 5.0);', 'printf("%2147483647d", 5);', 'printf("%.*f", 2147483647, 5.0);',
    ):  # fmt: skip
        path.write_text(
            f"#include <cstdio>\n#include <iostream>\n#include <iomanip>\nint main() {{ {printed} return 0; }}\n"
        )
        report = run_program(path, [], Options(), capture=True)
        assert (report.ended, report.output) == ("limit", "")
        assert "2147483647: at most 16777216 places" in report.message


def test_runtime_calls_check_the_time_limit(tmp_path, monkeypatch):
    """65,536 empty launches once took four seconds with a limit of one: the watch thread did not get the GIL."""
    path = tmp_path / "program.cu"
    path.write_text("int main() { return 0; }\n")
    session, _ = build(str(path), Options(seconds=0.5), lambda _: None)
    ends: list[tuple[int, str, str]] = []
    monkeypatch.setattr(session, "finish", lambda *how: ends.append(how))
    call = session.guarded(lambda s: 7)
    monkeypatch.setattr(time, "thread_time", lambda: 0.4)
    assert {call() for _ in range(100)} == {7}
    monkeypatch.setattr(time, "thread_time", lambda: 0.6)
    assert None in {call() for _ in range(100)}
    assert ends[0][:2] == (4, "limit")
    assert ends[0][2].startswith("the program took longer than 0.5 s")


@pytest.mark.parametrize(("length", "taken"), [(64, True), (1 << 33, False)])
def test_a_table_is_made_of_arrays_that_the_text_holds(length, taken):
    """Of 32 GB with 40 values it took the memory before the array could be refused."""
    init = tree.Braces([tree.Number(i, INT) for i in range(40)], [None] * 40)
    assert (table_bytes(Array(INT, length), init) is not None) == taken


def test_what_is_found_until_a_limit_is_reported(tmp_path):
    """The program's thread goes on finding faults while another one lists them."""
    path = tmp_path / "program.cu"
    path.write_text("""#include <cstdlib>
#include <cstring>
int main() { for (;;) { char* q = (char*)malloc(65536 << 20); memset(q, 1, 1 << 1000); } }
""")
    report = run_program(path, options=Options(seconds=1.0, wall=20.0), capture=True)
    assert (report.ended, bool(report.findings)) == ("limit", True), report.message
