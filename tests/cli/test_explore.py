"""`tilewise explore`: writes one file, prints its path, and reports errors in one sentence."""

from __future__ import annotations

import json

import pytest

from tilewise.cli.main import run

RIGHT = """
__global__ void mul(float* A, float* B, float* C, int n) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && j < n) { float s = 0; for (int k = 0; k < n; ++k) s += A[i * n + k] * B[k * n + j]; C[i * n + j] = s; }
}
"""


def test_the_page_is_written_and_its_path_printed(tmp_path, capsys):
    assert run(["explore", "-o", str(tmp_path / "page.html"), "--no-open", "--lang", "pt", "--shape", "4x4x4"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "page.html")
    assert '<html lang="pt"' in (tmp_path / "page.html").read_text()


def test_json_has_size_and_scenes(tmp_path, capsys):
    assert run(["explore", "--shape", "4x4x4", "-o", str(tmp_path / "p.html"), "--json", "--no-what-if"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bytes"] == (tmp_path / "p.html").stat().st_size
    assert (document["scenes"], document["faults"]) == (1, [0])


def test_two_files_are_compared(tmp_path, capsys):
    (tmp_path / "a.cu").write_text(RIGHT.replace("i < n && j < n", "true"))
    (tmp_path / "b.cu").write_text(RIGHT)
    arguments = [
        "explore",
        "--compare",
        str(tmp_path / "a.cu"),
        str(tmp_path / "b.cu"),
        "--shape",
        "3x3x3",
        "--tile",
        "2",
    ]
    assert run([*arguments, "--block-dim", "2,2", "-o", str(tmp_path / "p.html"), "--json"]) == 0
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert faults[0] > 0
    assert faults[1] == 0


def test_the_page_opens_on_the_first_fault(tmp_path, capsys):
    (tmp_path / "a.cu").write_text(RIGHT.replace("i < n && j < n", "i < n"))
    place = str(tmp_path / "p.html")
    arguments = ["explore", str(tmp_path / "a.cu"), "--shape", "2x2x2", "--tile", "2", "--block-dim", "3,2", "--fault"]
    assert run([*arguments, "--grid", "1,1", "--no-open", "--no-what-if", "--json", "-o", place]) == 0
    address = json.loads(capsys.readouterr().out)["address"]
    assert address.endswith("#block=0,0&phase=0&thread=2,0")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lang", "xx"], "language 'xx' is not known"),
        (["--compare", "a.cu", "b.cu", "--kernel", "tiled"], "not both"),
        (["nowhere.cu"], "nowhere.cu"),
        (["--shape", "3x3x3", "--shape", "4x4x4"], "one --shape"),
    ],
)
def test_bad_input_gets_one_sentence_and_no_file(tmp_path, capsys, arguments, sentence):
    assert run(["explore", *arguments, "-o", str(tmp_path / "p.html"), "--no-open"]) in (2, 4)
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
