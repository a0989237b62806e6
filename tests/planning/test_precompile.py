"""Kernels built ahead of time, as far as it can be tested without a card: NVRTC needs none."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import tilewise as tw
from tilewise.backends.cuda import builders, bundle, bundles
from tilewise.backends.cuda import compile as compiling
from tilewise.backends.cuda.bundle import build_id, bundled, packed
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.kernels.shared.text import render_pack
from tilewise.planning import precompile as warming
from tilewise.system.resources import environment

pytestmark = pytest.mark.drawn(12)  # most of them compile or start a process, 0.5 to 2 s

F32 = tw.plan([[1.0]], [[1.0]]).problem.dtype
TEXTS = [render_pack.key(F32, F32, along) for along in (False, True)]
ARCH = "sm_80"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache, and a process that knows of nothing built."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(folder))
    monkeypatch.setattr(compiling, "_built", set())
    monkeypatch.delenv("TILEWISE_COMPILE", raising=False)
    return folder


@pytest.fixture
def package(tmp_path, monkeypatch):
    """`tilewise_kernels` as if it were installed."""
    home = tmp_path / "site" / bundles.PACKAGE
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(home.parent))
    bundles.folder.cache_clear()
    bundles._packaged.cache_clear()
    yield home
    bundles.folder.cache_clear()
    bundles._packaged.cache_clear()


def bundle_of(code, of=None):
    return bundled(of or build_id(), {TEXTS[0]: (packed(code), ["pack"])}, {"float32": TEXTS[:1]})


def in_a_process(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_threads_build_into_the_cache_and_then_nothing_loads_the_compiler(cache):
    built = {}
    builders.build(TEXTS, ARCH, 2, built.__setitem__)
    assert set(built) == set(TEXTS)
    assert min(built.values()) > 1000
    assert compiling.missing(TEXTS, ARCH) == []
    assert sum(path.stat().st_size for path in compiling.store().entries()) < 0.6 * sum(built.values())
    code = f"""
from tilewise.backends.cuda.compile import compile_source
from tilewise.kernels.shared.text import render_pack
from tilewise.algebra.dtypes import DTYPES
text = render_pack.key(DTYPES[{F32.name!r}], DTYPES[{F32.name!r}], True)
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


def test_the_error_names_what_is_missing_and_what_to_do(cache, monkeypatch):
    monkeypatch.setenv("TILEWISE_COMPILE", "never")
    with pytest.raises(
        tw.EngineError, match=r"the kernel pack is not built for sm_80.*tilewise warm.*tilewise-kernels"
    ):
        compiling.compile_source(TEXTS[0], ARCH)
    monkeypatch.setenv("TILEWISE_COMPILE", "sometimes")
    with pytest.raises(tw.UsageError, match="'sometimes' is not known; known are auto, alone, never"):
        compiling.compile_source(TEXTS[0], ARCH)


def test_a_failure_is_raised_once_and_ends_the_build(cache):
    with pytest.raises(tw.EngineError, match="NVRTC refused the kernel"):
        builders.build(["this is no kernel", *TEXTS], ARCH, 1, lambda *_: None)


def test_the_package_is_looked_up_first(cache, package, monkeypatch):
    monkeypatch.setenv("TILEWISE_COMPILE", "never")
    (package / f"{ARCH}.kernels").write_bytes(bundle_of(b"machine code"))
    assert compiling.compile_source(TEXTS[0], ARCH) == b"machine code"
    assert compiling.missing(TEXTS, ARCH) == TEXTS[1:]
    assert list(cache.rglob("*")) == [], "nothing was written"
    assert bundle_of(b"machine code") == bundle_of(b"machine code"), "the same bytes each time"


@pytest.mark.parametrize("damage", ["no bundle", "cut", "flipped", "flipped index", "of other code"])
def test_a_damaged_package_costs_a_compilation(cache, package, monkeypatch, damage):
    data = bytearray(bundle_of(os.urandom(4096), "e" * 64 if damage == "of other code" else None))
    if damage.startswith("flipped"):
        data[-2000 if damage == "flipped" else -4100] ^= 0xFF
    kept = {"no bundle": 0, "cut": len(data) - 2000}.get(damage, len(data))
    (package / f"{ARCH}.kernels").write_bytes(data[:kept])
    monkeypatch.setattr(compiling, "_compile", lambda source, arch: b"compiled")
    assert compiling.compile_source(TEXTS[0], ARCH) == b"compiled"


