"""What is compiled for each of ten recorded CPUs: which instruction set, and nothing that the CPU does not report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from inner_loops import assembly
from poisoned import targets_on
from recorded_cpus import ARM, beyond, recorded

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.dots.one import one_function
from tilewise.backends.cpu.kernels.interleaved.pack import interleave_function
from tilewise.backends.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.backends.cpu.kernels.short_dots import text as short_dots
from tilewise.backends.cpu.registry import FAMILIES
from tilewise.backends.cpu.runtime import target as targets
from tilewise.backends.cpu.runtime.target import (
    ONE_VPDPWSSD,
    Cpu,
    Target,
    best_target,
    has_byte_dots,
    plain_target,
    sets_of,
)
from tilewise.system.llvm_text import module

CPUS = recorded()
# instruction sets, the best first; and which of them multiply bytes and add them up by fours
EXPECTED = {
    "haswell": ("avx2 generic", ""),
    "skylake-avx512": ("avx512 avx2 generic", ""),
    "cascadelake": ("avx512 avx2 generic", "avx512"),
    "icelake-server": ("avx512 avx2 generic", "avx512"),
    "sapphirerapids": ("avx512 avx2 generic", "avx512 avx2"),
    "alderlake": ("avx2 generic", "avx2"),
    "znver3": ("avx2 generic", ""),
    "znver4": ("avx512 avx2 generic", "avx512"),
    "neoverse-n1": ("neon generic", "neon"),
    "apple-m1": ("neon generic", "neon"),
}


def targets_of(cpu: Cpu) -> list[Target]:
    """Every target of code that would run there: of people's products, and of these tests."""
    return [best_target(cpu), *targets_on(cpu).values()]


def named(target: Target) -> set[str]:
    """The features that a target's string requires."""
    return {word[1:] for word in target.features.split(",") if word.startswith("+")} - {ONE_VPDPWSSD}


@pytest.mark.parametrize("name", CPUS)
def test_the_best_instruction_set_is_chosen_and_nothing_is_named_that_the_cpu_lacks(name: str) -> None:
    cpu, (sets, fours) = CPUS[name], EXPECTED[name]
    assert " ".join(sets_of(cpu)) == sets
    assert " ".join(x for x in sets_of(cpu) if has_byte_dots(x, cpu)) == fours
    best = best_target(cpu)
    assert (best.name, best.cpu, best.byte_dots) == (sets.split()[0], name, sets.split()[0] in fours.split())
    reported = {feature for feature, has in cpu.features.items() if has}
    for target in targets_of(cpu):
        assert named(target) <= reported, target
        assert target.byte_dots <= (target.name in fours.split())


def test_what_a_name_stands_for_is_taken_back_where_the_cpu_lacks_it() -> None:
    """Hypervisors hide single features: LLVM's name for the CPU would bring them back."""
    whole = CPUS["skylake-avx512"]
    masked = replace(whole, features={**whole.features, "movbe": False, "bmi2": False, "adx": False})
    assert sets_of(masked) == ("avx2", "generic")  # its name says bmi2, and so does the target of AVX-512
    for target in targets_of(masked)[:2]:
        assert {"-movbe", "-bmi2"} <= set(target.features.split(","))
    few = replace(CPUS["neoverse-n1"], features={**CPUS["neoverse-n1"].features, "dotprod": False})
    assert "-dotprod" in best_target(few).features.split(",")


def texts_for(target: Target) -> Iterator[str]:
    """LLVM that is made of a CPU's rarer instructions: conversions of half precision, multiplications of 64 bits,
    masks, permutations, and dot products of bytes where the target has them."""
    ring = find_semiring("plus_times")
    for dtype in ("float16", "int64", "bool", "complex64"):
        a = arithmetic(ring.over(DTYPES[dtype]), DTYPES[dtype], DTYPES[dtype], target)
        yield module([one_function(a, "one", a.lanes)])
    single, byte = DTYPES["float32"], DTYPES["int8"]
    yield FAMILIES["tiny"].text(arithmetic(ring.over(single), single, single, target))
    k_pack = 4 if target.byte_dots else 1 if target.by_lane else 2
    if k_pack > 1:
        a = arithmetic(ring.over(DTYPES["int32"]), byte, byte, target, k_pack=k_pack)
        yield module([short_dots._dot(a, 2, 2), interleave_function(a, "pack", a.width, byte, sums=a.compensates)])
    if target.amx:
        for number, wanted in ((byte, DTYPES["int32"]), (DTYPES["bfloat16"], DTYPES["bfloat16"])):
            rounds = number is wanted
            a = arithmetic(
                ring.over(wanted), number, number, target, k_pack=4 // number.itemsize, amx=True, rounds=rounds
            )
            yield FAMILIES["interleaved"].text(a)


def scanned(target: Target, cpu: Cpu) -> list[tuple[str, tuple[str, ...]]]:
    """Instructions beyond the CPU."""
    triple = "aarch64-unknown-linux-gnu" if cpu.arm else "x86_64-unknown-linux-gnu"
    target = replace(target, triple=triple)
    return [found for text in texts_for(target) for found in beyond(assembly(text, target), cpu)]


@pytest.mark.drawn(1)  # a second of LLVM each
@pytest.mark.parametrize("name", CPUS)
def test_kernels_are_made_of_instructions_that_the_cpu_has(name: str) -> None:
    cpu = CPUS[name]
    for target in targets_of(cpu):
        assert scanned(target, cpu) == [], target


def test_an_instruction_that_the_cpu_lacks_is_found() -> None:
    """AVX-VNNI on Cascade Lake, which LLVM's tuning flag was once taken to imply: an illegal instruction."""
    cpu = CPUS["cascadelake"]
    wrong = plain_target("avx2", cpu, byte_dots=True)
    assert {needs for _, needs in scanned(wrong, cpu)} == {("avxvnni",)}
    assert {needs for _, needs in scanned(best_target(cpu), CPUS["skylake-avx512"])} == {
        ("avxvnni", "avx512vnni"),
        ("avx512vnni",),
    }
    assert ("avx512f",) in {needs for _, needs in scanned(best_target(cpu), CPUS["haswell"])}
    assert {needs for _, needs in scanned(best_target(CPUS["apple-m1"]), replace(CPUS["apple-m1"], features={}))} >= {
        ("dotprod",)
    }


def test_flags_of_cpuinfo_are_read_as_llvms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets.platform, "system", lambda: "Linux")
    for name, (_, flags) in ARM.items():
        (tmp_path / "cpuinfo").write_text(f"processor : 0\nFeatures\t: {flags}\n" * 4)
        found = targets.undetected(str(tmp_path / "cpuinfo"))
        assert found.items() <= CPUS[name].features.items()
