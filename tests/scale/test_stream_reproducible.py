"""Products that stream through a budget have the bits of those in memory with `reproducible=`."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from tilewise.errors import UsageError
from tilewise.scale.product import plan_stream
from tilewise.scale.sources import ArraySource

pytestmark = pytest.mark.filterwarnings("ignore")  # of a cluster's own start and end


@pytest.mark.parametrize(
    ("dtype", "ring"), [("float32", "plus_times"), ("float16", "plus_times"), ("float32", "max_times")]
)
def test_no_budget_changes_a_bit(dtype, ring):
    rng = np.random.default_rng(1)
    M, N = (rng.standard_normal(shape).astype(dtype) for shape in ((150, 2300), (2300, 140)))
    how = {"semiring": ring, "reproducible": "everywhere"}
    want = tw.matmul(M, N, **how).tobytes()
    phases = set()
    for memory in (1_000_000, 2_500_000, 40_000_000):
        made = plan_stream(ArraySource(M, "M"), ArraySource(N, "N"), ring, memory, "cpu", reproducible="everywhere")
        phases.add(made.schedule.phases)
        assert made.schedule.depth % 512 == 0 or made.schedule.phases == 1
        assert tw.matmul(M, N, memory=memory, **how).tobytes() == want
    assert len(phases) > 1


@pytest.mark.parametrize("chunks", [(64, 700), (150, 300), (50, 1024)])
def test_no_chunks_of_dask_arrays_change_a_bit(chunks):
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(2)
    M, N = (rng.standard_normal(shape).astype(np.float16) for shape in ((150, 2300), (2300, 140)))
    want = tw.matmul(M, N, reproducible="everywhere").tobytes()
    A, B = da.from_array(M, chunks=chunks), da.from_array(N, chunks=chunks[::-1])
    for left, right in ((A, B), (A * 1, B), (A, da.from_array(N, chunks=(333, 70)))):
        P = tw.matmul(left, right, reproducible="everywhere")
        assert P.compute(scheduler="threads").tobytes() == want
    with pytest.raises(UsageError, match="bias="):
        tw.matmul(A, B, reproducible="everywhere", bias=np.ones(140, np.float16))


@pytest.mark.slow  # three clusters; the chunks above go through the same tasks
def test_no_number_of_workers_changes_a_bit():
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    rng = np.random.default_rng(3)
    M, N = (rng.standard_normal(shape).astype(np.float32) for shape in ((60, 1700), (1700, 50)))
    want = tw.matmul(M, N, reproducible="everywhere").tobytes()
    how = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    for workers in (1, 2, 5):
        with distributed.LocalCluster(n_workers=workers, **how) as cluster, distributed.Client(cluster):
            for chunks in (20, 600):
                left, right = da.from_array(M, chunks=(13, chunks)), da.from_array(N, chunks=(chunks, 17)).persist()
                assert tw.matmul(left, right, reproducible="everywhere").compute().tobytes() == want, (workers, chunks)