def test_warm_builds_what_is_missing_and_reports_it(cache, monkeypatch):
    monkeypatch.setattr(warming, "kernel_set", lambda problem, machine: tuple(TEXTS))
    seen = []
    (made,) = tw.warm(dtype="fp64", arch=ARCH, workers=1, progress=lambda *report: seen.append(report))
    assert (made.kind, made.kernels, made.built) == ("float64", 2, 2)
    assert made.bytes > 2000
    assert seen == [("float64", 0, 2), ("float64", 1, 2), ("float64", 2, 2)]
    (again,) = tw.warm(dtype="fp64", arch=ARCH)
    assert (again.built, again.bytes) == (0, 0)


def test_warm_takes_names_of_dtypes():
    assert warming.kinds_of("bf16, tf32,float64") == ("bfloat16", "tf32", "float64")
    assert warming.kinds_of(None) == ("bfloat16", "float16", "float32", "tf32", "float64")
    with pytest.raises(tw.DtypeError, match="bf17"):
        warming.kinds_of("bf17")
    with pytest.raises(tw.UsageError, match="arch='sm_91' is not known"):
        tw.warm(dtype="fp64", arch="sm_91")


def test_the_command_reports_what_was_built(cache, monkeypatch, capsys):
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
        warming.build_missing(TEXTS, problem, ARCH)
    assert [command[-3:] for command in started] == [["plus_times", "float64", ARCH]]
    monkeypatch.setenv("TILEWISE_COMPILE", "alone")
    assert not warming.build_rest(problem_of_shape(8, 8, 8, "float16"), ARCH)
    monkeypatch.delenv("TILEWISE_COMPILE")
    assert not warming.build_rest(problem_of_shape(8, 8, 8, "float32", "min_plus"), ARCH)
    assert len(started) == 1


def test_the_process_behind_ends_with_its_input(cache):
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tilewise.planning.precompile", "plus_times", "float64", ARCH],
        stdin=subprocess.DEVNULL,
        env={**environment(), "TILEWISE_CACHE_DIR": str(cache)},
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
    first, second, *_ = warming.ranked_plans(problem, machine)
    there = set(warming.recipe_of(second).sources)
    monkeypatch.setattr(warming, "missing", lambda sources, arch: [s for s in sources if s not in there])
    behind = []
    monkeypatch.setattr(warming, "build_rest", lambda problem, arch: behind.append(problem) or True)
    assert warming.built_alternative(problem, machine) == second
    assert behind == [problem]
    there |= set(warming.recipe_of(first).sources)
    assert warming.built_alternative(problem, machine) is None
    monkeypatch.setenv("TILEWISE_WAIT", "0")
    assert not warming.waits()
    monkeypatch.setenv("TILEWISE_WAIT", "perhaps")
    with pytest.raises(tw.UsageError, match="TILEWISE_WAIT='perhaps' must be 0 or 1"):
        warming.waits()


