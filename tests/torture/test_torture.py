"""Faults on purpose, for as long as it is given: the bytes at the end are those of an undisturbed run."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import faults
import faults_outside
from crashes import play
from seeds import next_seed
from tilewise.scale import checkpoint
from tilewise.scale import files as product_files

torture = pytest.mark.torture
SECONDS = float(os.environ.get("TORTURE_SECONDS", "600"))


@pytest.fixture
def quick_disk():
    """Memory, where it can be had as a disk: thousands of faults sync a hundred thousand times."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def small(monkeypatch):
    """Budgets of a few tiles, and sums saved after every phase."""
    for name in ("SPARE", "ZARR_BYTES", "TIGHT"):
        monkeypatch.setattr(product_files, name, 0)
    monkeypatch.setattr(product_files, "LEAST_TILE", (1, 1, 1))
    monkeypatch.setattr(product_files, "resident", lambda *_: (0, 0))
    monkeypatch.setattr(checkpoint, "LEAST", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0)


def operands(folder, m, k, n, seed):
    rng = np.random.default_rng(seed)
    for name, shape in (("A", (m, k)), ("B", (k, n))):  # whole numbers: the same sums in any order
        np.save(folder / f"{name}.npy", rng.integers(-4, 5, shape).astype(np.float32))


def test_every_tenth_prefix_of_the_writes_can_be_gone_on_from(quick_disk, small):
    """The machine stops after any of the operations; the default suite takes a tenth of the points, by the clock."""
    crashes_at_every_prefix(quick_disk, 25)


@torture
def test_every_prefix_of_the_writes_can_be_gone_on_from(quick_disk, small):
    crashes_at_every_prefix(quick_disk, 1)


def crashes_at_every_prefix(tmp_path, step):
    seed = next_seed() % 10**9
    chance = random.Random(seed)
    print("seed", seed)
    operands(tmp_path, 200, 700, 150, seed)
    right = faults.again(tmp_path)
    faults.clear(tmp_path)
    log = faults.recorded(tmp_path)
    assert len(log) > 300
    went_on = 0
    for length in range(chance.randrange(step), len(log) + 1, step):
        play(log[:length], tmp_path, chance)
        if (tmp_path / "C.npy").exists():  # what bears the output's name is whole, whether a later run continues or not
            assert (tmp_path / "C.npy").read_bytes() == right, (seed, length, log[length - 1][:2])
        report = faults.job(tmp_path).run()
        went_on += report.resumed > 0
        assert (tmp_path / "C.npy").read_bytes() == right, (seed, length, log[length - 1][:2])
        assert sorted(p.name for p in tmp_path.iterdir()) == ["A.npy", "B.npy", "C.npy"]
        faults.clear(tmp_path)
    assert went_on > 0
    print(f"{len(log)} operations recorded; from {went_on} points finished tiles were used")


@torture
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kinds", [faults.INSIDE, faults_outside.OUTSIDE], ids=["in the process", "from outside"])
def test_faults(tmp_path, quick_disk, kinds, request):
    inside = kinds is faults.INSIDE
    if inside:
        request.getfixturevalue("small")
    seed = next_seed() % 10**9
    chance = random.Random(seed)
    print("seed", seed)
    whole = (quick_disk if inside else tmp_path) / "whole"
    whole.mkdir()
    if inside:
        operands(whole, 200, 700, 150, seed)
        faults.again(whole)
    else:
        operands(whole, 2600, 2600, 2600, seed)
        code, err = faults_outside._end(faults_outside.command(whole))
        assert code == 0, err
    right = (whole / "C.npy").read_bytes()
    faults.clear(whole)
    survived, longest = Counter(), 0.0
    names, weights = list(kinds), [weight for _, weight in kinds.values()]
    end, result = time.monotonic() + SECONDS, "then one failed"
    try:
        while time.monotonic() < end:
            (name,) = chance.choices(names, weights)
            start = time.monotonic()
            assert kinds[name][0](whole, chance) == right, (seed, name)
            longest = max(longest, time.monotonic() - start)
            survived[name] += 1
            faults.clear(whole)
        result = "none with other bytes"
    finally:
        print()
        for name in names:
            print(f"{survived[name]:7,}  {name}")
        print(f"{sum(survived.values()):7,}  in all, {result}; the longest took {longest:.1f} s")
