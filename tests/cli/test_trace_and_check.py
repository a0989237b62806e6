"""`tilewise trace` and `tilewise check` as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tilewise.cli.main import run

KERNELS = Path(__file__).parents[1] / "emulator" / "kernels"


FOREVER = """__global__ void k(float* A, float* B, float* C, int n) {
    while (true) C[threadIdx.y * n] = A[threadIdx.y * n] * B[0];
}"""


def output_of(capsys, arguments, code):
    assert run([str(a) for a in arguments]) == code
    return capsys.readouterr()


class TestTrace:
    def test_without_a_file_it_shows_the_course_s_example(self, capsys):
        out = output_of(capsys, ["trace", "--shape", "4x4x4", "--tile", "2"], 0).out
        assert "(x 1, y 0)  M[0][1] → Mds[0][1]" in out
        assert "64 loads with this kernel, 128 without tiles" in out
        assert "Block (x 0, y 0): 16 loads, 32 without tiles" in out
        assert max(map(len, out.splitlines())) <= 80

    def test_a_block_and_a_phase_can_be_chosen(self, capsys):
        out = output_of(capsys, ["trace", "--shape", "3x3x3", "--block", "1,1", "--phase", "0"], 0).out
        assert "Block (x 1, y 1)" in out
        assert "Block (x 0, y 0)" not in out
        assert "(x 0, y 1)  0 → Mds[1][0]" in out
        assert "N[1][2] → Nds[1][0]" in out
        assert "phase 1" not in out

    def test_every_rung_can_be_traced(self, capsys):
        for rung in ("naive", "tiled", "tiled_edges", "coarsened", "register_tiled"):
            output_of(capsys, ["trace", "--kernel", rung, "--shape", "4x4x4", "--tile", "2"], 0)

    def test_another_algebra_is_held_against_its_own_product(self, capsys):
        output_of(capsys, ["trace", "--shape", "5x4x3", "--semiring", "min_plus", "--dtype", "int32", "--seed", "1"], 0)
        assert "DtypeError" not in output_of(capsys, ["trace", "--dtype", "complex64"], 2).err

    def test_faults_end_with_1(self, capsys):
        out = output_of(capsys, ["trace", KERNELS / "tiled_unchecked.cu", "--shape", "3x3x3"], 1).out
        assert "M[0][3] ✗ [1][0]" in out
        assert "silent-overrun: 4 loads" in out

    def test_json(self, capsys):
        document = json.loads(output_of(capsys, ["trace", "--shape", "4x4x4", "--json"], 0).out)
        assert document["schema"] == 1
        assert document["counters"]["loads"] == 64
        assert len(document["events"]["kind"]) > 0


class TestCheck:
    def test_a_clean_file(self, capsys):
        out = output_of(capsys, ["check", KERNELS / "tiled_edges.cu"], 0).out
        assert "no faults in 3 launches" in out

    @pytest.mark.parametrize(
        ("form", "expected"),
        [("text", "change:"), ("sanitizer", "ERROR SUMMARY"), ("sarif", "2.1.0"), ("json", '"schema": 1')],
    )
    def test_faults_in_every_form_end_with_1(self, form, expected, capsys):
        out = output_of(capsys, ["check", KERNELS / "tiled_unchecked.cu", "--shape", "3x3x3", "--format", form], 1).out
        assert expected in out
        assert "silent" in out.lower()
        if form in ("sarif", "json"):
            json.loads(out)

    def test_several_shapes(self, capsys):
        out = output_of(
            capsys, ["check", KERNELS / "tiled_edges.cu", "--shape", "3x3x3", "--shape", "5x5x5", "--json"], 0
        )
        assert [r["shape"] for r in json.loads(out.out)["runs"]] == [[3, 3, 3], [5, 5, 5]]

    def test_our_own_rungs_are_clean_but_for_the_one_without_checks(self, capsys):
        """That the others are clean is in tests/emulator/test_ladder.py."""
        output_of(capsys, ["check", "--kernel", "tiled_edges", "--tile", "2"], 0)
        assert "silent-overrun" in output_of(capsys, ["check", "--kernel", "tiled", "--tile", "4", "--strict"], 1).out

    def test_arguments_grid_and_macros(self, tmp_path, capsys):
        text = "__global__ void scale(float* x, int n, float by) { int i = blockIdx.x * blockDim.x + threadIdx.x;"
        (tmp_path / "scale.cu").write_text(text + " if (i < LIMIT) x[i] *= by; }")
        arguments = ["check", tmp_path / "scale.cu", "--arg", "x=float32:10", "--arg", "n=10", "--arg", "by=0.5"]
        arguments += ["--grid", "2", "--block-dim", "8"]
        output_of(capsys, [*arguments, "-D", "LIMIT=n"], 0)
        assert "6 stores outside x" in output_of(capsys, [*arguments, "-D", "LIMIT=100"], 1).out
        np.save(tmp_path / "x.npy", np.ones(16, np.float32))
        arguments[3] = f"x={tmp_path / 'x.npy'}"
        output_of(capsys, [*arguments, "-D", "LIMIT=100"], 0)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["check"], 2, "give KERNEL.cu, or --kernel NAME"),
        (["check", "nothing.cu"], 2, "nothing.cu"),
        (["check", "good.cu", "--kernel", "tiled"], 2, "not both"),
        (["check", "--kernel", "tilde"], 2, "kernel='tilde' is not known"),
        (["check", "slip.cu"], 2, "t is not declared"),
        (["check", "good.cu", "--tile", "0"], 2, "must be a whole number from 1 to 32"),
        (["check", "good.cu", "--tile", "64"], 2, "must be a whole number from 1 to 32"),
        (["check", "good.cu", "--shape", "3x3"], 2, "must be MxKxN"),
        (["check", "good.cu", "--shape", "0x3x3"], 2, "three positive whole numbers"),
        (["check", "good.cu", "--shape", "3x4x5"], 2, "must be square"),
        (["check", "good.cu", "--entry", "other"], 2, "has no kernel other"),
        (["check", "good.cu", "--grid", "a"], 2, "--grid 'a' must be whole numbers"),
        (["check", "good.cu", "--block-dim", "1,2,3,4"], 2, "--block-dim"),
        (["check", "good.cu", "--arg", "n"], 2, "must be NAME=VALUE"),
        (["check", "good.cu", "--arg", "Width=x"], 2, "give a number"),
        (["check", "good.cu", "--arg", "other=3"], 2, "has no parameter other"),
        (["check", "good.cu", "--limit", "time=3"], 2, "--limit time is not known"),
        (["check", "good.cu", "--limit", "seconds=-3"], 2, "give a positive number"),
        (["check", "good.cu", "--semiring", "sum"], 2, "semiring='sum' is not known"),
        (["check", "good.cu", "--format", "xml"], 2, "'xml' is not one of"),
        (["check", "forever.cu", "--limit", "steps=1000"], 4, "steps"),
        (["check", "folder.cu"], 2, "folder.cu"),
        (["check", "empty.cu"], 2, "no __global__ function"),
        (["trace", "--shape", "3x3x3", "--shape", "4x4x4"], 2, "one --shape"),
        (["trace", "--block", "7"], 2, "must be BX,BY"),
        (["trace", "--block", "7,7"], 2, "there is no block (x 7, y 7)"),
        (["trace", "slip.cu"], 2, "t is not declared"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, code, expected, tmp_path, monkeypatch, capsys):
    (tmp_path / "good.cu").write_text((KERNELS / "tiled_edges.cu").read_text(encoding="utf-8"))
    (tmp_path / "slip.cu").write_text((KERNELS / "slip.cu").read_text(encoding="utf-8"))
    (tmp_path / "forever.cu").write_text(FOREVER)
    (tmp_path / "empty.cu").write_text("int main() { return 0; }")
    (tmp_path / "folder.cu").mkdir()
    monkeypatch.chdir(tmp_path)
    err = output_of(capsys, arguments, code).err
    assert expected in err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith(("error:", "Error:"))]) == 1


def test_a_refused_text_is_quoted_with_a_caret(capsys):
    err = output_of(capsys, ["check", KERNELS / "slip.cu"], 2).err
    place, line, caret = err.splitlines()
    assert place.endswith("slip.cu:12:28: t is not declared")
    assert line[caret.index("^") :].startswith("t * TILE_WIDTH+tx < Width")


def test_interrupting_ends_with_130(monkeypatch, capsys):
    import tilewise.teaching.trace.checking as checking

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(checking, "simulate", interrupted)
    output_of(capsys, ["check", KERNELS / "tiled_edges.cu"], 130)


def seconds_of(*command):
    """Wall or CPU seconds, whichever is less, so that a busy machine does not count; and what was printed."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, check=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return min(wall, cpu), done.stdout


