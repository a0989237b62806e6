"""`tilewise bench scale`: what it measures on a CPU, small, and the table it makes."""

from __future__ import annotations

import pytest

from tilewise.bench import scale_cpu
from tilewise.bench.report import make_document, tables
from tilewise.bench.suites import Request, pieces


@pytest.mark.slow  # 4 s of measurement; test_files and test_rounds run the products
def test_files_and_closures_make_rows_of_a_table():
    rows = scale_cpu.files(300, rounds=1) + scale_cpu.closure(200)
    assert all(row["peak_bytes"] < 1.1 * row["memory"] for row in rows)
    ((_, _, cells),) = tables(make_document("scale", "cpu", "tilewise bench scale", rows))
    assert [size.partition(",")[0] for _, _, size, _ in cells] == ["300³ float32", "200 nodes"]


def test_the_suite_has_its_pieces():
    assert len(pieces(Request("scale", "cpu", (512,), quick=True))) >= 2
