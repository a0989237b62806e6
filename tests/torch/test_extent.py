"""A tensor whose storage was taken away is refused, not read."""

from __future__ import annotations

import pytest

import tilewise as tw

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.interop


@pytest.mark.parametrize("left", [0, 8, 2048])
def test_storage_made_smaller_is_noticed(left):
    x, y = torch.ones(64, 64), torch.ones(64, 64)
    x.untyped_storage().resize_(left)
    with pytest.raises(tw.TilewiseError, match=r"M is .* of a storage that has"):
        tw.matmul(x, y)
    with pytest.raises(tw.TilewiseError, match=r"N is .* of a storage that has"):
        tw.matmul(y, x)