def test_a_small_trace_is_quick_from_the_command_line():
    """Start of Python included: 0.4 s, or as much longer as a slow machine takes to start Python with NumPy alone."""
    spent, bare = [], []
    for _ in range(9):  # other processes on the same cores cost cache misses, which count as time
        taken, out = seconds_of("-m", "tilewise", "trace", "--shape", "4x4x4")
        spent.append(taken)
        bare.append(seconds_of("-c", "import numpy, click")[0])
        if min(spent) < max(0.4, 3.5 * min(bare)):
            break
    assert b"64 loads" in out
    assert min(spent) < max(0.4, 3.5 * min(bare)), (spent, bare)


def test_trace_writes_the_page_and_pictures(tmp_path, capsys):
    page, picture, folder = tmp_path / "t.html", tmp_path / "t.svg", tmp_path / "all"
    arguments = ["trace", "--shape", "3x3x3", "--block", "all", "--html", str(page), "--svg", str(picture)]
    assert run([*arguments, "--svg-dir", str(folder), "--lang", "vi", "--phase", "1"]) == 0
    assert "<!doctype html>" in page.read_text()
    assert "pha 1" in picture.read_text()
    assert len(list(folder.glob("*.svg"))) == 8
    assert "36 lần tải" in capsys.readouterr().out, "the table is still printed"


