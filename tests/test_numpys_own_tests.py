"""NumPy's own tests of matmul, run with ours in its place.

Left out: object arrays, which tilewise refuses, and NumPy's second name for the same 64 bits (`longlong`, or `long`
elsewhere): products of it are equal in dtype, but their scalars are called `int64`.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw

theirs = pytest.importorskip("numpy._core.tests.test_multiarray")

# NumPy's messages for our errors; its tests look for them
MESSAGES = {"out has dtype": "Cannot cast ufunc 'matmul' output", "out is": "non-broadcastable"}


def in_its_place(M, N, out=None):
    """`tw.matmul` called as a ufunc is: `out` may come third."""
    for operand in (M, N):
        if np.asarray(operand).dtype == object:
            pytest.skip("object arrays are refused")
    try:
        return tw.matmul(M, N, out=out)
    except tw.TilewiseError as error:
        more = next((message for start, message in MESSAGES.items() if str(error).startswith(start)), "")
        raise type(error)(f"{error} ({more})") from None


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    monkeypatch.setattr(np, "matmul", in_its_place)


class TestMatmul(theirs.TestMatmul):
    types = "".join(
        t for t in theirs.TestMatmul.types if t != "O" and np.dtype(t).type is np.dtype(np.dtype(t).name).type
    )
    matmul = staticmethod(in_its_place)


def test_they_are_all_there():
    names = {name for name in dir(TestMatmul) if name.startswith("test_")}
    assert len(names) >= 19
    assert {"test_out_arg", "test_dot_equivalent", "test_shapes", "test_matmul_bool"} <= names
