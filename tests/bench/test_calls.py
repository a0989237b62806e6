"""`tilewise bench calls`: a row for every combination of keywords, beside the library's own where it has one."""

from __future__ import annotations

from tilewise.bench import calls
from tilewise.bench.report import tables


def test_every_keyword_has_a_row(monkeypatch):
    monkeypatch.setattr(calls, "BURST_SECONDS", 1e-5)
    rows = calls.by_keyword("numpy", 1)
    by_keyword = {row["keywords"]: row for row in rows}
    for keyword in ("", "out", "alpha=2.0", "bias", "lists", "semiring=min_plus, return_arg", "kernel=packed", "tile"):
        assert by_keyword[keyword]["microseconds"] > 0
    assert by_keyword["lists"]["own_microseconds"] > 0
    ((_, head, cells),) = tables({"suite": "calls", "rows": rows})
    assert len(cells) == len(rows)
    assert all(len(row) == len(head) for row in cells)
