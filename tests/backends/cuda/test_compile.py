"""Every kernel compiles for every arch, with no card: a sample here, all of them in `make test-all`."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

import tilewise as tw
from operands import CARD_DTYPES, SEMIRINGS, works
from tilewise.algebra.dtypes import DTYPES, promote
from tilewise.backends.cuda.compile import compile_source
from tilewise.kernels.ladder.model import LADDER
from tilewise.kernels.ladder.text import render_rung
from tilewise.kernels.shared.text import render_pack, render_round
from tilewise.system.cache import DiskCache

ARCHS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100")
ALL = [(s, d) for s in SEMIRINGS for d in CARD_DTYPES if works(s, d)]


@pytest.fixture
def cache(tmp_path):
    return DiskCache("cubin", tmp_path)


def source(kernel, semiring, dtype, **how):
    tile = min(16, LADDER[kernel].max_tile)
    return render_rung(kernel, tw.semirings[semiring].over(DTYPES[dtype]), tile, **how)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("arch", "kernel", "semiring", "dtype"),
    [
        ("sm_75", "naive", "plus_times", "float32"),
        ("sm_80", "tiled", "min_plus", "float16"),
        ("sm_89", "tiled_edges", "logaddexp_plus", "float64"),
        ("sm_90a", "register_tiled", "plus_times", "bfloat16"),
        ("sm_90a", "coarsened", "lor_land", "bool"),
        ("sm_100", "register_tiled", "max_min", "int8"),
        ("sm_100", "tiled_edges", "plus_times", "complex128"),
    ],
)
def test_a_sample_compiles(arch, kernel, semiring, dtype, cache):
    made = compile_source(source(kernel, semiring, dtype, accumulate=True), arch, cache)
    assert made[:4] == b"\x7fELF"


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("semiring", "dtype"), ALL)
def test_every_kernel_compiles_for_every_arch(arch, semiring, dtype, cache):
    for number, kernel in enumerate(LADDER):
        how = {"accumulate": number % 2 == 0, "aligned": number % 2 == 0, "index": ("int", "long long")[number % 2]}
        assert compile_source(source(kernel, semiring, dtype, **how), arch, cache)[:4] == b"\x7fELF"


@pytest.mark.slow
def test_every_pack_compiles(cache):
    for source_name, other in itertools.product(CARD_DTYPES, CARD_DTYPES):
        try:
            target = promote(DTYPES[source_name], DTYPES[other])
        except tw.DtypeError:
            continue
        for along_rows in (False, True):
            text = render_pack(DTYPES[source_name], target, along_rows)
            assert compile_source(text, "sm_90a", cache)[:4] == b"\x7fELF"


def test_the_rendered_text_is_self_contained():
    text = source("tiled_edges", "min_plus", "int32")
    assert "#include" not in text
    assert "#define PAD_N 0" in text
    assert text.count('extern "C" __global__') == 1


def test_an_error_of_nvrtc_is_reported(cache):
    with pytest.raises(tw.EngineError, match="NVRTC refused the kernel for sm_80"):
        compile_source('extern "C" __global__ void f() { nothing(); }', "sm_80", cache)


def test_an_arch_that_gives_no_machine_code_is_refused(cache):
    with pytest.raises(tw.EngineError, match="must be a real one"):
        compile_source("", "compute_90", cache)


def test_the_second_time_comes_from_the_disk(cache, monkeypatch):
    text = source("naive", "plus_times", "float32")
    first = compile_source(text, "sm_80", cache)
    import tilewise.backends.cuda.compile as module

    monkeypatch.setattr(module, "_compile", lambda *_: pytest.fail("compiled twice"))
    assert compile_source(text, "sm_80", cache) == first


def test_sums_are_rounded_by_a_kernel_that_compiles(tmp_path):
    for name in ("float16", "bfloat16"):
        text = render_round(DTYPES["float32"], DTYPES[name])
        assert compile_source(text, "sm_90a", DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"


FIRST = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from tilewise.system.cache import DiskCache
from tilewise.backends.cuda.compile import compile_source

store, ready = DiskCache("cubin", Path(sys.argv[1])), Barrier(8)
sys.setswitchinterval(1e-5)


def first(number):
    ready.wait()
    return compile_source(f'extern "C" __global__ void f{number}() {{}}', "sm_80", store)[:4]


with ThreadPoolExecutor(8) as pool:
    assert set(pool.map(first, range(8))) == {b"\\x7fELF"}
"""


def test_threads_that_compile_first_of_all_at_once(tmp_path):
    """cuda.core is imported by the first of them: the others must not find half of it."""
    done = subprocess.run([sys.executable, "-c", FIRST, tmp_path], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
