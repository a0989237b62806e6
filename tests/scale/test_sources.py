"""Files and stores whose data do not match their declaration are refused."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from tilewise.errors import FileError
from tilewise.scale.sources import ZarrSource


class Store:
    """A store whose chunks have another size than declared."""

    shape, chunks, dtype = (6, 6), (3, 3), np.dtype(np.float64)

    def __init__(self, part):
        self.part = part

    def __getitem__(self, where):
        return self.part


@pytest.mark.parametrize("part", [np.ones((1, 3)), np.ones((3, 4)), np.float64(1), np.ones((3, 3), np.float32)])
def test_a_chunk_of_another_size_is_refused(part):
    out = np.zeros((6, 6))
    with pytest.raises(FileError, match="Z is damaged: the chunk of rows 0 to 2 and columns 0 to 2 came as"):
        ZarrSource(Store(part), "Z").read(slice(0, 6), slice(0, 6), out)
    assert not out.any()


def test_a_chunk_file_of_another_size_is_refused(tmp_path):
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(
        str(tmp_path / "A.zarr"), shape=(40, 40), dtype="float64", chunks=(20, 20), compressors=None
    )
    made[:] = 1.0
    chunk = next(p for p in (tmp_path / "A.zarr").rglob("*") if p.is_file() and p.stat().st_size == 20 * 20 * 8)
    for size in (8, 20 * 20 * 8 - 8, 20 * 20 * 8 * 3):
        chunk.write_bytes(b"\0" * size)
        with pytest.raises(tw.TilewiseError):
            tw.matmul(zarr.open(str(tmp_path / "A.zarr"), mode="r"), np.ones((40, 3)))