def test_what_warm_built_is_found_by_its_name_and_no_text_is_written(cache, monkeypatch):
    monkeypatch.setattr(warming, "kernel_set", lambda problem, machine: tuple(TEXTS))
    tw.warm(dtype="fp64", arch=ARCH, workers=1)
    code = f"""
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cuda.compile import prefetched, compile_source
from tilewise.kernels.shared import text
text.kernel_text = None  # writing a text needs it
named = text.render_pack.key(DTYPES[{F32.name!r}], DTYPES[{F32.name!r}], True)
assert prefetched(named, {ARCH!r}) and compile_source(named, {ARCH!r})[1:4] == b"ELF"
"""
    done = in_a_process(code, TILEWISE_COMPILE="never", TILEWISE_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr


def test_a_bundle_is_noticed_when_it_is_written_and_left_alone_when_it_has_everything(cache, monkeypatch):
    monkeypatch.setattr(compiling, "_compile", lambda source, arch: source.encode()[:40])
    assert not compiling.prefetched(TEXTS[0], ARCH)
    built = {text: (b"code of " + text.encode(), ["pack"]) for text in TEXTS}
    bundles.keep("float32", {TEXTS[0]: built[TEXTS[0]]}, ARCH)
    assert compiling.prefetched(TEXTS[0], ARCH)
    assert not compiling.prefetched(TEXTS[1], ARCH)
    bundles.keep("float64", {TEXTS[1]: built[TEXTS[1]]}, ARCH)
    assert [compiling.compile_source(text, ARCH) for text in TEXTS] == [built[text][0] for text in TEXTS]
    assert bundles.set_of("float64", ARCH) == [(TEXTS[1], ["pack"])]
    (path,) = (cache / "cubin").iterdir()
    before = path.stat()
    bundles.keep("float32", {TEXTS[0]: built[TEXTS[0]]}, ARCH)
    assert path.stat().st_ino == before.st_ino, "nothing was written"


def test_a_damaged_kernel_of_a_bundle_is_built_again_and_the_others_are_not(cache, monkeypatch):
    monkeypatch.setattr(compiling, "_compile", lambda source, arch: b"compiled")
    bundles.keep("float32", {text: (os.urandom(3000), ["pack"]) for text in TEXTS}, ARCH)
    (path,) = (cache / "cubin").iterdir()
    data = bytearray(path.read_bytes())
    data[-100] ^= 1  # of the last one
    path.write_bytes(data)
    found = [compiling.compile_source(text, ARCH) for text in sorted(TEXTS)]
    assert (len(found[0]), found[1]) == (3000, b"compiled")
    assert compiling.compile_source(sorted(TEXTS)[1], ARCH) == b"compiled"


def test_those_who_write_a_bundle_at_once_lose_nothing(cache):
    """Each of them reads what is there, and takes its time to write."""
    (cache / "cubin").mkdir(mode=0o700)
    code = f"""
import sys, time
from tilewise.system.cache import DiskCache
from tilewise.backends.cuda.bundles import build_id, is_kept, keep
put = DiskCache.put
DiskCache.put = lambda *what: (time.sleep(0.1), put(*what))
is_kept(sys.argv[1], [], {ARCH!r})
print("ready", flush=True)
sys.stdin.read()
keep(sys.argv[1], {{sys.argv[1]: (b"code", ["pack"])}}, {ARCH!r})
"""
    variables, pipe = {**environment(), "TILEWISE_CACHE_DIR": str(cache)}, subprocess.PIPE
    names = [f"text {number}" for number in range(4)]
    running = [
        subprocess.Popen([sys.executable, "-c", code, name], env=variables, stdin=pipe, stdout=pipe) for name in names
    ]
    assert [process.stdout.readline() for process in running] == [b"ready\n"] * len(names)
    for process in running:
        process.stdin.close()
    assert [process.wait(60) for process in running] == [0] * len(names)
    for process in running:
        process.stdout.close()
    assert [name for name in names if not bundles.is_kept(name, [name], ARCH)] == []


def test_code_that_was_changed_since_it_was_read_has_no_bundle(cache, monkeypatch):
    build_id.cache_clear()
    monkeypatch.setattr(bundle, "_BEGAN", 0.0)
    assert build_id() is None
    bundles.keep("float32", {TEXTS[0]: (b"code", ["pack"])}, ARCH)
    assert not (cache / "cubin").exists()
    assert not bundles.in_a_bundle(TEXTS[0], ARCH)
    build_id.cache_clear()


def test_kernels_of_another_semiring_are_a_set_of_their_own(cache, monkeypatch):
    """Who multiplies float32 does not load those of min_plus."""
    monkeypatch.setattr(
        warming, "kernel_set", lambda problem, machine: TEXTS[problem.semiring.name == "min_plus" :][:1]
    )
    for semiring in ("plus_times", "min_plus"):
        tw.warm(semiring, "fp32", arch=ARCH, workers=1)
    assert bundles.set_of("float32", ARCH) == [(TEXTS[0], ["pack"])]
    assert bundles.set_of("float32 min_plus", ARCH) == [(TEXTS[1], ["pack"])]
