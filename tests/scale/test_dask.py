"""Products and closures of Dask arrays: right for any chunks and algebra, and tiles, not operands, are held."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

import tilewise as tw
from operands import values
from oracle import assert_product
from tilewise.cli.main import run

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore")  # of the cluster's own start and end


def random(shape, chunks, seed, dtype="float64"):
    return da.random.default_rng(seed).standard_normal(shape, chunks=chunks).astype(dtype)


def check(M, N, semiring="plus_times", **how):
    P = tw.matmul(M, N, semiring=semiring, **how)
    assert isinstance(P, da.Array)
    assert P.chunks == (M.chunks[0], N.chunks[1])
    got, left, right = dask.compute(P, M, N)
    assert P.dtype == got.dtype
    assert_product(got, left, right, semiring)
    return P


@pytest.mark.drawn(1)
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "logaddexp_plus"])
def test_chunks_need_not_match(semiring):
    check(random((200, 250), (70, 90), 1), random((250, 150), (60, 110), 2), semiring)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool", "complex64"])
def test_any_dtype(dtype):
    M, N = values((90, 80), dtype, 1), values((80, 70), dtype, 2)
    check(da.from_array(M, chunks=(40, 30)), da.from_array(N, chunks=(25, 40)))


def test_one_task_makes_one_tile_of_what_is_cheap():
    M, N = random((300, 300), 100, 3), random((300, 300), 100, 4)
    P = tw.matmul(M, N)
    layer = P.dask.layers[P.name]
    assert len([key for key in layer if key[0] == P.name]) == 9
    assert P.dask.dependencies[P.name] == set()  # blocks are made inside the tasks


def test_blocks_in_memory_come_as_dependencies():
    held = da.from_array(values((600, 600), "float64", 5), chunks=200)
    P = check(held, random((600, 300), 150, 6))
    assert P.dask.dependencies[P.name] != set()
    check(random((300, 300), 100, 7), (held[:300, :300] @ held[:300, :300]).rechunk(77), "max_plus")


def test_a_store_is_read_inside_the_task(tmp_path):
    zarr = pytest.importorskip("zarr")
    A = values((300, 200), "float32", 8)
    made = zarr.create_array(str(tmp_path / "A.zarr"), shape=A.shape, dtype=A.dtype, chunks=(100, 50))
    made[:] = A
    M = da.from_zarr(str(tmp_path / "A.zarr"))
    P = tw.matmul(M, 2 * M.T)
    assert P.dask.dependencies[P.name] == set()
    assert_product(P.compute(), A, 2 * A.T, "plus_times")


def test_a_tall_k_is_split():
    M, N = random((50, 4000), (50, 50), 9), random((4000, 60), (50, 60), 10)
    P = check(M, N)
    parts = {key for key in P.dask.layers[P.name] if key[0].endswith("-part")}
    assert len(parts) > 1
    check(M.astype("float16"), N.astype("float16"))
    check(M > 0.5, N > 0.5, "lor_land")


def test_numpy_beside_dask_and_empty_arrays():
    A = values((80, 60), "float64", 11)
    assert_product(tw.matmul(da.from_array(A, chunks=30), A.T).compute(), A, A.T, "plus_times")
    P = tw.matmul(da.zeros((5, 0), chunks=5), da.zeros((0, 4), chunks=4), semiring="min_plus").compute()
    np.testing.assert_array_equal(P, np.full((5, 4), np.inf))


def test_closures():
    rng = np.random.default_rng(0)
    W = np.where(rng.random((130, 130)) < 0.05, rng.random((130, 130)), np.inf)
    W[3, 4] = np.nan
    got = tw.closure(da.from_array(W, chunks=(40, 50)))
    np.testing.assert_allclose(got.compute(), tw.closure(W), rtol=1e-12)
    np.testing.assert_array_equal(
        tw.closure(da.from_array(W < 0.5, chunks=50), semiring="lor_land").compute(),
        tw.closure(W < 0.5, semiring="lor_land"),
    )
    W[70, 71], W[71, 70] = -1.0, 0.5
    with pytest.raises(tw.CycleError, match="70 → 71 → 70"):
        tw.closure(da.from_array(W, chunks=40)).compute()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tw.matmul(random((9, 8), 4, 1), random((9, 8), 4, 2)),
            "the 8 columns of M do not meet the 9 rows of N",
        ),
        (
            lambda: tw.matmul(random((9, 9), 4, 1)[random((9,), 4, 2) > 0], random((9, 9), 4, 1)),
            "chunks of unknown size",
        ),
        (lambda: tw.matmul(random((9, 9), 4, 1), random((9, 9), 4, 1), device="simt"), "workers take 'auto'"),
        (lambda: tw.matmul(random((9, 9), 4, 1), random((9, 9), 4, 1), memory="1GB"), "memory= does not go with Dask"),
        (lambda: tw.closure(random((9, 8), 4, 1)), "square matrix"),
        (lambda: tw.closure(random((9, 9), 4, 1).astype(int)), "convert it"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(tw.TilewiseError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_scheduler_that_is_not_there(tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tilewise.scale.cluster.PATIENCE", 1.0)
    np.save("A.npy", np.ones((4, 4)))
    assert run(["multiply", "A.npy", "A.npy", "-o", "C.npy", "--cluster", "tcp://127.0.0.1:9"]) == 3
    assert "no Dask scheduler answers at --cluster tcp://127.0.0.1:9" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["A.npy"]


def test_a_cluster_in_this_process(tmp_path, capsys, monkeypatch):
    distributed = pytest.importorskip("distributed")
    A = values((300, 200), "float32", 12)
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", A)
    np.save("B.npy", A.T)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        command = [
            "multiply",
            "A.npy",
            "B.npy",
            "-o",
            "C.npy",
            "--memory",
            "20MB",
            "--cluster",
            cluster.scheduler_address,
        ]
        assert run([*command, "--check"]) == 0
        assert "ok: relative error" in capsys.readouterr().out
        with distributed.Client(cluster):
            check(random((90, 80), 30, 1), random((80, 70), 20, 2), "min_plus")
    assert_product(np.load("C.npy"), A, A.T, "plus_times")
    assert sorted(os.listdir()) == ["A.npy", "B.npy", "C.npy"]


@pytest.mark.slow
def test_a_worker_that_dies_is_survived():
    from tilewise.bench.scale_dask import local_cluster

    M, N = random((3000, 3000), 500, 13), random((3000, 3000), 500, 14)
    with local_cluster(workers=3) as client:
        expected = client.compute(tw.matmul(M, N)).result()
        again = client.compute(tw.matmul(M, N, precision="ieee"))
        while not any(str(key).startswith("('tilewise") for keys in client.processing().values() for key in keys):
            time.sleep(0.01)
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, 9)
        np.testing.assert_array_equal(again.result(timeout=120), expected)


@pytest.mark.slow
def test_live_data_at_most_a_quarter():
    from tilewise.bench.scale_dask import live_data

    ours, theirs = live_data(16, 256)
    assert ours["peak_bytes"] <= theirs["peak_bytes"] / 4
    assert ours["sum"] == pytest.approx(theirs["sum"])


def declared(blocks, shape, dtype, chunks=None):
    """A Dask array whose blocks differ from their declaration."""
    one = da.from_delayed(dask.delayed(lambda: blocks, pure=True)(), shape, dtype)
    return one if chunks is None else one.rechunk(chunks)


LIES = {
    "float32 declared float64": (np.ones((64, 64), np.float32), "float64", "float32, but was declared 64×64 float64"),
    "larger": (np.ones((640, 640)), "float64", "640×640 float64, but was declared 64×64"),
    "smaller": (np.ones((8, 64)), "float64", "8×64 float64, but was declared 64×64"),
    "of another kind": (np.ones((64, 64), np.int64), "float64", "int64, but was declared"),
    "masked": (np.ma.masked_less(np.ones((64, 64)), 2), "float64", "masked"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("side", ["M", "N", "chain", "closure"])
def test_a_block_that_is_not_as_declared_is_refused_in_its_task(lie, side):
    block, dtype, message = LIES[lie]
    wrong, right = declared(block, (64, 64), dtype), random((64, 64), 32, 1)
    if side == "closure":
        P = tw.closure(wrong)
    elif side == "chain":  # blocks that come as other tasks' results
        held = da.from_array(np.ones((64, 64 * 64)), chunks=(64, 64))
        P = tw.matmul(held.T.rechunk(64)[:64], wrong)
    else:
        P = tw.matmul(wrong, right) if side == "M" else tw.matmul(right, wrong)
    with pytest.raises(tw.TilewiseError, match=message):
        P.compute(scheduler="sync")


def test_masked_arrays_are_refused_before_anything_runs():
    masked = da.ma.masked_less(random((8, 8), 4, 1), 0)
    with pytest.raises(tw.TilewiseError, match="mask"):
        tw.matmul(masked, masked)
    with pytest.raises(tw.TilewiseError, match="mask"):
        tw.closure(masked)


@pytest.fixture(scope="module")
def client():
    """A cluster in this process, as `persist()` needs one."""
    distributed = pytest.importorskip("distributed")
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as made:
        yield made


def scattered(client):
    return da.from_delayed(client.scatter(np.ones((30, 30))), (30, 30), float)


def held(seed, *shape):
    return random(shape, 30, seed).persist()


# operands whose blocks lie in the cluster's memory, wholly or in part, directly or through Dask tasks
PERSISTED = {
    "M": lambda client: (held(1, 90, 80), random((80, 70), 20, 2)),
    "N": lambda client: (random((90, 80), 20, 1), held(2, 80, 70)),
    "both": lambda client: (held(1, 90, 80), held(2, 80, 70)),
    "sliced": lambda client: (held(1, 90, 80)[:50], held(2, 80, 70) + 1),
    "the first block only": lambda client: (
        da.concatenate([held(1, 30, 60), random((60, 60), 30, 3)]),
        held(2, 60, 9),
    ),
    "the last block only": lambda client: (da.concatenate([random((60, 60), 30, 3), held(1, 30, 60)]), held(2, 60, 9)),
    "rechunked": lambda client: (held(1, 60, 60).rechunk(17), held(2, 60, 30).astype("float32")),
    "scattered": lambda client: (scattered(client), scattered(client)),
    "a product": lambda client: (tw.matmul(held(1, 60, 60), held(2, 60, 30)).persist(), held(4, 30, 30)),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("how", PERSISTED)
def test_persisted_operands_on_a_cluster(client, how):
    check(*PERSISTED[how](client), "min_plus")


def test_closures_of_persisted_graphs_on_a_cluster(client):
    W = abs(random((50, 50), 20, 3)).persist()
    want = tw.closure(W.compute())
    np.testing.assert_allclose(tw.closure(W).compute(), want, rtol=1e-12)
    np.testing.assert_allclose(tw.closure(W.rechunk((30, 20)), sources=[7, 0]).compute(), want[[7, 0]], rtol=1e-12)
    two = tw.matmul(W, W, semiring="min_plus").persist()
    np.testing.assert_allclose(tw.closure(two).compute(), tw.closure(two.compute()), rtol=1e-12)
