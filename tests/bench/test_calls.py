"""`tilewise bench calls`: a row for every way of calling, beside the library's own where it has one."""

from __future__ import annotations

from tilewise.bench import calls
from tilewise.bench.report import table


def test_every_keyword_has_a_row(monkeypatch):
    monkeypatch.setattr(calls, "BURST_SECONDS", 1e-5)
    rows = calls.contest("numpy", 1)
    told = {row["keywords"]: row for row in rows}
    for keyword in ("", "out", "alpha=2.0", "bias", "lists", "semiring=min_plus, return_arg", "kernel=packed", "tile"):
        assert told[keyword]["microseconds"] > 0
    assert told["lists"]["own_microseconds"] > 0
    head, lines = table({"suite": "calls", "rows": rows})
    assert len(lines) == len(rows)
    assert all(len(line) == len(head) for line in lines)
