"""Drawn products with `reproducible="everywhere"`: the bits of the definition, which `defined_bits` has in C."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import tilewise as tw
from defined_bits import COMPILER
from drawn_bits import KINDS, Multiplier, digest_of, drawn_batch, workers_of
from seeds import next_seed, sample_size


@pytest.mark.skipif(not COMPILER, reason="needs a C compiler")
@pytest.mark.drawn(2)  # kernels of each kind are compiled; test_ordered holds the same ones against the reference
@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_drawn_products_have_the_bits_of_the_definition(kind):
    products = drawn_batch(next_seed(), 0, count=sample_size(160))
    defined = digest_of(Multiplier(kind, "defined", "cpu"), products)
    before = tw.get_num_threads()
    try:
        for threads in (1, 2, 4):
            tw.set_num_threads(threads)
            assert digest_of(Multiplier(kind, "matmul", "cpu"), products) == defined, threads
    finally:
        tw.set_num_threads(before)


@pytest.mark.drawn(1)  # as test_stream_reproducible
@pytest.mark.parametrize("by", ["memory:1", "dask"])
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3], KINDS[8]], ids=" ".join)
def test_budgets_and_chunks_do_not_change_them(kind, by):
    same_bits_by(by, kind, drawn_batch(next_seed(), 0, accumulates=False, count=sample_size(60)))


@pytest.mark.slow  # the same with 2,000 products for each budget and number of workers: minutes
@pytest.mark.filterwarnings("ignore")  # of a cluster's own start and end
@pytest.mark.parametrize("by", ["memory:1", "memory:2", "memory:4", "dask:1", "dask:2", "dask:5"])
def test_three_budgets_and_three_clusters_do_not_change_2000_products(by):
    count = 0
    for number, kind in enumerate(KINDS):
        products = drawn_batch(next_seed(), number, accumulates=False)
        same_bits_by(by, kind, products)
        count += len(products)
    assert count >= 2000


def same_bits_by(by, kind, products):
    """The digest of products in memory is that of the same ones through a budget, or on a cluster."""
    if by.startswith("dask"):
        pytest.importorskip("distributed")
    with workers_of(by):
        elsewhere = digest_of(Multiplier(kind, by, "cpu"), products)
    assert elsewhere == digest_of(Multiplier(kind, "matmul", "cpu"), products), (by, kind)


def emulated(tmp_path, *command):
    """What a Python of the other architecture prints, which compiles and executes that one's kernels."""
    source, support = Path(tw.__file__).parents[1], Path(__file__).parents[2] / "support"
    environment = {**os.environ, "PYTHONPATH": f"{source}:{support}", "TILEWISE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [os.environ["TILEWISE_EMULATED_PYTHON"], *command], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow  # LLVM itself is emulated: minutes
@pytest.mark.emulated
def test_known_products_have_their_bits_on_the_other_architecture(tmp_path):
    assert "200 of 200" in emulated(tmp_path, "-m", "tilewise.cli.main", "verify-bits")


@pytest.mark.slow
@pytest.mark.emulated
def test_drawn_products_have_their_bits_on_the_other_architecture(tmp_path):
    program = """if True:
        from drawn_bits import KINDS, Multiplier, digest_of, drawn_batch
        print(digest_of(Multiplier(KINDS[0], "matmul", "cpu"), drawn_batch(1, 0, count=60)))"""
    here = digest_of(Multiplier(KINDS[0], "matmul", "cpu"), drawn_batch(1, 0, count=60))
    assert emulated(tmp_path, "-c", program).strip() == here
