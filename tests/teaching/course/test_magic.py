"""`%%tilewise` in a cell: the page, or the marks; what is wrong is one sentence."""

from __future__ import annotations

import pytest

from class_of_submissions import ASSIGNMENT, TILED
from tilewise.errors import UsageError
from tilewise.teaching.course.magic import register, tilewise


def test_a_cell_is_shown_or_graded(tmp_path):
    page = tilewise("--shape 3x3x3 --tile 2 --lang vi", TILED)
    assert page._repr_html_().startswith("<iframe")
    (tmp_path / "a.toml").write_text(ASSIGNMENT)
    assert repr(tilewise(f"--grade {tmp_path / 'a.toml'} --lang pt", TILED)).startswith("11/11\n")
    marks = repr(tilewise(f"--grade {tmp_path / 'a.toml'} --lang pt", "__global__ void f("))
    assert "não compreendida" in marks


def test_errors_are_reported():
    with pytest.raises(UsageError, match=r"%%tilewise --shap: .*--shape"):
        tilewise("--shap", TILED)
    with pytest.raises(UsageError, match="no __global__ function"):
        tilewise("", "int x;")
    assert register() in (True, False)


def test_a_real_ipython_knows_the_magic(tmp_path):
    """In a shell of its own: the cell begins with %%tilewise, the marks come back."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    (tmp_path / "a.toml").write_text(ASSIGNMENT)
    shell.register_magic_function(tilewise, "cell", "tilewise")
    done = shell.run_cell(
        f"%%tilewise --grade {tmp_path / 'a.toml'} --lang vi\n{TILED.replace('__syncthreads();', '', 1)}"
    )
    assert repr(done.result).startswith("8/11\n")
    assert "tranh chấp" in repr(done.result)
