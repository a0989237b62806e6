"""`tilewise closure`: three kinds of files in, the closure out, one sentence for what is no graph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from tilewise.cli.main import run

MARKET = """%%MatrixMarket matrix coordinate {field} {symmetry}
% a remark
3 3 {count}
{entries}
"""


def market(folder: Path, entries: str, field: str = "real", symmetry: str = "general") -> Path:
    path = folder / "graph.mtx"
    count = len(entries.splitlines())
    path.write_text(MARKET.format(field=field, symmetry=symmetry, count=count, entries=entries))
    return path


def test_a_dense_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    W = np.array([[np.inf, 2, 9], [np.inf, np.inf, 3], [np.inf, np.inf, np.inf]])
    np.save(tmp_path / "W.npy", W)
    arguments = ["closure", tmp_path / "W.npy", "-o", tmp_path / "D.npy", "--predecessors", tmp_path / "B.npy"]
    assert run([*map(str, arguments), "--path", "0", "2", "--json"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "D.npy"), tw.closure(W))
    assert np.load(tmp_path / "B.npy")[0, 2] == 1
    report = json.loads(capsys.readouterr().out)
    assert report["path"] == [0, 1, 2]
    assert report["weight"] == 5
    assert report["pairs"] == 3


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_sparse_file_keeps_edges_of_weight_zero(tmp_path: Path, kind: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_array(([2.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3)).asformat(kind)
    sparse.save_npz(tmp_path / "W.npz", matrix)
    assert run(["closure", str(tmp_path / "W.npz"), "-o", str(tmp_path / "D.npy")]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "D.npy")[0], [0, 2, 2])


def test_matrix_market_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "D.npy"
    assert run(["closure", str(market(tmp_path, "1 2 1.5\n2 3 1\n1 2 0.5")), "-o", str(out)]) == 0
    assert np.load(out)[0, 2] == 1.5  # of two entries for one edge the better one
    assert run(["closure", str(market(tmp_path, "2 1 4\n3 2 5", "integer", "symmetric")), "-o", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out), [[0, 4, 9], [4, 0, 5], [9, 5, 0]])
    path = market(tmp_path, "1 2\n2 3", "pattern")
    assert run(["closure", str(path), "-o", str(out), "--semiring", "lor_land", "--path", "2", "0"]) == 0
    np.testing.assert_array_equal(np.load(out), np.triu(np.ones((3, 3), bool)))
    assert "there is none from 2 to 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 1\n", "promises 5 entries"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n9 1 1\n", "outside its 3×3"),
        ("a.mtx", "%%MatrixMarket matrix coordinate complex general\n3 3 0\n", "is not known"),
        ("a.mtx", "%%MatrixMarket\n", "no Matrix Market file"),
        ("a.txt", "1 2 3\n", "is no graph"),
        ("a.npz", "PK nothing", "no sparse matrix"),
    ],
)
def test_what_is_no_graph_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    assert run(["closure", str(tmp_path / name), "-o", str(tmp_path / "D.npy")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "D.npy").exists()


def test_a_negative_cycle_is_named_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = market(tmp_path, "1 2 1\n2 1 -2")
    assert run(["closure", str(path), "-o", str(tmp_path / "D.npy")]) == 2
    assert "0 → 1 → 0" in capsys.readouterr().err
    assert not (tmp_path / "D.npy").exists()
