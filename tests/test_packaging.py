"""What people install: a pure wheel and a sdist with everything in them, light, on three systems."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import tilewise
from made_once import made_once

ROOT = Path(__file__).parents[1]
LIMIT = 300 * 10**6  # bytes of a base install
PLATFORMS = ("linux", "macos", "windows")
EXTRAS = ("cuda", "torch", "jax", "networkx", "plot", "dask")


@pytest.fixture(scope="session")
def built(run_folder):
    """The wheel and the sdist it is made from; one worker builds them for all."""
    pytest.importorskip("hatchling")
    pytest.importorskip("build")

    def build() -> tuple[Path, Path]:
        folder = run_folder / "dist"
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        return wheel, sdist

    return made_once(run_folder / "built.pickle", build)


def test_the_wheel_is_pure_and_whole(built):
    wheel, _ = built
    assert wheel.name == f"tilewise-{tilewise.__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    source = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*") if p.is_file()}
    source = {name for name in source if "__pycache__" not in name}
    assert source <= names
    assert "tilewise/py.typed" in names
    assert not [name for name in names if name.startswith(("tests", "docs", "examples"))]


def test_its_metadata_has_what_installers_need(built):
    wheel, _ = built
    archive = zipfile.ZipFile(wheel)
    inside = {name.rsplit("/", 1)[-1]: name for name in archive.namelist() if ".dist-info/" in name}
    points = archive.read(inside["entry_points.txt"]).decode()
    assert "tilewise = tilewise.__main__:main" in points
    assert "[networkx.backends]" in points
    assert "[networkx.backend_info]" in points
    metadata = archive.read(inside["METADATA"]).decode()
    assert f"Version: {tilewise.__version__}" in metadata
    for line in re.findall(r"Requires-Dist: (.*)", metadata):
        if line.startswith(("cuda", "nvidia")) and "extra == 'cuda'" in line:
            assert "sys_platform != 'darwin'" in line, "there are no CUDA wheels for macOS"
    base = [line for line in re.findall(r"Requires-Dist: (.*)", metadata) if "extra" not in line]
    assert not [line for line in base if line.startswith(("torch", "jax", "cuda", "nvidia", "matplotlib", "scipy"))]


def test_the_sdist_has_what_a_builder_needs(built):
    _, sdist = built
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "docs/index.md",
        "examples/00_first_product.py",
    )
    assert set(wanted) <= names
    assert "tests/test_packaging.py" in names


def test_the_version_is_written_once():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text
    assert tilewise.__version__ not in text
    done = subprocess.run([sys.executable, "-m", "tilewise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(tilewise.__version__)


@pytest.mark.parametrize(("arguments", "number", "offered"), [
    ("tilewise tr", "1", "trace"), ("tilewise ", "1", "multiply"), ("tilewise plan --sh", "2", "--shape"),
    ("tilewise check --format sa", "3", "sarif"),
])  # fmt: skip
def test_the_shell_completes(arguments, number, offered):
    settings = {"_TILEWISE_COMPLETE": "bash_complete", "COMP_WORDS": arguments, "COMP_CWORD": number}
    done = subprocess.run(
        [sys.executable, "-m", "tilewise"], env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    assert f"plain,{offered}" in done.stdout.splitlines()


def clean_environment(folder: Path) -> tuple[Path, Path]:
    """A virtual environment with nothing in it: its Python, its site-packages."""
    venv.EnvBuilder(with_pip=False, symlinks=os.name != "nt").create(folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    (site,) = [folder / "Lib" / "site-packages"] if os.name == "nt" else folder.glob("lib/python3*/site-packages")
    return python, site


# `built` makes the wheel from the sdist, so that the wheel shows both
@pytest.mark.parametrize("form", ["wheel", pytest.param("sdist", marks=pytest.mark.slow)])
def test_a_clean_environment_installs_it_and_runs_the_demo(built, tmp_path, form):
    """The environment sees this one's NumPy, llvmlite, … (and hatchling, for the sdist), but not its tilewise."""
    pytest.importorskip("uv")
    python, site = clean_environment(tmp_path / "venv")
    (site / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")  # does not read .pth files there
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--python", str(python)]
    subprocess.run([*uv, "--no-deps", "--no-build-isolation", str(built[form == "sdist"])], check=True)
    assert (site / "tilewise" / "api.py").exists()
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(python.with_name("tilewise")), "demo"], cwd=tmp_path, env=clean, capture_output=True, text=True, check=True
    )
    assert "What a block does" in done.stdout
    assert "Next: tilewise plan" in done.stdout


@pytest.mark.slow
def test_a_clean_environment_installs_it_runs_it_and_stays_light(built, tmp_path):
    """Needs the package index."""
    wheel, _ = built
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    empty = sum(p.stat().st_size for p in (tmp_path / "venv").rglob("*") if p.is_file() and not p.is_symlink())
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], check=True
    )
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        command = [str(python), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=clean).stdout

    assert tilewise.__version__ in run("-m", "tilewise", "--version")
    loaded = run("-c", "import sys, tilewise as tw; tw.matmul([[1.0]], [[2.0]]); print(*sys.modules)").split()
    assert not {"torch", "jax", "cuda", "click", "rich"} & set(loaded)
    run("-m", "tilewise", "demo")
    run("-m", "tilewise", "check", "--kernel", "tiled_edges")
    run("-m", "tilewise", "explore", "-o", "page.html", "--no-open")
    size = sum(p.stat().st_size for p in (tmp_path / "venv").rglob("*") if p.is_file() and not p.is_symlink()) - empty
    print(f"base install: {size / 1e6:.0f} MB")
    assert size < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_extra_resolves_on_every_system(platform, tmp_path):
    """Needs the package index."""
    pytest.importorskip("uv")
    extras = [option for extra in EXTRAS for option in ("--extra", extra)]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--python-version", "3.11", "--python-platform",
               platform, *extras, "pyproject.toml"]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    chosen = set(re.findall(r"^([a-z0-9_.-]+)==", done.stdout, re.M))
    assert {"numpy", "llvmlite", "matplotlib", "networkx", "jax", "torch"} <= chosen
    assert ("nvidia-cuda-nvrtc" in chosen) == (platform != "macos")
