"""A thousand small kernels mean the same here and behind a real compiler, bit for bit."""

from __future__ import annotations

import os

import pytest

from compiled_kernels import COMPILER, compiled, inputs, interpreted, same
from seeds import sample_size
from small_kernels import kernel
from tilewise.emulator.machine.findings import Severity

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler here")

BATCH, BATCHES = 50, 20


def compare(first, count, folder, seed=0, checks=False):
    numbers = range(first, first + count)
    given = inputs(seed)
    expected = compiled(numbers, given, folder, seed)
    for number in numbers:
        text = kernel(seed + number, number)
        got, findings = interpreted(text, number, given, checks)
        assert same(got, expected[number]), f"kernel {number} of seed {seed} differs:\n{text}"
        faults = [str(f) for f in findings if f.severity is Severity.FAULT and f.kind != "index-overflow"]
        assert not faults, f"kernel {number} of seed {seed} has no fault:\n{text}\n{faults}"


@needs_compiler
def test_a_sample_agrees_and_has_no_fault(tmp_path):
    first = int(os.environ["TILEWISE_TEST_SEED"]) % 10**6
    compare(first, sample_size(4), tmp_path, checks=True)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_agree(batch, tmp_path):
    compare(batch * BATCH, BATCH, tmp_path, checks=batch % 4 == 0)


@needs_compiler
def test_a_difference_is_seen(tmp_path):
    given = inputs(0)
    expected = compiled([3], given, tmp_path, 0)[3]
    wrong = kernel(3, 3).replace("12 + tid;", "12 + (tid ^ 1);")
    got, _ = interpreted(wrong, 3, given)
    assert not same(got, expected)
