"""Which racing lines are updates of one cell, and the atomic function for each."""

from __future__ import annotations

import pytest

from tilewise.emulator.check.atomic_update import atomic_update
from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.emulator.source.source import Place

LINES = {
    "  if (i < n) hist[data[i]]++;": ("hist[data[i]]", "atomicAdd(&hist[data[i]], …)"),
    "  ++hist[d[i]];": ("hist[d[i]]", "atomicAdd(&hist[d[i]], …)"),
    "  bins[data[i]] += 1;": ("bins[data[i]]", "atomicAdd(&bins[data[i]], …)"),
    "if (i < n) *s = *s + x[i];": ("*s", "atomicAdd(s, …)"),
    "c[k % 4] = c[k % 4] - w[i];": ("c[k % 4]", "atomicSub(&c[k % 4], …)"),
    "if (i < n && x[i] > s[0]) s[0] = x[i];": ("s[0]", "atomicMax(&s[0], …)"),
    "*m = min(*m, v);": ("*m", "atomicMin(m, …)"),
    "any |= flag[i];": ("any", "atomicOr(&any, …)"),
    "if (t >= i) sdata[t] += sdata[t - i];": ("sdata[t]", ""),  # a barrier
    "if (t < k) s[t] += s[t + k];": ("s[t]", ""),
    "s[t] = max(s[t], s[t + 16]);": ("s[t]", ""),
    "x[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;": ("x[i]", ""),
    "out[0] = s[0];": ("out[0]", ""),
    "a[0] = a[0] * 2;": ("a[0]", ""),  # there is no atomic product
}


@pytest.mark.parametrize("line", LINES)
def test_the_function_of_an_update(line):
    cell, expected = LINES[line]
    array = cell.strip("*").split("[")[0]
    place = Place("k.cu", 3, line.index(cell) + 1, len(cell), line)
    assert atomic_update(Finding(Kind.RACE, "", place, array, other_place=place)) == expected
    elsewhere = Place("k.cu", 9, 1, 1, "")
    assert atomic_update(Finding(Kind.RACE, "", place, array, other_place=elsewhere)) == ""


def test_a_pointer_to_the_array_is_the_array():
    line = "v[t] += v[t + 8];"
    place = Place("k.cu", 3, 1, len("v[t]"), line)
    assert atomic_update(Finding(Kind.RACE, "", place, "shared_sums", other_place=place)) == ""
