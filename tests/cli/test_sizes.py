"""What cannot fit is refused with its number before anything is allocated: exit 2, by commands and calls alike."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from tilewise.cli.main import run
from tilewise.errors import TooLargeError


@pytest.mark.parametrize(
    "arguments",
    [
        ["multiply", "--shape", "3000000x3000000x3000000"],
        ["multiply", "--shape", "99999999999x99999999999x99999999999"],
        ["multiply", "--shape", "10000000x1x10000000"],
    ],
)
def test_a_shape_that_does_not_fit(capsys, arguments):
    assert run(arguments) == 2
    err = capsys.readouterr().err
    assert "of memory, and" in err
    assert "are available" in err


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tw.matmul(x((10**7, 1)), x((1, 10**7))),
        lambda x: tw.matmul(x((2**40, 1)), x((1, 2**40))),
        lambda x: tw.matmul(x((10**7, 1)), x((1, 10**7)), semiring="min_plus"),
        lambda x: tw.closure(x((10**6, 10**6))),
        lambda x: tw.closure(x((10**6, 10**6)), return_predecessors=True),
    ],
)
def test_a_product_or_a_closure_that_does_not_fit(call):
    with pytest.raises(TooLargeError, match=r"needs .* of memory, and .* are available") as caught:
        call(lambda shape: np.broadcast_to(np.float32(1), shape))
    assert caught.value.exit_code == 2


def test_the_same_of_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    for weight in (-1.0, 1.0):  # by products, and by search
        W = sparse.coo_array(([weight], ([0], [1])), shape=(10**6, 10**6)).tocsr()
        with pytest.raises(TooLargeError, match=r"needs .* of memory, and .* are available"):
            tw.closure(W)
