"""Threads run one at a time from barrier to barrier: right kernels stay right, racing ones give wrong results."""

from __future__ import annotations

import numpy as np
import pytest
from simt_support import KERNELS, course

from tilewise.emulator.check.adversary import run_adversarially
from tilewise.emulator.check.loading import choose, load
from tilewise.emulator.check.simulate import AtShape, Prepared, simulate
from tilewise.emulator.limits import DEFAULT


def simulated(kernel, shape, tile):
    loaded = load(kernel, None, tile, DEFAULT)
    prepared = Prepared(loaded, choose(loaded, None)[0])
    return simulate(prepared, AtShape(shape), seed=1, limits=DEFAULT)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("tile", "n"), [(2, 5), (3, 7), (8, 9)])
def test_the_right_kernel_gives_the_product_in_any_order(tile, n, backwards):
    done = simulated(KERNELS / "tiled_edges.cu", (n, n, n), tile)
    output = done.bound.of("P")
    held = run_adversarially(done, output, backwards)
    np.testing.assert_array_equal(held.reshape(n, n), done.bound.expected)


@pytest.mark.parametrize("which", [0, 1])
def test_without_a_barrier_the_product_is_wrong(which):
    lines = course("tiled_edges").splitlines()
    del lines[[i for i, line in enumerate(lines) if "__syncthreads" in line][which]]
    done = simulated("\n".join(lines), (5, 5, 5), 2)
    output = done.bound.of("P")
    np.testing.assert_array_equal(output.data.reshape(5, 5), done.bound.expected)  # in lockstep it looks right
    held = run_adversarially(done, output, False)
    assert not np.array_equal(held.reshape(5, 5), done.bound.expected)
