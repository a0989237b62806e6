"""`cells` is taken where it is the fastest, as timed on an H200, and left where its threads walk lines of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem, row_major
from tilewise.core.tuning import table_for
from tilewise.planning.choose import make_plan

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a", tuned=table_for("NVIDIA H200"))


def planned(members: int, m: int, k: int, n: int, dtype: str) -> str:
    stack, kind = (members,), DTYPES[dtype]
    lie = (row_major(rows, cols, stack) for rows, cols in ((m, k), (k, n), (m, n)))
    return make_plan(Problem(m, k, n, stack, kind, kind, SEMIRINGS["plus_times"], *lie), H200).kernel


@pytest.mark.parametrize(("shape", "took", "other"), [
    ((1164, 719, 202, 2, "float32"), 766, 335),  # torch.bmm's; the others are of the fastest family of ours
    ((1916, 780, 34, 2, "float32"), 220, 134),
    ((770, 395, 201, 2, "float32"), 293, 108),
    ((3142, 344, 121, 3, "float32"), 352, 205),
    ((2554, 87, 242, 4, "float32"), 162, 103),
    ((4054, 1805, 55, 2, "bfloat16"), 818, 418),
], ids=str)  # fmt: skip
def test_few_columns_and_long_lines_of_m_are_left_to_others(shape, took, other):
    assert planned(*shape) != "cells", f"{took} µs, where {other} are enough"


@pytest.mark.parametrize(("shape", "took", "other"), [
    ((117, 1871, 20, 3, "float32"), 8.0, 13.2),
    ((1474, 1307, 35, 3, "float16"), 90, 156),
    ((4096, 8, 8, 8, "float32"), 3.9, 15),
], ids=str)  # fmt: skip
def test_short_lines_are_its_own(shape, took, other):
    assert planned(*shape) == "cells", f"{took} µs, where the next takes {other}"
