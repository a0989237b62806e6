"""Readers against malformed files (`fuzzing.py`): a sentence or a right answer, nothing else.

Each reader runs in a process of its own, with a limit of memory, so that a crash is a finding and not the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import fuzzed_formats
import fuzzing
import tilewise as tw
from lying_dlpack import Capsule
from seeds import next_seed
from tilewise.cli.main import run
from tilewise.errors import TilewiseError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of memory are POSIX's")
SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))


def fuzzed(name, folder, seconds):
    """What a process that fuzzed a reader says of it; its findings are the failure."""
    seed = next_seed() % 10**9
    done = subprocess.run(
        [sys.executable, fuzzing.__file__, name, str(folder), str(seconds), str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=seconds + 120,
    )
    printed = done.stdout[-4000:] + done.stderr[-4000:]
    assert done.returncode == 0, (name, seed, done.returncode, printed, f"the input is {folder / 'input'}")
    report = json.loads(done.stdout.splitlines()[-1])
    assert not report["found"], (name, seed, report["found"], f"the input is {folder / 'input'}")
    return report


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", fuzzing.READERS)
def test_a_moment_of_fuzzing(tmp_path, name):
    fuzzed(name, tmp_path, 0.4)


@pytest.mark.torture
@pytest.mark.parametrize("name", fuzzing.READERS)
def test_fuzz(tmp_path, name):
    report = fuzzed(name, tmp_path, SECONDS)
    print(f"\n{report['inputs']:9,} inputs of {name} in {report['cpu']:.0f} s of CPU, nothing found; {report['seed']}")


# what fuzzing found, each once more by hand


def refused(read, path, data, message):
    path.write_bytes(data)
    with pytest.raises(TilewiseError, match=message):
        read(path)


def test_an_extent_of_true_is_no_count(tmp_path):
    data = fuzzed_formats.NPY[0].replace(b"(3, 4), }", b"(True, 12)}")
    refused(fuzzing.from_npy, tmp_path / "A.npy", data, "header cannot be read")


def test_data_without_an_axis_are_no_sparse_matrix(tmp_path):
    members = {name: fuzzed_formats._npy(value) for name, value in fuzzed_formats._COO.items()}
    data = fuzzed_formats._npz(members | {"data": fuzzed_formats._npy(np.array(3.5))})
    refused(fuzzing.from_graph, tmp_path / "g.npz", data, "its data have 0 axes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shapes = " + "[" * 3000, "nested too deeply"),
        ("tile = " + "9" * 5000, "is not TOML"),
        ("[points]\nparses = " + "9" * 400, "a whole number of 1329 bits is too large"),
        ("defines = 0x" + "f" * 5000, "a whole number of 20000 bits is too large"),
        ("shapes = [[0x" + "f" * 5000 + "]]", "a whole number of 20000 bits is too large"),
        ('reference = "' + "a" * 300 + '.cu"', "is not beside it"),
        ("[points]\nparses = nan", "points.parses must be a number from 0 to"),
    ],
)
def test_toml_that_broke_its_reader(tmp_path, text, message):
    refused(fuzzing.read_assignment, tmp_path / "a.toml", text.encode(), message)


def test_an_assignment_that_never_ends(tmp_path, capsys):
    os.mkfifo(tmp_path / "a.toml")
    (tmp_path / "k.cu").write_bytes(fuzzed_formats.CUDA[0])
    assert run(["grade", str(tmp_path / "k.cu"), "--assignment", str(tmp_path / "a.toml")]) == 2
    assert "a.toml is a FIFO, not a file" in capsys.readouterr().err


@pytest.mark.parametrize("stride", [2**62, 2**61 + 1, -(2**62)])
def test_strides_that_wrap_around_every_address(stride):
    """8×8 float16 with strides of 2⁶² elements: in C the products wrap, and what they say is memory is not."""
    honest = Capsule(np.ones(512), (8, 3), (3, 1), bits=16)
    with pytest.raises(TilewiseError, match="wrong"):
        tw.matmul(Capsule(np.zeros(512), (8, 8), (stride, stride), bits=16), honest)


@pytest.mark.parametrize("bits", [64, 1])
def test_a_card_that_is_not_there(bits):
    from tilewise.arrays.card import card_count

    if card_count():
        pytest.skip("there is a card")
    with pytest.raises(
        TilewiseError, match=r"claims to be on a card|cannot be read on the card|needs the CUDA packages"
    ):
        tw.matmul(
            Capsule(np.zeros(512), (8, 8), (8, 1), bits=bits, kind=2), Capsule(np.ones(512), (8, 3), (3, 1), kind=2)
        )
