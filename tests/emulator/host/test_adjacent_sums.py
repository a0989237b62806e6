"""Vectorised sums of inner loops: bit for bit those of the loop, and all faults are reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seeds import next_seed

sys.path.insert(0, str(Path(__file__).parent))

from generated_nests import Nest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

HEAD = "#include <cstdio>\n#include <cstdlib>\n"
FILL = "for (int q = 0; q < n * n; q++) { a[q] = q % 7; b[q] = q % 5; }\n"
ARRAYS = "int n = 80; int *a = (int*)malloc(n * n * 4), *b = (int*)malloc(n * n * 4), *c = (int*)malloc(n * n * 4); "
NEST = """for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {{ int s = 0;
for (int k = 0; k {test} n; k++) s += a[i * n + k] * b[{index}]; c[i * n + j] = s; {after} }}
"""
FAULTS = {
    "one too many": ("out-of-bounds", "", {"test": "<="}),
    "a row without values": (
        "uninitialised-read",
        "b = (int*)realloc(b, 8 * n * n);",
        {"index": "(k + 1) * n + j"},
    ),
    "an overflow in the last row": ("overflow", "for (int q = 0; q < n; q++) a[n * n - 1 - q] = 1 << 30;", {}),
}


def run(folder, text):
    path = folder / "program.cu"
    path.write_text(text)
    return run_program(path, [], Options(), capture=True)


def test_random_nests_give_the_same_bytes(tmp_path):
    first = next_seed() % (1 << 30)
    for seed in range(first, first + 3):
        report = run(tmp_path, Nest(seed).program())
        one, two, differs = (report.output or "").split("\n")[:3]
        assert (report.ended, one, differs) == ("exit", two, "0"), f"seed {seed}: {report.message}"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_sum_is_found_at_its_line(tmp_path, name):
    kind, spoilt, changes = FAULTS[name]
    nest = NEST.format(**{"test": "<", "index": "k * n + j", "after": "", **changes})
    report = run(tmp_path, f'{HEAD}int main() {{ {ARRAYS}\n{FILL}{spoilt}\n{nest}\nprintf("%d\\n", c[5]); }}\n')
    assert (kind, 7) in [(f.kind.value, f.place.line) for f in report.faults if f.place is not None]


@pytest.mark.parametrize(
    ("fill", "after"), [(FILL, ""), ("", ""), (FILL, "assert(s >= 0);")], ids=["values", "none", "assert"]
)
def test_vectorised_sums_are_many_times_faster_than_the_loop(tmp_path, fill, after):
    """Both in one program, by its own clock; the bound is far below what is measured. Uninitialised arrays are reported
    once, at their first read, which is a block's first sum."""
    nest = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {{ float s = 0; {} " + after
    nest += "c[i * n + j] = s; }}"
    quick = nest.format("for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];")
    plain = nest.format("int k = 0; while (k < n) { s += a[i * n + k] * b[k * n + j]; k++; }")
    text = f"""{HEAD}#include <time.h>
#include <assert.h>
int main() {{ int n = 400; float* a = (float*)malloc(n * n * 4);
float *b = (float*)malloc(n * n * 4), *c = (float*)malloc(n * n * 4);
{fill} double best = 1e30; for (int t = 0; t < {5 if fill else 1}; t++) {{ clock_t t0 = clock(); {quick}
double took = clock() - t0 + 1; if (took < best) best = took; }}
clock_t t1 = clock(); {plain}
printf("%g\\n", (clock() - t1) / best); free(a); free(b); free(c); }}
"""
    path = tmp_path / "program.cu"
    path.write_text(text)
    report = run_program(path, [], Options(real_time=True), capture=True)
    assert float(report.output or 0) > 4, report
