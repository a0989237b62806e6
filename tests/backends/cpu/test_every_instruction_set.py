"""Every kernel on every instruction set, into memory that holds something else: no cell of P is left unwritten.

What this machine executes runs here; the other architecture's kernels are compiled here and executed by an emulated
Python (`.ci/emulation DIR`, then TILEWISE_EMULATED_PYTHON=DIR/python).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from poisoned import UNABLE, Case, check, check_sweep, here, pairs, random_cases, sets_here, stretched_cases

import tilewise
import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.backends.cpu import registry
from tilewise.backends.cpu.kernels.few_rows import model as few_rows
from tilewise.backends.cpu.kernels.shared import tasks
from tilewise.backends.cpu.registry import FAMILIES, TIERS
from tilewise.backends.cpu.runtime import target as targets
from tilewise.backends.cpu.runtime.target import INSTRUCTION_SETS, executable, host_target, is_arm, known_target
from tilewise.errors import UsageError
from tilewise.planning.choose import _plan

HERE = sets_here()
AND_HOST = HERE if "host" in HERE else ("host", *HERE)
SEED = int(os.environ.get("TILEWISE_TEST_SEED", next_seed() % 2**31))
EMULATED = os.environ.get("TILEWISE_EMULATED_PYTHON")
POISONED = Path(__file__).parent / "poisoned.py"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", AND_HOST)
def test_random_products_are_right(name: str) -> None:
    print(f"seed {SEED}")
    for i, case in enumerate(random_cases(SEED, sample_size(40), kinds=1)):
        check(case, here(name), SEED + i)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("name", AND_HOST)
def test_twenty_thousand_random_products_are_right(name: str, part: int) -> None:
    print(f"seed {SEED}")
    for i, case in enumerate(random_cases(SEED + part, 2000)):
        check(case, here(name), SEED + i)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", HERE)
def test_a_slice_of_all_small_extents_is_written_whole(name: str) -> None:
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    for kernel in draw.sample(list(FAMILIES), 3):
        ring, dtype = ("lor_land", "bool") if kernel == "bits" else draw.choice(pairs())
        check_sweep(here(name), ring, dtype, kernel, SEED, share=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(("ring", "dtype"), pairs())
@pytest.mark.parametrize("name", AND_HOST)
def test_all_small_extents_are_written_whole(name: str, ring: str, dtype: str) -> None:
    print(f"seed {SEED}")
    for kernel in FAMILIES:
        check_sweep(here(name), ring, dtype, kernel, SEED)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", HERE)
def test_stretches_of_k_leave_sums_that_are_added_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for a few rows, with small matrices too, and any number of threads."""
    print(f"seed {SEED}")
    monkeypatch.setattr(tasks, "FAR", 1)
    monkeypatch.setattr(tasks, "ROWS_PER_SUM", 1)
    draw, cut = random.Random(SEED), []
    monkeypatch.setattr(few_rows, "split_k_far_n", lambda *x: cut.append(tasks.split_k_far_n(*x)) or cut[-1])
    for i, case in enumerate(stretched_cases(SEED, sample_size(16))):
        tw.set_num_threads(draw.choice((1, 2, 3, 7)))
        check(case, here(name), SEED + i)
    tw.set_num_threads(None)
    assert max(count for count, _ in cut) > 1


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", HERE)
def test_a_p_that_leaves_the_caches_is_written_along_its_rows(name: str) -> None:
    """A large P runs its tiles in another order than a small one."""
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    for i in range(4):
        m, n = draw.choice([(draw.randint(300, 700), draw.randint(450, 900)), (draw.randint(40000, 50000), 5)])
        check(
            Case((m, draw.randint(1, 9), n), "float32", "plus_times", "unpacked", accumulate=i == 3),
            here(name),
            SEED + i,
        )


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", HERE)
def test_a_signalling_nan_is_skipped_like_any_other(name: str) -> None:
    """vrangeps and fminnm skip a quiet one only."""
    for kernel in ("tiny", "packed"):  # the other families multiply by the tiles of these
        check(Case((9, 17, 24), "float32", "max_min", kernel), here(name), 1)


def test_a_kernel_that_leaves_cells_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """`unpacked` with one task for all columns but the last: P starts poisoned, and that column stays so."""
    family = FAMILIES["unpacked"]

    def fewer(a: Any, cut: Any, extents: Any) -> Any:
        return family.tasks(a, cut, extents)._replace(count=1, tasks_n=1, task_n=extents.n - 1)

    careless = replace(family, tasks=fewer)
    tiers = tuple(tuple(careless if f.name == "unpacked" else f for f in tier) for tier in TIERS)
    monkeypatch.setattr(registry, "TIERS", tiers)
    monkeypatch.setitem(FAMILIES, "unpacked", careless)
    _plan.cache_clear()
    try:
        with pytest.raises(AssertionError, match="300x257x13 float64 plus_times as chosen rrr by unpacked on"):
            check(Case((300, 257, 13), "float64", "plus_times"), here("generic"), 0)
    finally:
        _plan.cache_clear()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", sorted({*INSTRUCTION_SETS} - {*executable()}))
