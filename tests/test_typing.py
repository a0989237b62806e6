"""What a type checker sees of the public names: arrays in, the same kind out, and no bare Any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tilewise as tw

TOOLS = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
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
tw.matmul(M, N, semiring="min_pluss")
tw.matmul(M, N, activation="relo")
tw.matmul(M, N, dtype="float31")
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
    wrong = [line for line in done.stdout.splitlines() if " error: " in line]
    reported = {int(line.split(":")[1]) for line in wrong}
    lines = PROGRAM.splitlines()
    expected = {i + 1 for i, line in enumerate(lines) if any(x in line for x in ("semirings", "pluss", "relo", "31"))}
    assert reported == expected, "an unknown keyword and an unknown name are errors"


def test_names_are_those_that_calls_take():
    from typing import get_args

    from tilewise.algebra import builtin
    from tilewise.algebra.dtypes import DTYPES
    from tilewise.core.epilogue import ACTIVATIONS

    several = {f"{k}_best" for k in range(1, 9)}
    plain = {*builtin.SEMIRINGS, *builtin.ALIASES, *builtin.STRUCTURED}
    assert set(get_args(tw.SemiringName)) == plain | several
    assert set(get_args(tw.DTypeName)) == set(DTYPES)
    assert get_args(tw.ActivationName) == ACTIVATIONS


USERS = Path(__file__).parent / "support" / "typed_program.py"


def test_the_users_program_runs():
    subprocess.run([sys.executable, str(USERS)], check=True, capture_output=True)


@pytest.mark.slow
def test_nothing_in_a_users_program_is_any(tmp_path):
    pytest.importorskip("mypy")
    text = USERS.read_text(encoding="utf-8")
    names = [line.split(" = ")[0].split(":")[0] for line in text.splitlines() if " = " in line and line[0].isalpha()]
    names = [name.strip() for line in names for name in line.split(",")]
    assert len(names) > 20
    program = tmp_path / "program.py"
    program.write_text(text + "".join(f"reveal_type({name})\n" for name in names), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    where = {**os.environ, "MYPYPATH": str(Path(tw.__file__).parents[1])}
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, check=False, env=where)
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in done.stdout.splitlines()]
    revealed = [kind for kind in revealed if kind]
    assert done.returncode == 0, done.stdout
    assert len(revealed) == len(names)
    assert not [name for name, kind in zip(names, revealed, strict=True) if kind in ("Any", "builtins.object")]


@pytest.mark.slow
def test_pyright_has_nothing_to_say_of_it(tmp_path):
    checker = next((name for name in ("pyright", "basedpyright") if shutil.which(name, path=TOOLS)), None)
    if checker is None:
        pytest.skip("no pyright here")
    (tmp_path / "program.py").write_text(USERS.read_text(encoding="utf-8"), encoding="utf-8")
    source = str(Path(tw.__file__).parents[1])
    settings = {"typeCheckingMode": "strict", "extraPaths": [source], "reportMissingTypeStubs": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [shutil.which(checker, path=TOOLS), "--level", "error", "--pythonpath", sys.executable, "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


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


def test_threadpoolctl_sees_the_pool_and_limits_it():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    tw.matmul([[1.0]], [[2.0]])

    def ours():
        return [x for x in threadpoolctl.threadpool_info() if x["user_api"] == "tilewise"]

    assert [x["num_threads"] for x in ours()] == [tw.get_num_threads()]
    before = tw.get_num_threads()
    with threadpoolctl.threadpool_limits(1):
        assert tw.get_num_threads() == 1
        tw.matmul([[1.0]], [[2.0]])
    with threadpoolctl.threadpool_limits({"tilewise": 3}):
        assert tw.get_num_threads() == 3
    assert tw.get_num_threads() == before
    tw.set_num_threads(None)


def test_a_first_call_is_logged(caplog):
    import numpy as np

    with caplog.at_level("DEBUG", logger="tilewise"):
        tw.matmul(np.ones((13, 7)), np.ones((7, 11)))
    assert any("13x7x11" in record.getMessage() for record in caplog.records)
