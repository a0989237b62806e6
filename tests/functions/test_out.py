"""`out=`: P is in the array that was passed, or the call is refused and the array is as before, in every function."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw

A = np.arange(36.0).reshape(6, 6)
MATRIX = {
    "matmul": lambda out: tw.matmul(A, A, out=out),
    "memory": lambda out: tw.matmul(A, A, out=out, memory="1MB"),
    "grouped": lambda out: tw.grouped_matmul(A, np.stack([A, A]), np.array([3, 6]), out=out),
    "einsum": lambda out: tw.einsum("ij,jk->ik", A, A, out=out),
    "three": lambda out: tw.einsum("ij,jk,kl->il", A, A, np.eye(6), out=out),
}
VECTOR = {
    "matvec": lambda out: tw.matvec(A, A[0], out=out),
    "vecmat": lambda out: tw.vecmat(A[0], A, out=out),
    "vecdot": lambda out: tw.vecdot(A, A, out=out),
}
CALLS = [(name, call, 2) for name, call in MATRIX.items()] + [(name, call, 1) for name, call in VECTOR.items()]


@pytest.mark.parametrize(("name", "call", "axes"), CALLS)
def test_cells_at_one_place_are_refused(name, call, axes):
    place = np.full(12, 7.0)
    for strides in [(0,) * axes, (8,) * axes, (4,) * axes]:  # one place, shifted by an element, by half of one
        with pytest.raises(tw.ShapeError, match="one place in memory"):
            call(np.lib.stride_tricks.as_strided(place, (6,) * axes, strides if axes == 2 or strides != (8,) else (0,)))
    assert (place == 7).all()


@pytest.mark.parametrize(("name", "call", "axes"), CALLS)
def test_a_list_is_refused(name, call, axes):
    out = np.zeros((6,) * axes).tolist()
    with pytest.raises(tw.DtypeError, match="out must be an array, got list"):
        call(out)


@pytest.mark.parametrize(("name", "call", "axes"), CALLS)
def test_a_wrong_shape_is_named_as_it_was_passed(name, call, axes):
    shape = (6,) * (axes - 1) + (5,)
    with pytest.raises(tw.ShapeError, match=f"out is {'×'.join(map(str, shape))}, "):
        call(np.zeros(shape))


@pytest.mark.parametrize(("name", "call", "axes"), CALLS)
def test_interleaved_cells_are_written(name, call, axes):
    room = np.zeros((6, 12) if axes == 2 else 12)
    out = room[..., ::2]
    assert call(out) is out
    np.testing.assert_allclose(out, call(np.zeros((6,) * axes)))
    assert not room[..., 1::2].any()
