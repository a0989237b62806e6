"""`bench semirings` on a card, without one: rows, shares and checks, products computed on the host."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from host_card import HostDeviceArray
from tilewise.algebra.dtypes import dtype_of
from tilewise.bench import card_semirings as bench
from tilewise.bench.plot import draw
from tilewise.bench.report import tables
from tilewise.core.machine import KNOWN_CARDS


@pytest.fixture
def host(monkeypatch):
    def to_device(array):
        made = HostDeviceArray(array.shape, dtype_of(array.dtype))
        made.copy_from(array)
        return made

    def matmul(M, N, semiring="plus_times", out=None, device=None, **how):
        if device == "cpu":
            return tw.matmul(M, N, semiring=semiring)
        out.array[...] = tw.matmul(M.array, N.array, semiring=semiring)
        return out

    monkeypatch.setattr(bench, "to_device", to_device)
    monkeypatch.setattr(bench, "DeviceArray", HostDeviceArray)
    monkeypatch.setattr(bench, "matmul", matmul)
    monkeypatch.setattr(bench, "describe", lambda device: KNOWN_CARDS["h200"])
    monkeypatch.setattr(bench, "default_stream", lambda device: None)
    monkeypatch.setattr(bench, "Launcher", lambda recipe, device: lambda stream: None)
    return matmul


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("min_plus", "float32"), ("min_plus", "bfloat16"), ("lor_land", "bool"), ("plus_times", "complex64"),
     ("plus_times", "int64"), ("logaddexp_plus", "float32")],
)  # fmt: skip
def test_a_row_has_the_share_of_the_limit(host, name, dtype):
    (row,) = bench.against_limit(name, dtype, "", 40, 1)
    assert row["share_of_limit"] == pytest.approx(row["steps_per_second"] / row["instruction_limit"])
    assert row["ragged_over_aligned"] > 0
    ((_, head, cells),) = tables({"suite": "semirings", "rows": [row, *bench.own_semiring(40, 1)]})
    assert [len(row) for row in cells] == [len(head)] * 2


@pytest.mark.slow  # matplotlib; tests/cli/test_commands.py draws the document of the table
def test_the_rows_make_a_picture(host, tmp_path):
    rows = [*bench.against_limit("min_plus", "float32", bench.PROMISED, 40, 1), *bench.own_semiring(40, 1)]
    device = {"kind": "cuda", "name": "a card"}
    draw({"suite": "semirings", "device": device, "date": "2026-11-15", "rows": rows}, tmp_path / "semirings.png")
    assert (tmp_path / "semirings.png").stat().st_size > 10_000


def test_a_wrong_product_is_no_row(host, monkeypatch):
    def wrong(M, N, semiring="plus_times", out=None, device=None, **how):
        made = host(M, N, semiring, out, device, **how)
        if out is not None:
            out.array[:] += 1
        return made

    monkeypatch.setattr(bench, "matmul", wrong)
    with pytest.raises(AssertionError, match="min_plus over float32 is wrong"):
        bench.against_limit("min_plus", "float32", bench.ANY, 40, 1)


def test_operands_are_never_zeros():
    for dtype in ("float32", "int16", "bool", "complex64"):
        M, N = bench.operands((50, 60, 70), dtype)
        assert M.shape == (50, 60)
        assert N.shape == (60, 70)
        assert np.count_nonzero(M) > 0
        assert len(np.unique(M)) > 1
