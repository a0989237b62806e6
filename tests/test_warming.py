"""Kernels built before anybody waits for them, as far as it can be seen without a card: NVRTC needs none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile

import pytest

import tilewise as tw
from tilewise import warming
from tilewise.engines.cuda import builders, prebuilt
from tilewise.engines.cuda import compile as compiling
from tilewise.engines.cuda.prebuilt import write_archive
from tilewise.kernels.shared.text import render_pack
from tilewise.machine import KNOWN_CARDS
from tilewise.problem import problem_of_shape

F32 = tw.plan([[1.0]], [[1.0]]).problem.dtype
TEXTS = [render_pack(F32, F32, along) for along in (False, True)]
ARCH = "sm_80"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache, and a process that knows of nothing built."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(folder))
    monkeypatch.setattr(compiling, "_there", set())
    monkeypatch.delenv("TILEWISE_COMPILE", raising=False)
    return folder


@pytest.fixture
def package(tmp_path, monkeypatch):
    """`tilewise_kernels` as if it were installed."""
    home = tmp_path / "site" / prebuilt.PACKAGE
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(home.parent))
    prebuilt.folder.cache_clear()
    prebuilt._archive.cache_clear()
    yield home
    prebuilt.folder.cache_clear()
    prebuilt._archive.cache_clear()


def in_a_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**builders.environment(), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_processes_build_into_the_cache_and_then_nothing_loads_the_compiler(cache):
    told = []
    builders.build(TEXTS, ARCH, 2, told.append)
    assert {one["source"] for one in told} == set(TEXTS)
    assert all(one["bytes"] > 1000 for one in told)
    assert compiling.missing(TEXTS, ARCH) == []
    code = f"""
from tilewise.engines.cuda.compile import compile_source
from tilewise.kernels.shared.text import render_pack
from tilewise.algebra.dtypes import DTYPES
text = render_pack(DTYPES[{F32.name!r}], DTYPES[{F32.name!r}], True)
assert compile_source(text, {ARCH!r})[1:4] == b"ELF"
import sys
try:
    loaded = "libnvrtc" in open("/proc/self/maps").read()
except OSError:
    loaded = False
