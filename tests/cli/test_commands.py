"""The commands' output, exit codes and files."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewise.cli.main import run


@pytest.fixture
def matrices(tmp_path):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((5, 7)), rng.standard_normal((7, 3))
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "B.npy", B)
    return tmp_path, A, B


def output_of(capsys, arguments, code):
    assert run([str(a) for a in arguments]) == code
    return capsys.readouterr()


class TestMultiply:
    def test_files(self, matrices, capsys):
        folder, A, B = matrices
        out = output_of(
            capsys, ["multiply", folder / "A.npy", folder / "B.npy", "-o", folder / "C.npy", "--check"], 0
        ).out
        np.testing.assert_allclose(np.load(folder / "C.npy"), A @ B)
        assert "ok: relative error" in out
        assert sorted(p.name for p in folder.iterdir()) == ["A.npy", "B.npy", "C.npy"]

    def test_what_becomes_of_the_product(self, matrices, capsys):
        folder, A, B = matrices
        np.save(folder / "bias.npy", np.array([1.0, -2.0, 3.0]))
        files = [folder / "A.npy", folder / "B.npy", "-o", folder / "C.npy", "--bias", folder / "bias.npy"]
        out = output_of(capsys, ["multiply", *files, "--alpha", "0.5", "--activation", "relu", "--check"], 0).out
        np.testing.assert_allclose(np.load(folder / "C.npy"), np.maximum(0.5 * (A @ B) + [1, -2, 3], 0))
        assert "relu(0.5 · M·N + bias)" in out
        assert "ok: relative error" in out
        assert "known are relu" in output_of(capsys, ["multiply", *files, "--activation", "swish"], 2).err

    def test_a_shape(self, capsys):
        drawn = ["multiply", "--shape", "10x20x30", "--seed", "3"]
        out = output_of(capsys, [*drawn, "--check", "--json", "--semiring", "min_plus"], 0)
        document = json.loads(out.out)
        assert document["plan"]["problem"]["shape"] == [10, 20, 30]
        assert document["check"]["passed"]
        assert "device: cpu" in out.err or "device: cuda" in out.err  # the best one present

    @pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "complex64", "bfloat16"])
    def test_every_dtype_can_be_made_and_checked(self, dtype, capsys):
        output_of(capsys, ["multiply", "--shape", "9x8x7", "--dtype", dtype, "--check", "--device", "cpu"], 0)

    def test_a_product_of_bfloat16_is_an_operand(self, tmp_path, capsys):
        ml_dtypes = pytest.importorskip("ml_dtypes")
        A, P, Q, R = (str(tmp_path / f"{name}.npy") for name in "APQR")
        np.save(A, np.arange(9).reshape(3, 3).astype(ml_dtypes.bfloat16))
        output_of(capsys, ["multiply", A, A, "-o", P, "--device", "cpu"], 0)
        output_of(capsys, ["multiply", P, A, "-o", Q, "--device", "cpu"], 0)
        output_of(capsys, ["multiply", P, A, "-o", R, "--device", "cpu", "--memory", "8GB"], 0)  # of the tests' process
        expected = np.linalg.matrix_power(np.arange(9.0).reshape(3, 3), 3).astype(ml_dtypes.bfloat16)
        for path in (Q, R):
            assert (np.load(path).view(ml_dtypes.bfloat16) == expected).all()

    def test_a_wrong_product_is_noticed(self, monkeypatch, capsys):
        import tilewise.backends.reference.phases as phases

        right, calls = phases.multiply, []

        def wrong_once(M, N, P, *rest):
            right(M, N, P, *rest)
            if not calls:
                P[0, 0] += 1
            calls.append(1)

        monkeypatch.setattr(phases, "multiply", wrong_once)
        assert (
            "WRONG"
            in output_of(
                capsys, ["multiply", "--shape", "9x8x7", "--check", "--device", "cpu", "--kernel", "reference"], 1
            ).out
        )


def bad_files(folder):
    (folder / "foreign.npy").write_text("this is no matrix")
    (folder / "cut.npy").write_bytes((folder / "A.npy").read_bytes()[:-9])
    (folder / "header.npy").write_bytes((folder / "A.npy").read_bytes()[:20])
    (folder / "empty.npy").write_bytes(b"")
    np.save(folder / "objects.npy", np.array([[object()]]), allow_pickle=True)
    np.save(folder / "text.npy", np.array([["a"]]))
    np.save(folder / "cube.npy", np.ones((2, 2, 2)))
    np.savez(folder / "many.npz", np.ones(3))
    (folder / "folder.npy").mkdir()


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["multiply", "nothing.npy", "B.npy"], 2, "nothing.npy does not exist"),
        (["multiply", "foreign.npy", "B.npy"], 2, "foreign.npy is not a .npy file"),
        (["multiply", "cut.npy", "B.npy"], 2, "cut.npy is damaged or cut short"),
        (["multiply", "header.npy", "B.npy"], 2, "header.npy is damaged or cut short"),
        (["multiply", "empty.npy", "B.npy"], 2, "empty.npy is not a .npy file"),
        (["multiply", "objects.npy", "B.npy"], 2, "objects.npy holds Python objects"),
        (["multiply", "text.npy", "text.npy"], 2, "holds no numbers"),
        (["multiply", "cube.npy", "B.npy"], 2, "cube.npy holds an array of 3 axes"),
        (["multiply", "many.npz", "B.npy"], 2, "many.npz is an .npz archive"),
        (["multiply", "folder.npy", "B.npy"], 2, "folder.npy is a folder"),
        (["multiply", "B.npy", "A.npy"], 2, "the 3 columns of M do not meet the 5 rows of N"),
        (["multiply", "A.npy"], 2, "give two .npy files, or --shape"),
        (["multiply", "A.npy", "B.npy", "--shape", "1x1x1"], 2, "give two .npy files, or --shape"),
        (["multiply", "--shape", "3x3"], 2, "must be MxKxN"),
        (["multiply", "--shape", "3x3x3", "--dtype", "float33"], 2, "dtype 'float33' is not known"),
        (["multiply", "A.npy", "B.npy", "--tile", "0"], 2, "tile=0 must be from 1 to 32"),
        (["multiply", "A.npy", "B.npy", "--tile", "64"], 2, "tile=64 must be from 1 to 32"),
        (["multiply", "A.npy", "B.npy", "--tile", "x"], 2, "'x' is not a valid integer"),
        (["multiply", "A.npy", "B.npy", "--semiring", "sum"], 2, "semiring='sum' is not known"),
        (["multiply", "A.npy", "B.npy", "--device", "gpu"], 2, "device='gpu' is not known"),
        (["multiply", "--shape", "3x3x3", "--seed", "-1"], 2, "-1 is not in the range x>=0"),
        (["multiply", "A.npy", "B.npy", "--device", "cpu", "--kernel", "pack"], 2, "on the CPU there are reference"),
        (["multiply", "A.npy", "B.npy", "--device", "cuda:77"], 3, "was requested, but"),
        (["multiply", "A.npy", "B.npy", "-o", "no/where/C.npy"], 2, "the folder no/where does not exist"),
        (["multiply", "A.npy", "B.npy", "-o", "folder.npy"], 2, "folder.npy is a folder"),
        (["plan"], 2, "Missing option '--shape'"),
        (["plan", "--shape", "3x3x3", "--device", "h200", "--kernel", "tiled", "--tile", "2"], 2, "whole tiles of 2"),
        (["bench", "everything"], 2, "suite 'everything' is not known"),
        (["bench", "--sizes", "a"], 2, "must be whole numbers"),
        (["bench", "--from", "A.npy"], 2, "is not a document"),
        (["run", "A.npy", "--limit-time", "-1"], 2, "-1.0 is not in the range x>0"),
        (["nonsense"], 2, "No such command 'nonsense'"),
    ],
)
def test_bad_input_gets_one_sentence_and_no_file(matrices, monkeypatch, capsys, arguments, code, expected):
    folder, *_ = matrices
    bad_files(folder)
    monkeypatch.chdir(folder)
    before = sorted(os.listdir(folder))
    if "-o" not in arguments and arguments[0] == "multiply":
        arguments = [*arguments, "-o", "C.npy"]
    err = output_of(capsys, arguments, code).err
    assert expected in err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith(("error:", "Error:"))]) == 1
    assert sorted(os.listdir(folder)) == before


def test_an_output_that_was_there_survives_a_failure(matrices, monkeypatch, capsys):
    folder, *_ = matrices
    (folder / "C.npy").write_text("precious")
    output_of(capsys, ["multiply", folder / "B.npy", folder / "A.npy", "-o", folder / "C.npy"], 2)
    assert (folder / "C.npy").read_text() == "precious"

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    err = output_of(capsys, ["multiply", folder / "A.npy", folder / "B.npy", "-o", folder / "C.npy"], 2).err
    assert "No space left on device" in err
    assert (folder / "C.npy").read_text() == "precious"
    assert sorted(p.name for p in folder.iterdir()) == ["A.npy", "B.npy", "C.npy"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(matrices, capsys):
    folder, *_ = matrices
    locked = folder / "locked"
    locked.mkdir(mode=0o500)
    err = output_of(capsys, ["multiply", folder / "A.npy", folder / "B.npy", "-o", locked / "C.npy"], 2).err
    assert "permission denied" in err


def test_interrupting_ends_with_130_and_no_file(matrices, monkeypatch, capsys):
    folder, *_ = matrices

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("tilewise.backends.cpu.run"), "run", interrupted)
    output_of(capsys, ["multiply", folder / "A.npy", folder / "B.npy", "-o", folder / "C.npy", "--device", "cpu"], 130)
    assert not (folder / "C.npy").exists()


def test_an_interrupted_command_waits_for_no_compiler():
    program = (
        "import sys, threading, time\n"
        "import tilewise.cli.main as main\n"
        "def interrupted(arguments, run):\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    print('interrupted', file=sys.stderr)\n"
        "    return 130\n"
        "main.guarded = interrupted\n"
        "main.main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")


def test_plan_shows_what_the_notes_promise(capsys):
    out = output_of(
        capsys, ["plan", "--shape", "64x64x64", "--device", "h200", "--kernel", "tiled_edges", "--tile", "16"], 0
    ).out
    for name in ("kernel", "phases", "shared memory", "÷ 16", "floor", "why"):
        assert name in out


def test_plan_prints_the_very_source(capsys):
    out = output_of(capsys, ["plan", "--shape", "64x64x64", "--kernel", "tiled_edges", "--source"], 0).out
    assert "#define TILE_WIDTH" in out
    assert 'extern "C" __global__ void tiled_edges' in out


def test_plan_prints_the_tensor_cores_source_too(capsys):
    out = output_of(
        capsys, ["plan", "--shape", "4097x4097x4097", "--dtype", "bfloat16", "--device", "h200", "--source"], 0
    ).out
    assert "wgmma.mma_async" in out
    assert "wgmma_half(" in out


@pytest.mark.drawn(2)
@pytest.mark.parametrize("arguments", [["plan", "--shape", "9x9x9"], ["info"], ["info", "--dtypes"], ["demo"]])
def test_stdout_has_one_json_document(arguments, capsys):
    json.loads(output_of(capsys, [*arguments, "--json"], 0).out)


def test_json_has_no_nan_or_infinity(capsys):
    def never(name):
        raise AssertionError(name)

    arguments = ["multiply", "--shape", "3x2x3", "--device", "cpu", "--alpha", "inf", "--check", "--json"]
    document = json.loads(output_of(capsys, arguments, 0).out, parse_constant=never)
    assert document["plan"]["problem"]["epilogue"]["alpha"] == "inf"


@pytest.mark.parametrize("shape", ["0x5x4", "5x0x4", "5x4x0", "0x0x0"])
def test_a_product_without_cells_passes_its_check(shape, capsys):
    out = output_of(capsys, ["multiply", "--shape", shape, "--device", "cpu", "--check"], 0).out
    assert "ok: relative error 0" in out


def test_the_floor_that_multiply_reports_is_this_machines(capsys):
    arguments = ["multiply", "--shape", "900x900x900", "--device", "cpu", "--json"]
    document = json.loads(output_of(capsys, arguments, 0).out)
    assert document["plan"]["floor_seconds"] < document["seconds"]["kernel"]
    assert document["plan"]["device"]["name"] != "this CPU"


def test_demo_and_info_print_text(capsys):
    out = output_of(capsys, ["demo", "--device", "cpu"], 0).out
    assert "phase 1   Mds |  3  · |   Nds | 17 18 |   sums |  90  96 |" in out
    assert "ok: relative error" in out
    assert "backends" in output_of(capsys, ["info"], 0).out


def test_bench_saves_and_shows(tmp_path, capsys):
    saved = tmp_path / "run.json"
    output_of(capsys, ["bench", "tiles", "--device", "cpu", "--sizes", "16,33", "--quick", "--save", saved], 0)
    document = json.loads(saved.read_text())
    assert document["suite"] == "tiles"
    assert len(document["rows"]) == 10
    assert all(row["relative_error"] < 1e-5 for row in document["rows"])
    assert "reference 32" in output_of(capsys, ["bench", "--from", saved], 0).out


@pytest.mark.parametrize("ends", [KeyboardInterrupt, AssertionError])
def test_an_interrupted_benchmark_saves_its_rows(ends, tmp_path, capsys, monkeypatch):
    from tilewise.bench import suites

    def stopped():
        raise ends("the second one")

    first = suites.pieces(suites.Request("tiles", "cpu", (16,), quick=True))[0]
    monkeypatch.setattr(suites, "pieces", lambda _: [first, stopped, first])
    saved = tmp_path / "half.json"
    with contextlib.suppress(AssertionError):
        run(["bench", "tiles", "--device", "cpu", "--quick", "--save", str(saved)])
    errors = "".join(capsys.readouterr().err.split())  # a long path is wrapped, wherever it happens to end
    assert "half.json holds the first 1 of 3 measurements".replace(" ", "") in errors
    assert json.loads(saved.read_text())["rows"]


@pytest.mark.drawn(1)  # matplotlib takes two seconds
@pytest.mark.parametrize("name", ["cpu-shapes-2-threads", "cpu-semirings-2-threads", "tiles", "card-semirings"])
def test_bench_plots_the_documents_of_the_tables(name, tmp_path, capsys):
    """Whole, and of fewer rows and peers."""
    kept = Path(__file__).parents[2] / "docs" / "benchmarks" / f"{name}.json"
    document = json.loads(kept.read_text())
    few = tmp_path / "few.json"
    few.write_text(
        json.dumps({**document, "rows": [r for r in document["rows"] if "mkl" not in r.get("kernel", "")][:2]})
    )
    for number, source in enumerate((kept, few)):
        drawn = tmp_path / f"{number}.png"
        output_of(capsys, ["bench", "--from", source, "--plot", drawn], 0)
        assert drawn.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    "command",
    ["plan --shape 4x4x4 --device h200", "plan --shape 4x4x4 --device h200 --json", "trace --shape 4x4x4 --tile 2"],
)
def test_a_pipe_that_closes_early_is_no_error(command):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "tilewise", *command.split()], stdout=writer, stderr=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux's")
def test_stdout_on_a_full_disk_is_one_sentence():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tilewise", "trace", "--shape", "4x4x4"], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (4, "error: what is printed cannot be written: No space left on device\n")