def test_another_machines_instruction_set_is_refused_in_a_sentence(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilewise", "multiply", "--shape", "3x3x3", "--device", "cpu"],
        capture_output=True,
        text=True,
        env={**os.environ, "TILEWISE_INSTRUCTION_SET": name},
    )
    assert done.returncode == 2
    assert f"TILEWISE_INSTRUCTION_SET='{name}' is not for this machine" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.fixture
def probed_again() -> None:
    host_target.cache_clear()
    yield
    host_target.cache_clear()


@pytest.mark.usefixtures("probed_again")
def test_avx512_is_refused_where_the_cpu_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    haswell = targets.Cpu("haswell", dict.fromkeys(("avx2", "fma", "f16c"), True), arm=False)
    monkeypatch.setattr(targets, "probed", lambda: haswell)
    monkeypatch.setenv("TILEWISE_INSTRUCTION_SET", "avx512")
    with pytest.raises(UsageError, match=r"'avx512' is not for this machine .*, which executes avx2, generic"):
        host_target()
    monkeypatch.delenv("TILEWISE_INSTRUCTION_SET")
    assert (host_target().name, host_target().cpu) == ("avx2", "haswell")


@pytest.mark.usefixtures("probed_again")
@pytest.mark.parametrize(("arm", "best"), [(True, "neon"), (False, "generic")])
def test_where_llvm_cannot_detect_the_features(arm: bool, best: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite.binding as llvm

    def refuses() -> dict[str, bool]:
        raise RuntimeError("failed to get host cpu features")

    targets.probed.cache_clear()
    monkeypatch.delenv("TILEWISE_INSTRUCTION_SET", raising=False)
    monkeypatch.setattr(llvm, "get_host_cpu_features", refuses)
    monkeypatch.setattr(targets, "is_arm", lambda: arm)
    assert host_target().name == best
    targets.probed.cache_clear()


def test_dots_of_bytes_are_found_on_arm_where_every_core_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM does not name them among a CPU's features; int8 ran at a quarter of float32's speed for it."""
    monkeypatch.setattr(targets.platform, "system", lambda: "Linux")
    cores, other = "processor : 0\nFeatures : fp asimd asimddp\n", "processor : 1\nFeatures : fp asimd\n"
    for text, has in ((cores * 2, True), (cores + other, False), ("model name : none\n", False)):
        (tmp_path / "cpuinfo").write_text(text)
        assert targets.undetected(str(tmp_path / "cpuinfo"))["dotprod"] == has
    assert not any(targets.undetected(str(tmp_path / "not there")).values())
    if is_arm():
        assert host_target().byte_dots == targets.undetected()["dotprod"]


def test_every_instruction_set_has_a_target() -> None:
    for name in INSTRUCTION_SETS:
        assert known_target(name).vector_bytes * known_target(name).registers >= 256
    assert set(executable()) >= ({"neon"} if is_arm() else {"generic"})


def emulated(name: str, cache: Path, *options: str) -> str:
    """Compiled here, executed there."""
    assert EMULATED is not None
    environment = {**os.environ, "TILEWISE_CACHE_DIR": str(cache), "TILEWISE_CACHE_LIMIT": str(2**32)}
    command = [str(POISONED), name, "--seed", str(SEED), *options]
    subprocess.run([sys.executable, *command, "--compile"], check=True, env=environment)
    source = str(Path(tilewise.__file__).parents[1])
    environment |= {"TILEWISE_INSTRUCTION_SET": name, "PYTHONPATH": source}
    done = subprocess.run([EMULATED, *command], capture_output=True, text=True, env=environment)
    if UNABLE in done.stderr:  # checked there: an emulated Python is not started twice, which takes ten seconds
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, f"seed {SEED}: {done.stderr}"
    return done.stdout


OTHERS = ("avx2",) if is_arm() else ("neon",)  # ARM's "generic" is another target
# of about a minute; to start Python alone takes an emulated x86 ten seconds, and a kernel 1.5 s
SAMPLE = ("--random", "30", "--kinds", "2", "--sweep", "1", "--share", "0.02")
if not is_arm():
    SAMPLE = ("--random", "60", "--kinds", "3", "--sweep", "2", "--share", "0.05")


@pytest.mark.emulated
@pytest.mark.parametrize("name", OTHERS)
def test_the_other_architectures_products_are_right(name: str, tmp_path: Path) -> None:
    output = emulated(name, tmp_path, *SAMPLE)
    assert "; 0 kernels compiled here" in output
    print(f"seed {SEED}, emulated {output}")


@pytest.mark.emulated
@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_two_thousand_of_the_other_architectures_products_are_right(name: str, tmp_path: Path) -> None:
    output = emulated(name, tmp_path, "--random", "2000", "--sweep", "60", "--share", "0.3")
    assert "; 0 kernels compiled here" in output
    print(f"seed {SEED}, emulated {output}")
