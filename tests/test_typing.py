"""What a type checker sees of the public names: arrays in, the same kind out, and no bare Any."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tilewise as tw
from tilewise.algebra import expression

TOOLS = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
MISTAKES = """
tw.matmul(M, N, semirings="min_plus")
tw.matmul(M, N, semiring="min_pluss")
tw.matmul(M, N, activation="relo")
tw.matmul(M, N, dtype="float31")
tw.grouped_matmul(H, stack, ends, along="columns")
"""
USERS = Path(__file__).parent / "support" / "typed_program.py"


def checked(program, where):
    """The report of mypy on a text."""
    pytest.importorskip("mypy")
    (where / "program.py").write_text(program, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        "cache",
        "program.py",
    ]
    source = {**os.environ, "MYPYPATH": str(Path(tw.__file__).parents[1])}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=where, env=source).stdout


def revealed(names, program, where):
    """The type of each name, without its modules."""
    report = checked(program + "".join(f"reveal_type({name})\n" for name in names), where)
    kinds = re.findall(r'Revealed type is "(.*)"', report)
    assert len(kinds) == len(names), report
    assert " error: " not in report, report
    return {name: plainly(kind) for name, kind in zip(names, kinds, strict=True)}


def plainly(kind):
    """A type without its modules, NumPy's numbers by their names."""
    kind = re.sub(r"[a-z_]+\.", "", kind).replace("bool[bool]", "bool")
    for ours, theirs in (("float", "floating"), ("int", "signedinteger")):
        kind = re.sub(rf"\b{theirs}\[_(\d+)Bit\]", rf"{ours}\1", kind)
    return kind


def expected_of(text):
    """Names that are assigned, each with the dtype in the comment of its row, or None."""
    found = {}
    for line in re.findall(r"^[a-zA-Z].* = .*$", text, re.MULTILINE):
        code, _, comment = line.partition("  # ")
        names = [name.split(":")[0].strip() for name in code.split(" = ")[0].split(",")]
        found |= dict(zip(names, comment.split(", ") if comment else [None] * len(names), strict=True))
    return found


@pytest.mark.slow  # mypy of the whole package: 40 s
def test_dtypes_are_preserved_and_nothing_is_any(tmp_path):
    text = USERS.read_text(encoding="utf-8")
    expected = expected_of(text)
    used = set(re.findall(r"tw\.(\w+)\(", text))
    functions = {name for name in tw.__all__ if inspect.isfunction(getattr(tw, name))}
    on_cards_or_in_trees = {"grouped_plan", "to_device", "warm", *functions & set(dir(expression))}
    assert functions - on_cards_or_in_trees <= used
    for name, kind in revealed(list(expected), text, tmp_path).items():
        wanted = expected[name]
        if wanted is None:
            assert kind not in ("Any", "object"), (name, kind)
        else:
            assert re.search(rf"dtype\[{wanted}_?\]", kind), (name, kind, wanted)
            assert wanted == "Any" or "Any" not in kind.replace("tuple[Any, ...]", ""), (name, kind)


@pytest.mark.slow  # the same
def test_mistakes_are_found(tmp_path):
    text = USERS.read_text(encoding="utf-8")
    report = checked(text + MISTAKES, tmp_path)
    wrong = {int(number) for number in re.findall(r"program.py:(\d+): error", report)}
    first = text.count("\n") + 2
    assert wrong == set(range(first, first + 5)), report


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


def test_the_users_program_runs():
    subprocess.run([sys.executable, str(USERS)], check=True, capture_output=True)


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
