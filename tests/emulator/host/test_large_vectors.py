"""Large vectors: the time of copies and push_back is proportional to the elements added."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = """\
#include <cstdio>
#include <string>
#include <vector>
struct Named { int number; std::string name; };
int main() {
  std::vector<int> many(1 << 20, 1), copy = many, assigned;
  assigned = copy;
  std::vector<int> pushed;
  for (int i = 0; i < 60000; i++) pushed.push_back(i);
  pushed.pop_back();
  std::vector<Named> names;
  for (int i = 0; i < 5; i++) names.push_back({i, "n" + std::to_string(i)});
  std::vector<Named> same(names), other;
  other = same;
  other.pop_back();
  other.resize(7);
  printf("%d %zu %d %s %s %zu\\n", assigned[99], pushed.size(), pushed[59998], same[4].name.c_str(),
         other[3].name.c_str(), other.size());
  // more
}
"""


def run(tmp_path, text):
    path = tmp_path / "vectors.cu"
    path.write_text(text)
    return run_program(path, options=Options(seconds=10), capture=True)


def test_a_million_copied_and_sixty_thousand_pushed_end_within_the_limit(tmp_path):
    """push_back once checked all elements: this took minutes."""
    ran = run(tmp_path, PROGRAM)
    assert ran.output == "1 59999 59998 n4 n3 7\n"
    assert not ran.findings


def test_an_access_to_spare_capacity_is_reported(tmp_path):
    more = ("pushed[59999] = 1;", "pushed.reserve(200000); pushed[60000] = 1;", "pushed.clear(); pushed[0] = 1;")
    for line in (*more, "pushed.push_back(7); return pushed[59999] - 7;"):
        ran = run(tmp_path, PROGRAM.replace("1 << 20", "1 << 10").replace("// more", line))
        assert [f.kind.value for f in ran.findings] == (["out-of-bounds"] if line in more else [])


def test_the_address_of_an_array_of_run_time_length_is_its_beginning(tmp_path):
    text = "#include <cstdio>\n#include <cstring>\nint main() { int n = 5, a[n], b[5] = {1, 2, 3, 4, 5};\n"
    ran = run(tmp_path, text + 'memcpy(&a, b, sizeof a);\nprintf("%d %zu\\n", a[4], sizeof a); }\n')
    assert ran.output == "5 20\n"
    assert not ran.findings


def test_push_and_pop_without_a_runtime_call_still_report_removed_elements(tmp_path):
    """Two million of each once were two million runtime calls."""
    path = tmp_path / "vector.cu"
    path.write_text("""#include <cstdio>
#include <vector>
int main() { std::vector<int> v; long s = 0;
  for (int t = 0; t < 4; t++) { for (int i = 0; i < 1000000; i++) v.push_back(i); for (int i = 0; i < 1000000; i++) { s += v.back(); v.pop_back(); } }
  v.push_back(1); v.push_back(2); printf("%ld\\n", s);
  printf("%d\\n", v[2]);
  std::vector<int> w(100, 1); s = 0; for (int i = 0; i < 100; i++) s += w[i];
  w.pop_back();
  for (int i = 0; i < 100; i++) s += w[i];
}
""")  # noqa: E501
    report = run_program(path, options=Options(seconds=5.0), capture=True)
    assert report.output is not None
    assert report.output.startswith("1999998000000\n"), report.message
    assert [(f.kind.value, f.place.line) for f in report.faults if f.place] == [
        ("out-of-bounds", 6),
        ("out-of-bounds", 9),
    ]


def test_an_element_of_a_vector_that_has_room_alone(tmp_path):
    path = tmp_path / "vector.cu"
    path.write_text("""#include <vector>
int main() { std::vector<int> v; v.reserve(8); v.push_back(1);
  return v[0] + v[3];
}
""")
    (fault,) = run_program(path, capture=True).faults
    assert (fault.kind.value, fault.line, fault.array) == ("out-of-bounds", 3, "v")
    assert "behind the elements of v (32 bytes from std::vector at line 2)" in fault.message
    assert "resize" in fault.hint


def test_tables_of_numbers_are_data(tmp_path):
    """10,000 literals were as many stores, which took 15 s to optimise."""
    numbers = ", ".join(str(i * 7 % 251) for i in range(10_000))
    path = tmp_path / "table.cu"
    path.write_text(
        f"#include <cstdio>\nconst unsigned char bytes[] = {{{numbers}}};\n"
        f"static const float rows[2][20] = {{{{{', '.join(['-1.5f'] * 20)}}}, {{{', '.join(map(str, range(19)))}}}}};\n"
        "__constant__ double twice[33] = {" + ", ".join(["0.1"] * 33) + "};\n"
        "__global__ void k(double* p) { *p = twice[32]; }\n"
        "int main() { double *p, h; cudaMalloc(&p, 8); k<<<1, 1>>>(p); cudaMemcpy(&h, p, 8, cudaMemcpyDeviceToHost);\n"
        "cudaFree(p); long long s = 0; for (int i = 0; i < 10000; ++i) s += bytes[i];\n"
        'printf("%lld %g %g %g %.17g\\n", s, rows[0][19], rows[1][18], rows[1][19], h); }\n'
    )
    report = run_program(path, [], Options(), capture=True)
    expected = f"{sum(i * 7 % 251 for i in range(10_000))} -1.5 18 0 0.10000000000000001\n"
    assert (report.output, report.faults) == (expected, [])
