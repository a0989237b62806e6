"""Every code block of README and docs runs; so does every example in a docstring."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from code_blocks import FRAMEWORKS, ROOT, blocks, run
from public_examples import run_examples
from tilewise.i18n.messages import REVIEWED

KERNELS = ROOT / "tests" / "emulator" / "kernels"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if not {"source", "_build", "notebooks"} & set(p.parts)),
]
PAGES = [p for p in PAGES if p != ROOT / "docs" / "reference.md"]  # made of docstrings, which run below
NAMES = [str(p.relative_to(ROOT)) for p in PAGES]
TRANSLATED = [name for name in NAMES if Path(name).stem in set(REVIEWED) - {"en"}]
WITH_FRAMEWORKS = [
    n for p, n in zip(PAGES, NAMES, strict=True) if any(set(b.needs) & {"torch", "jax"} for b in blocks(p))
]


@pytest.fixture
def samples(tmp_path, monkeypatch):
    """The files that blocks use."""
    kernels = {"kernel.cu": "tiled_edges.cu", "right.cu": "tiled_edges.cu", "broken.cu": "tiled_unchecked.cu"}
    for name, source in (*kernels.items(), ("slip.cu", "slip.cu")):
        shutil.copy(KERNELS / source, tmp_path / name)
    shutil.copy(KERNELS / "matrix_struct.cu", tmp_path / "course.cu")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    rng = np.random.default_rng(0)
    np.save(tmp_path / "A.npy", rng.standard_normal((30, 20)))
    np.save(tmp_path / "B.npy", rng.standard_normal((20, 10)))
    np.save(tmp_path / "roads.npy", np.array([[np.inf, 4.0], [3.0, np.inf]]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def run_page(page: Path, folder: Path, *, frameworks: bool) -> None:
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        if not block.missing and (frameworks or not set(block.needs) & set(FRAMEWORKS)):
            run(block, namespace, folder)


def test_every_block_of_the_readme_runs(samples):
    run_page(ROOT / "README.md", samples, frameworks=False)


@pytest.mark.drawn(2)
@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(TRANSLATED) - {"README.md"}))
def test_every_block_runs(name, samples):
    run_page(ROOT / name, samples, frameworks=False)


@pytest.mark.slow  # they have the commands of the English pages
@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")
@pytest.mark.parametrize("name", TRANSLATED)
def test_every_block_of_a_translation_runs(name, samples):
    run_page(ROOT / name, samples, frameworks=False)


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", WITH_FRAMEWORKS)
def test_blocks_that_need_a_framework_run_where_it_is(name, samples):
    if not any(importlib.util.find_spec(f) for f in FRAMEWORKS):
        pytest.skip("no framework is installed")
    run_page(ROOT / name, samples, frameworks=True)


def test_there_are_blocks_and_few_of_them_are_left_out():
    every = [block for page in PAGES for block in blocks(page)]
    runnable = [b for b in every if b.kind in ("python", "sh", "console", "pycon")]
    assert len(runnable) >= 40
    never = [b for b in runnable if set(b.needs) & {"network", "your shell", "make", "minutes"}]
    assert len(never) <= 6, [f"{b.file.name}:{b.line}" for b in never]


def test_examples_in_docstrings(samples):
    assert run_examples(tw, tw.__all__) >= 45


@pytest.mark.cuda
def test_examples_in_docstrings_on_a_card(samples):
    assert run_examples(tw, tw.__all__, on_card=True) == 4


@pytest.mark.interop
def test_examples_in_torchs_docstrings(samples):
    pytest.importorskip("torch")
    assert run_examples(tw.torch, tw.torch.__all__) >= 2


def test_where_commands_run_is_not_the_checkout(samples):
    assert Path(os.getcwd()) == samples