print("loaded" if loaded else "not loaded", "cuda.core" in sys.modules)
"""
    done = in_a_process(code, TILEWISE_COMPILE="never", TILEWISE_CACHE_DIR=str(cache))
    assert done.stdout.split("\n")[0] == "not loaded False", done.stderr


def test_never_says_what_is_missing_and_what_to_do(cache, monkeypatch):
    monkeypatch.setenv("TILEWISE_COMPILE", "never")
    with pytest.raises(
        tw.EngineError, match=r"the kernel pack is not built for sm_80.*tilewise warm.*tilewise-kernels"
    ):
        compiling.compile_source(TEXTS[0], ARCH)
    monkeypatch.setenv("TILEWISE_COMPILE", "sometimes")
    with pytest.raises(tw.UsageError, match="'sometimes' is not known; known are auto, alone, never"):
        compiling.compile_source(TEXTS[0], ARCH)


def test_what_fails_is_told_once_and_ends_it(cache):
    with pytest.raises(tw.EngineError, match="NVRTC refused the kernel"):
        builders.build(["this is no kernel", *TEXTS], ARCH, 1, lambda _: None)


def test_the_package_is_looked_up_first(cache, package, monkeypatch):
    monkeypatch.setenv("TILEWISE_COMPILE", "never")
    assert write_archive(package / f"{ARCH}.zip", {TEXTS[0]: b"machine code"}) == 12
    assert compiling.compile_source(TEXTS[0], ARCH) == b"machine code"
    assert compiling.missing(TEXTS, ARCH) == TEXTS[1:]
    assert list(cache.rglob("*")) == [], "nothing was written"
    first = (package / f"{ARCH}.zip").read_bytes()
    write_archive(package / f"{ARCH}.zip", {TEXTS[0]: b"machine code"})
    assert (package / f"{ARCH}.zip").read_bytes() == first, "the same bytes each time"


@pytest.mark.parametrize("damage", ["no archive", "cut", "flipped"])
def test_a_damaged_package_costs_a_compilation(cache, package, monkeypatch, damage):
    path = package / f"{ARCH}.zip"
    write_archive(path, {TEXTS[0]: os.urandom(4096)})
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        with zipfile.ZipFile(path) as archive:
            start = archive.infolist()[0].header_offset + 30 + 64
        data[start + 2000] ^= 0xFF
    path.write_bytes({"no archive": b"", "cut": bytes(data[:2000]), "flipped": bytes(data)}[damage])
    monkeypatch.setattr(compiling, "_compile", lambda source, arch: b"compiled")
    assert compiling.compile_source(TEXTS[0], ARCH) == b"compiled"


def test_warm_builds_what_is_missing_and_says_so(cache, monkeypatch):
    monkeypatch.setattr(warming, "kernel_set", lambda problem, machine: tuple(TEXTS))
    seen = []
    (made,) = tw.warm(dtype="fp64", arch=ARCH, workers=1, progress=lambda *told: seen.append(told))
    assert (made.kind, made.kernels, made.built) == ("float64", 2, 2)
    assert made.bytes > 2000
    assert seen == [("float64", 0, 2), ("float64", 1, 2), ("float64", 2, 2)]
    (again,) = tw.warm(dtype="fp64", arch=ARCH)
    assert (again.built, again.bytes) == (0, 0)


def test_warm_knows_its_words():
    assert warming.kinds_of("bf16, tf32,float64") == ("bfloat16", "tf32", "float64")
    assert warming.kinds_of(None) == ("bfloat16", "float16", "float32", "tf32", "float64")
    with pytest.raises(tw.DtypeError, match="bf17"):
        warming.kinds_of("bf17")
    with pytest.raises(tw.UsageError, match="arch='sm_91' is not known"):
        tw.warm(dtype="fp64", arch="sm_91")


def test_the_command_says_what_was_built(cache, monkeypatch, capsys):
    from tilewise.cli.main import run

    monkeypatch.setattr(warming, "kernel_set", lambda problem, machine: tuple(TEXTS[:1]))
    assert run(["warm", "--dtype", "fp64,fp32", "--arch", ARCH, "--workers", "1"]) == 0
    assert "float64" in capsys.readouterr().out
    assert run(["warm", "--dtype", "fp64", "--arch", ARCH, "--json"]) == 0
    assert '"built": 0' in capsys.readouterr().out


def test_a_cold_call_builds_its_own_and_starts_the_rest_once(cache, monkeypatch):
    started = []
    monkeypatch.setattr(warming.subprocess, "Popen", lambda command, **_: started.append(command))
    monkeypatch.setattr(warming, "_started", set())
    monkeypatch.setattr(warming, "_running", [])
    monkeypatch.setattr(compiling, "_compile", lambda source, arch: b"compiled")
    problem = problem_of_shape(8, 8, 8, "float64")
    for _ in range(2):
        warming.made_ready(TEXTS, problem, ARCH)
    assert [command[-3:] for command in started] == [["plus_times", "float64", ARCH]]
    monkeypatch.setenv("TILEWISE_COMPILE", "alone")
    assert not warming.rest_behind(problem_of_shape(8, 8, 8, "float16"), ARCH)
    monkeypatch.delenv("TILEWISE_COMPILE")
    assert not warming.rest_behind(problem_of_shape(8, 8, 8, "float32", "min_plus"), ARCH)
    assert len(started) == 1


def test_the_process_behind_ends_with_its_input(cache):
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tilewise.warming", "plus_times", "float64", ARCH],
        stdin=subprocess.DEVNULL,
        env={**builders.environment(), "TILEWISE_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 60


def test_without_waiting_another_kernel_serves_until_the_best_is_there(monkeypatch):
    machine = KNOWN_CARDS["h200"]
    problem = problem_of_shape(100, 100, 100)
    first, second, *_ = warming.plans_in_turn(problem, machine)
    there = set(warming.recipe_of(second).sources)
    monkeypatch.setattr(warming, "missing", lambda sources, arch: [s for s in sources if s not in there])
    behind = []
    monkeypatch.setattr(warming, "rest_behind", lambda problem, arch: behind.append(problem) or True)
    assert warming.sooner_served(problem, machine) == second
    assert behind == [problem]
    there |= set(warming.recipe_of(first).sources)
    assert warming.sooner_served(problem, machine) is None
    monkeypatch.setenv("TILEWISE_WAIT", "0")
    assert not warming.waits()
    monkeypatch.setenv("TILEWISE_WAIT", "perhaps")
    with pytest.raises(tw.UsageError, match="TILEWISE_WAIT='perhaps' must be 0 or 1"):
        warming.waits()