def test_json_is_strict_where_a_fill_is_infinite(capsys):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    arguments = [
        "trace",
        "--kernel",
        "tiled_edges",
        "--shape",
        "3x3x3",
        "--tile",
        "2",
        "--semiring",
        "min_plus",
        "--json",
    ]
    document = json.loads(output_of(capsys, arguments, 0).out, parse_constant=refuse)
    assert "inf" in document["events"]["value"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trace", "--phase", "7"], "--phase 7: this run has phases 0 to 1"),
        (["trace", "--shape", "2x2x2", "--phase", "1"], "--phase 1: this run has phase 0 only"),
        (["trace", "--lang", "xx"], "language 'xx' is not known; there are en"),
        (["chek", "a.cu"], "No such command 'chek': did you mean 'check'?"),
        (["wxyz"], "No such command 'wxyz': there are demo, "),
        (["plan", "--shape", "8x8x8", "--device", "gtx999"], "a card by name: t4, a10, a100, rtx3060,"),
        (["trace", "--shape", "4x4x4", "--limit", "steps=3"], "--limit steps=6 allows more"),
    ],
)
def test_an_error_names_what_is_wrong_and_what_would_be_right(capsys, arguments, sentence):
    assert run(arguments) in (2, 4)
    assert sentence in capsys.readouterr().err


def test_info_prints_what_to_install_whole(monkeypatch, capsys):
    """Square brackets are not a style: the extra must not vanish from the line."""
    monkeypatch.setattr("tilewise.arrays.card.card_count", lambda: 0)

    def no_card(device):
        from tilewise.arrays.card import INSTALL
        from tilewise.errors import DeviceError

        raise DeviceError(f"no CUDA here: {INSTALL}")

    monkeypatch.setattr("tilewise.arrays.card.open_card", no_card)
    assert run(["info"]) == 0
    assert "pip install 'tilewise[cuda]'" in capsys.readouterr().out


def test_an_interrupt_while_importing_prints_one_message(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    import tilewise

    source = Path(tilewise.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "tilewise", "info"], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
