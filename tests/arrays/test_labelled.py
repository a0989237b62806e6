"""Arrays with labels or units of their own: NumPy leaves a product of them to their class, so it is refused here."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw


class Frame:
    """Like pandas and xarray: convertible to NumPy, with ufuncs of their own."""

    ndim = 2

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.values

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **how: object) -> str:
        return f"aligned {ufunc.__name__}"

    def to_numpy(self) -> np.ndarray:
        return self.values


class Quantity(np.ndarray):
    """As units do: an ndarray whose ufuncs give something else than an ndarray's."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **how: object) -> str:
        return f"{ufunc.__name__} with units"


class Refusing:
    __array_ufunc__ = None

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.eye(2)


KINDS = [
    "Frame", "Quantity", "Refusing", "pandas.DataFrame", "pint.Quantity", "xarray.DataArray", "xarray.Dataset",
    "xarray.Variable",
]  # fmt: skip


def labelled(kind: str) -> object:
    values = np.array([[1.0, 2], [3, 4]])
    if kind == "Frame":
        return Frame(values)
    if kind == "Quantity":
        return values.view(Quantity)
    if kind == "Refusing":
        return Refusing()
    if kind == "pandas.DataFrame":
        return pytest.importorskip("pandas").DataFrame(values, index=list("ab"), columns=list("ba"))
    if kind == "pint.Quantity":
        return pytest.importorskip("pint").UnitRegistry().Quantity(values, "metre")
    xarray = pytest.importorskip("xarray")
    if kind == "xarray.Variable":
        return xarray.Variable(("i", "j"), values)
    made = xarray.DataArray(values, dims=("i", "j"), coords={"j": list("ba")})
    return made if kind == "xarray.DataArray" else xarray.Dataset({"a": made})


PLAIN = np.array([[1.0, 2], [3, 4]])
CALLS = {
    "matmul": lambda x: tw.matmul(x, x),
    "matmul, M": lambda x: tw.matmul(x, PLAIN),
    "matmul, N": lambda x: tw.matmul(PLAIN, x, semiring="min_plus"),
    "matmul of lists": lambda x: tw.matmul([[1.0, 2], [3, 4]], x),
    "bias": lambda x: tw.matmul(PLAIN, PLAIN, bias=x),
    "memory": lambda x: tw.matmul(x, PLAIN, memory="1GB"),
    "plan": lambda x: tw.plan(x, PLAIN),
    "closure": lambda x: tw.closure(x),
    "chain": lambda x: tw.chain([PLAIN, x, PLAIN]),
    "power": lambda x: tw.power(x, 3),
    "power 0": lambda x: tw.power(x, 0),
    "matvec": lambda x: tw.matvec(x, np.ones(2)),
    "matvec, x": lambda x: tw.matvec(PLAIN, x),
    "einsum": lambda x: tw.einsum("ij,jk->ik", PLAIN, x),
    "vecmat": lambda x: tw.vecmat(np.ones(2), x),
    "vecdot": lambda x: tw.vecdot(x, PLAIN),
    "inner": lambda x: tw.inner(PLAIN, x),
    "outer": lambda x: tw.outer(x, PLAIN),
    "tensordot": lambda x: tw.tensordot(x, PLAIN, 1),
    "einsum of one": lambda x: tw.einsum("ij->ji", x),
    "grouped": lambda x: tw.grouped_matmul(x, np.ones((1, 2, 2)), np.array([2])),
    "many": lambda x: tw.matmul_many([(x, PLAIN)]),
    "block sparse": lambda x: tw.block_sparse_matmul(x, PLAIN, np.ones((1, 1), bool)),
    "scatter": lambda x: tw.scatter_rows(x, np.array([0, 1]), 2),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_units_are_not_lost_in_silence(kind: str, call: str) -> None:
    with pytest.raises(tw.UsageError, match=r"labels or units.*plain array|labels or units.*to_numpy\(\)"):
        CALLS[call](labelled(kind))


def test_the_sentence_names_the_operand_and_what_to_pass() -> None:
    with pytest.raises(tw.UsageError, match=r"^N is a \S*Frame, whose labels or units .* pass N\.to_numpy\(\)$"):
        tw.matmul(PLAIN, Frame(PLAIN))


def test_with_dask_beside_it() -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(tw.UsageError, match="labels or units"):
        tw.matmul(da.ones((2, 2)), Frame(PLAIN))


def test_what_has_numpys_own_rules_goes_on_as_ever(tmp_path) -> None:
    np.save(tmp_path / "a.npy", PLAIN)
    for x in (np.load(tmp_path / "a.npy", mmap_mode="r"), PLAIN.view(np.recarray), PLAIN.tolist()):
        np.testing.assert_array_equal(np.asarray(tw.matmul(x, x)), PLAIN @ PLAIN)
