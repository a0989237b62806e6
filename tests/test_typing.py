"""What a type checker sees of the public names: arrays in, the same kind out, and no bare Any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilewise as tw

PROGRAM = """
import numpy as np
import tilewise as tw

M = np.ones((3, 4))
N = np.ones((4, 5))
reveal_type(tw.matmul(M, N))
reveal_type(tw.matmul(M, N, semiring="min_plus", return_arg=True))
reveal_type(tw.closure(N))
reveal_type(tw.closure(N, return_predecessors=True))
reveal_type(tw.get_num_threads())
tw.matmul(M, N, semirings="min_plus")
"""


@pytest.mark.slow
def test_mypy_strict(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    where = {**os.environ, "MYPYPATH": str(Path(tw.__file__).parents[1])}
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path / "cache"),
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [*command, "program.py"], capture_output=True, text=True, check=False, cwd=tmp_path, env=where
    )
    revealed = [line.partition("Revealed type is ")[2] for line in done.stdout.splitlines() if "Revealed" in line]
    assert len(revealed) == 5, done.stdout + done.stderr
    single, pair, closed, both, count = revealed
    assert "ndarray" in single
    assert "tuple" not in single.partition("ndarray")[0]
    assert pair.lower().strip(chr(34)).startswith("tuple")
    assert "ndarray" in closed
    assert both.lower().strip(chr(34)).startswith("tuple")
    assert "int" in count
    assert "semirings" in done.stdout, "a keyword nobody knows is an error"


def test_every_public_name_is_listed():
    assert set(tw.__all__) <= set(dir(tw))
    for name in tw.__all__:
        assert getattr(tw, name) is not None


def test_threads_of_the_environment():
    code = "import tilewise as tw; print(tw.get_num_threads())"

    def count(**setting):
        kept = {k: v for k, v in os.environ.items() if k not in ("TILEWISE_NUM_THREADS", "OMP_NUM_THREADS")}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**kept, **setting}
        )
        return int(done.stdout)

    assert count(OMP_NUM_THREADS="3,2") == 3
    assert count(OMP_NUM_THREADS="3", TILEWISE_NUM_THREADS="5") == 5
    assert count(OMP_NUM_THREADS="many") >= 1


def test_a_first_call_is_logged(caplog):
    import numpy as np

    with caplog.at_level("DEBUG", logger="tilewise"):
        tw.matmul(np.ones((13, 7)), np.ones((7, 11)))
    assert any("13x7x11" in record.getMessage() for record in caplog.records)
