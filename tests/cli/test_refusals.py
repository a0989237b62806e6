"""Invalid input: one message, exit 2, nothing allocated, no file left."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.cli.main import run
from tilewise.errors import OutOfMemoryError
from tilewise.system import memory


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", np.eye(4))
    return tmp_path


def refused(capsys, arguments, *expected, code=2):
    assert run(arguments) == code
    err = capsys.readouterr().err
    assert len([line for line in err.splitlines() if line.startswith("error")]) == 1
    assert "report it" not in err
    for part in expected:
        assert part in err
    return err


@pytest.mark.parametrize("text", ["3 3 0\n", "3 3 0", "% a remark\n\n0 0 0\n"])
def test_a_matrix_market_file_without_entries_is_valid(folder, capsys, text):
    (folder / "G.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n{text}")
    assert run(["closure", "G.mtx", "-o", "D.npy"]) == 0
    n = int(text.replace("% a remark\n\n", "").split()[0])
    expected = np.full((n, n), np.inf)
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(np.load("D.npy"), expected)
    capsys.readouterr()


@pytest.mark.parametrize("kind", ["general", "symmetric", "skew-symmetric"])
def test_dense_matrix_market_files_as_scipy_reads_them(folder, kind):
    scipy_io = pytest.importorskip("scipy.io")
    from tilewise.cli.graphs import read_matrix_market

    rng = np.random.default_rng(next_seed())
    half = np.tril(rng.integers(1, 9, (5, 5)), -1).astype(float)
    whole = {"general": half + 3, "symmetric": half + half.T, "skew-symmetric": half - half.T}[kind]
    scipy_io.mmwrite("G.mtx", whole, symmetry=kind)
    shape, rows, cols, weights = read_matrix_market(folder / "G.mtx")
    made = np.zeros(shape)
    made[rows, cols] = weights
    np.testing.assert_array_equal(made, whole)


def test_a_few_bytes_that_declare_gigabytes_are_refused(folder, capsys, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda root=None: (300_000_000, "the container's limit, memory.max"))
    (folder / "G.mtx").write_text("%%MatrixMarket matrix coordinate real general\n20000 20000 1\n1 1 1\n")
    refused(capsys, ["closure", "G.mtx"], "20000×20000", "3.2 GB", "the container's limit, memory.max")
    (folder / "H.mtx").write_text("%%MatrixMarket matrix coordinate real general\n9 9 99999999999\n1 1 1\n")
    refused(capsys, ["closure", "H.mtx"], "99,999,999,999 entries")
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in (("format", np.array(b"csr")), ("shape", np.array([9, 9])), ("indptr", np.zeros(10, int))):
            np.save("member.npy", array)
            archive.write("member.npy", f"{name}.npy")
        for name in ("data", "indices"):
            np.save("member.npy", np.zeros(40_000_000, np.int8))
            archive.write("member.npy", f"{name}.npy")
    os.unlink("member.npy")
    assert (folder / "bomb.npz").stat().st_size < 1_000_000
    refused(capsys, ["closure", "bomb.npz"], "bomb.npz, unpacked, needs 320 MB")
    with (folder / "sparse.npy").open("wb") as file:  # a file of holes: large, and nothing on the disk
        header = {"descr": "<f8", "fortran_order": False, "shape": (100_000, 100_000)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 8 * 10**10)
    refused(capsys, ["multiply", "sparse.npy", "sparse.npy"], "sparse.npy needs 80 GB")
    refused(capsys, ["multiply", "--shape", "100000x1x100000"], "needs 40 GB")


def test_a_product_too_large_for_any_array_is_a_sentence():
    thin = np.broadcast_to(np.float32(1), (1 << 40, 1))
    with pytest.raises(OutOfMemoryError, match="a product of 1099511627776×1099511627776 float32 needs"):
        tw.matmul(thin, thin.T)


def test_accumulate_without_out_is_refused(folder):
    with pytest.raises(tw.TilewiseError, match="accumulate"):
        tw.matmul(np.eye(3), np.eye(3), accumulate=True)
    with pytest.raises(tw.TilewiseError, match="accumulate"):
        tw.matmul(np.eye(3), np.eye(3), accumulate=True, memory="1GB")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--cluster", "tls://nowhere:1"], "needs --tls-ca, --tls-cert, --tls-key"),
        (["--cluster", "tls://nowhere:1", "--tls-ca", "none", "--tls-cert", "A.npy", "--tls-key", "A.npy"], "does not"),
        (["--cluster", "tcp://nowhere:1", "--tls-ca", "A.npy", "--tls-cert", "A.npy", "--tls-key", "A.npy"], "by TLS"),
        (["--tls-ca", "none"], "belong to --cluster"),
    ],
)  # fmt: skip
def test_tls_without_its_files_is_a_sentence(folder, capsys, options, expected):
    pytest.importorskip("distributed")
    assert run(["multiply", "A.npy", "A.npy", "-o", "C.npy", *options]) == 2
    assert expected in capsys.readouterr().err
    assert sorted(os.listdir(folder)) == ["A.npy"]


def test_a_truncated_part_is_refused_with_how_to_restart(folder, capsys):
    from tilewise.scale.files import FileProduct

    job = FileProduct(Path("A.npy"), Path("A.npy"), Path("C.npy"), memory=8 * 10**9)
    job._begin(False)
    job.target.close()
    os.truncate(job.output.part, 100)
    job.close()
    refused(capsys, ["multiply", "A.npy", "A.npy", "-o", "C.npy", "--memory", "8GB", "--device", "cpu"], "--restart")
    arguments = ["multiply", "A.npy", "A.npy", "-o", "C.npy", "--memory", "8GB", "--device", "cpu", "--restart"]
    assert run(arguments) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["multiply", "A.npy", "A.npy", "-o", "C.npy", "--memory", ""], "--memory='' is no amount of memory"),
        (["closure", "A.npy", "-o", "C.npy", "--memory", ""], "--memory='' is no amount of memory"),
        (
            ["explore", "--compare", "naive", "nave", "--no-open"],
            "nave is neither a file nor a rung of the ladder: naive",
        ),
        (["check", "none.cu"], "none.cu does not exist"),
        (["run", "none.cu"], "none.cu does not exist"),
        (["multiply", "V.npy", "A.npy"], "V.npy holds an array of 1 axis"),
    ],
)
def test_what_is_missing_or_empty_is_named(folder, capsys, arguments, expected):
    np.save("V.npy", np.ones(4))
    refused(capsys, arguments, expected)
    assert not (folder / "C.npy").exists()
