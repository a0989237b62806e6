"""JAX arrays as they are, and values that jit, vmap and grad are tracing, on the CPU."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import tilewise as tw
import tilewise.jax.traced  # takes on_host when it is imported: before a test replaces that
from seeds import next_seed
from tilewise.algebra.builtin import find_semiring
from tilewise.jax import native as ours_native

PLUS_TIMES = find_semiring("plus_times")


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def values(*shape, seed=0, dtype="float32"):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32"])
def test_eager_arrays_go_in_and_out(dtype):
    M, N = (values(7, 5), values(3, 5, seed=1).T) if dtype != "int32" else (jnp.arange(35).reshape(7, 5),) * 2
    M, N = M.astype(dtype), (N if dtype != "int32" else N.T).astype(dtype)
    P = tw.matmul(M, N)
    assert isinstance(P, jax.Array)
    assert P.dtype == M.dtype
    np.testing.assert_allclose(np.asarray(P, np.float64), np.asarray(M, np.float64) @ np.asarray(N, np.float64),
                               rtol=2e-2, atol=3e-2)  # fmt: skip


SHAPES = [((4, 5), (5, 3)), ((5,), (5, 3)), ((4, 5), (5,)), ((5,), (5,)), ((2, 1, 4, 5), (3, 5, 2))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_jit(shapes):
    M, N = values(*shapes[0]), values(*shapes[1], seed=1)
    np.testing.assert_allclose(jax.jit(tw.matmul)(M, N), jnp.matmul(M, N), rtol=1e-5, atol=1e-5)
    shortest = jax.jit(lambda M, N: tw.matmul(M, N, semiring="min_plus"))(M, N)
    np.testing.assert_array_equal(shortest, tw.matmul(M, N, semiring="min_plus"))


def test_jit_of_a_large_product_does_not_hang():
    M = values(700, 900)
    step = jax.jit(lambda M: tw.matmul(M * 2, M.T).sum())
    for _ in range(3):
        np.testing.assert_allclose(step(M), (M * 2 @ M.T).sum(), rtol=1e-3)


def test_the_winning_k_under_jit():
    M, N = values(4, 5), values(5, 3, seed=1)
    P, k = jax.jit(lambda M, N: tw.matmul(M, N, semiring="min_plus", return_arg=True))(M, N)
    host, host_k = tw.matmul(np.asarray(M), np.asarray(N), semiring="min_plus", return_arg=True)
    np.testing.assert_array_equal(P, host)
    np.testing.assert_array_equal(k, host_k)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("shapes", [((4, 5), (5, 3)), ((5,), (5, 3)), ((4, 5), (5,))], ids=str)
def test_vmap(axes, shapes):
    M, N = (values(*([6] if axis == 0 else []), *shape) for shape, axis in zip(shapes, axes, strict=True))
    np.testing.assert_allclose(jax.vmap(tw.matmul, axes)(M, N), jax.vmap(jnp.matmul, axes)(M, N), rtol=1e-5, atol=1e-5)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_gradients_are_jaxs_own(shapes):
    M, N = values(*shapes[0]), values(*shapes[1], seed=1)
    ours, theirs = (
        jax.grad(lambda M, N, f=f: (f(M, N) ** 2).sum(), argnums=(0, 1))(M, N) for f in (tw.matmul, jnp.matmul)
    )
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_unsupported_arguments_are_refused():
    M = values(3, 3)
    product = tw.Semiring("product", add=lambda x, y: x * y, mul=lambda x, y: x + y, zero=1, pad_m=1, pad_n=0)
    with pytest.raises(tw.UsageError, match="product has no gradient: its add is neither"):
        jax.grad(lambda M: tw.matmul(M, M, semiring=product).sum())(M)
    with pytest.raises(tw.UsageError, match="tile= has no meaning inside"):
        jax.jit(lambda M: tw.matmul(M, M, tile=4))(M)
    with pytest.raises(tw.ShapeError, match="3 columns of M"):
        jax.jit(tw.matmul)(M, values(4, 4))


def test_on_a_card_jit_is_refused(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    M = values(3, 3)
    with jax.default_device(None), pytest.raises(tw.UsageError, match="call tilewise outside of jit"):
        jax.jit(tw.matmul)(M, M)
    with jax.default_device(jax.devices("cpu")[0]):  # as that sentence says
        np.testing.assert_allclose(jax.jit(tw.matmul)(M, M), np.asarray(M) @ np.asarray(M), rtol=1e-5)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_a_second_eager_call_is_a_prepared_one(shapes, monkeypatch):
    from tilewise import api

    for keywords in ({}, {"semiring": "max_plus"}, {"precision": "ieee"}):
        for dtype in ("float32", "bfloat16"):
            tw.matmul(*(values(*shape).astype(dtype) for shape in shapes), **keywords)
            M, N = (values(*shape, seed=7).astype(dtype) for shape in shapes)
            with monkeypatch.context() as never:
                never.setattr(api, "first_call", lambda *_: pytest.fail("it was bound again"))
                P = tw.matmul(M, N, **keywords)
            assert isinstance(P, jax.Array)
            assert P.dtype == M.dtype
            expected = tw.matmul(np.asarray(M), np.asarray(N), **keywords)
            np.testing.assert_array_equal(np.asarray(P, np.float32), np.asarray(expected, np.float32))


NATIVE = ["plus_times", "min_plus", "max_times", "lor_land"]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("semiring", NATIVE)
def test_jit_calls_no_python(semiring, monkeypatch):
    """Neither for one matrix nor for a stack, a batch or the winning k."""
    from tilewise.jax import operator as ours

    monkeypatch.setattr(ours, "on_host", lambda *_, **__: pytest.fail("it called back"))
    cases = [*SHAPES, ((40, 300), (300, 70)), ((3, 9, 8), (8, 9)), ((1, 1), (1, 1)), ((5, 4000), (4000, 3))]
    for shapes in cases:
        M, N = values(*shapes[0]), values(*shapes[1], seed=1)
        made = jax.jit(lambda M, N: tw.matmul(M, N, semiring=semiring))(M, N)
        expected = tw.matmul(np.asarray(M), np.asarray(N), semiring=semiring)
        assert made.shape == expected.shape
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(made, expected)
    if semiring != "min_plus":
        return
    M, N = values(6, 4, 9), values(9, 5, seed=1)
    P, k = jax.jit(jax.vmap(lambda M: tw.matmul(M, N, semiring="min_plus", return_arg=True)))(M)
    host, host_k = tw.matmul(np.asarray(M), np.asarray(N), semiring="min_plus", return_arg=True)
    np.testing.assert_array_equal(P, host)
    np.testing.assert_array_equal(k, host_k)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_jit_shares_large_products_among_threads(threads):
    tw.set_num_threads(threads)
    try:
        ours_native.record_of.cache_clear()
        for shapes in (((300, 400), (400, 500)), ((20, 30, 40), (40, 50)), ((4, 60000), (60000, 4))):
            M, N = values(*shapes[0]), values(*shapes[1], seed=1)
            made = jax.jit(tw.matmul)(M, N)
            np.testing.assert_allclose(made, np.asarray(M) @ np.asarray(N), rtol=1e-3, atol=2e-2)
            record = ours_native.record_of((M.shape, M.dtype), (N.shape, N.dtype), PLUS_TIMES, "high", False)
            direct = record.fields[ours_native.RECORD.index("direct")]
            assert bool(direct) == (record.ready.workers == 1)
    finally:
        tw.set_num_threads(None)
        ours_native.record_of.cache_clear()


def test_an_exception_inside_jit_is_raised_outside(monkeypatch):
    tw.set_num_threads(2)
    try:
        ours_native.record_of.cache_clear()
        monkeypatch.setattr(ours_native.CallRecord, "run", lambda *_: 1 / 0)
        M = values(400, 400)
        with pytest.raises(Exception, match="division by zero"):
            jax.jit(lambda M: tw.matmul(M, M, semiring="max_min"))(M).block_until_ready()
    finally:
        tw.set_num_threads(None)
        ours_native.record_of.cache_clear()


def test_integers_keep_no_edge_inside_jit():
    top = np.iinfo(np.int32).max
    M = jnp.asarray(np.array([[top, 5], [3, top]], np.int32))
    made = jax.jit(lambda M: tw.matmul(M, M, semiring="min_plus"))(M)
    assert made.tolist() == [[8, top], [top, 8]]


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint32", "bfloat16"])
@pytest.mark.parametrize("semiring", ["min_plus", "max_plus", "plus_times"])
def test_integers_and_halves_inside_jit_call_no_python(dtype, semiring, monkeypatch):
    """Weights are looked at by the handler; only missing edges need Python, and no callback."""
    from tilewise.jax import operator as ours

    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(ours, "on_host", lambda *_, **__: pytest.fail("it called back"))
    for shapes in (((7, 9), (9, 4)), ((3, 5, 6), (6, 2)), ((1, 3), (3, 1)), ((70, 300), (300, 60))):
        M, N = (rng.integers(0, 5, shape).astype(jnp.dtype(dtype)) for shape in shapes)
        for missing in (False, True):
            if missing and M.dtype.kind in "iu" and semiring != "plus_times":
                extremes = np.iinfo(M.dtype)
                M[rng.random(M.shape) < 0.3] = extremes.max if semiring == "min_plus" else extremes.min
            arg = semiring != "plus_times"
            made = jax.jit(lambda M, N, arg=arg: tw.matmul(M, N, semiring=semiring, return_arg=arg))(M, N)
            expected = tw.matmul(M, N, semiring=semiring, return_arg=arg)
            for one, two in zip(*((x if arg else (x,)) for x in (made, expected)), strict=True):
                np.testing.assert_array_equal(np.asarray(one, np.float64), np.asarray(two, np.float64))


def test_errors_inside_jit_are_raised_while_tracing_or_by_xla():
    for dtype in ("float32", "bfloat16"):
        M = values(3, 3).astype(dtype)
        with pytest.raises(tw.UsageError, match="plus_times picks none"):
            jax.jit(lambda M: tw.matmul(M, M, return_arg=True))(M)
    heavy = jnp.full((3, 3), 2**30, jnp.int32)
    with pytest.raises(Exception, match=r"M holds the weight 1073741824: over int32 weights are from"):
        jax.jit(lambda M: tw.matmul(M, M, semiring="min_plus"))(heavy).block_until_ready()


def test_a_program_contains_the_id_of_its_process():
    """It contains addresses: one that is cached on disk must never be found by another process."""
    text = jax.jit(tw.matmul).lower(values(3, 3), values(3, 3)).as_text()
    assert ours_native.TARGET in text
    assert str(ours_native.PROCESS) in text


@pytest.mark.parametrize("axes", [(0, 1), (2, None), (None, 1)])
def test_batches_of_stacks(axes):
    shapes = [(2, 1, 4, 5), (3, 5, 6)]
    drawn = []
    for number, (shape, axis) in enumerate(zip(shapes, axes, strict=True)):
        whole = list(shape) if axis is None else [*shape[:axis], 7, *shape[axis:]]
        drawn.append(values(*whole, seed=number))
    made = jax.jit(jax.vmap(tw.matmul, axes))(*drawn)
    np.testing.assert_allclose(made, jax.vmap(jnp.matmul, axes)(*drawn), rtol=1e-5, atol=1e-5)


def test_rows_of_groups_and_masks_of_tiles():
    x, w = values(6, 2), values(2, 2, 3, seed=1)
    rows, ends = np.array([5, 4, 3, 2, 1, 0], np.int32), np.array([2, 6], np.int32)
    made = tw.grouped_matmul(x, w, jnp.asarray(ends), rows=jnp.asarray(rows))
    assert isinstance(made, jax.Array)
    np.testing.assert_array_equal(made, tw.grouped_matmul(np.asarray(x)[rows], np.asarray(w), ends))
    mask, M = np.eye(2, dtype=bool), values(4, 4)
    made = tw.block_sparse_matmul(M, M, mask)
    assert isinstance(made, jax.Array)
    np.testing.assert_array_equal(made, tw.block_sparse_matmul(np.asarray(M), np.asarray(M), mask))


def test_a_dtype_that_jax_has_off_is_refused():
    M = values(3, 3)
    with pytest.raises(tw.DtypeError, match="jax_enable_x64"):
        tw.matmul(M, M, dtype="float64")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        assert tw.matmul(M, M, dtype="float64").dtype == "float64"
