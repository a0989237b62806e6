"""A new way to multiply is a folder and a line in the registry: a toy goes through plan, source, launch and tune."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import tilewise as tw
import tilewise.kernels.choosing as choosing
import tilewise.kernels.registry as registry
import tilewise.planning.choose as planning
from behind_a_compiler import COMPILER
from host_card import multiplied
from tilewise.bench import tune
from tilewise.cli.main import run
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.plan import Geometry
from tilewise.core.problem import problem_of_shape, row_major
from tilewise.core.recipe import Launch
from tilewise.kernels.capabilities import Capabilities, Condition
from tilewise.kernels.family import Family, own_tiles
from tilewise.kernels.recipes import recipe_of

H200 = KNOWN_CARDS["h200"]
TEXT = """// toy: one thread a cell of P, blocks of %d columns
extern "C" __global__ void toy(const float* M, const float* N, float* P, int m, int k, int n)
{
    int row = blockIdx.y, column = blockIdx.x * %d + threadIdx.x;
    if (column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += M[(long long)row * k + i] * N[(long long)i * n + column];
    P[(long long)row * n + column] = sum;
}
"""


@dataclass(frozen=True)
class ToyConfig:
    width: int

    def spec(self) -> str:
        return f"toy {self.width}"


ROWS = Condition(
    lambda p: p.layout_m.row == p.k and p.layout_n.row == p.n and not p.stack, "multiplies rows side by side"
)


class Toy(Family):
    name = "toy"
    kernels: ClassVar = {"toy": "one thread a cell, as plain as can be"}
    can = Capabilities(dtypes=("float32",), one_dtype=True, plus_times=True, stacks=False, problem=(ROWS,))
    seconds_each = 1.0

    def plan(self, problem, machine, kernel, tile):
        return self.pinned(problem, machine, ToyConfig(64))

    def pinned(self, problem, machine, config):
        geometry = Geometry((config.width, 1), 1, config.width, 1, 0)
        limits = machine.floor(problem.steps, problem.least_bytes, "float32")
        seconds = self.seconds(config, problem, machine)
        return own_tiles(self, problem, machine, "toy", None, geometry, seconds, limits, (), packs=(), config=config)

    def launches(self, plan, given, scratch):
        p, width = plan.problem, plan.config.width
        arguments = (given.M.pointer, given.N.pointer, given.P.pointer, *map(ctypes.c_int, (p.m, p.k, p.n)))
        grid = (-(-p.n // width), p.m)
        return [Launch.of(TEXT % (width, width), "toy", grid, (width,), arguments)]

    def configurations(self, problem, machine):
        return [ToyConfig(32), ToyConfig(64)]

    def seconds(self, config, problem, machine):
        return self.seconds_each / config.width

    def tuning_class(self, problem):
        return "toy"


def forget():
    """What was chosen among the families so far."""
    for cached in (planning._plan, choosing.field_of):
        cached.cache_clear()


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    monkeypatch.setattr(registry, "FAMILIES", [*registry.FAMILIES, made])
    monkeypatch.setattr(choosing, "FAMILIES", registry.FAMILIES)
    forget()
    yield made
    forget()


def test_it_is_planned_by_name_and_by_its_time(toy):
    problem = problem_of_shape(30, 40, 50)
    assert planning.make_plan(problem, H200, "toy").family == "toy"
    assert planning.make_plan(problem, H200).family != "toy"
    toy.seconds_each = 1e-12
    forget()
    plan = planning.make_plan(problem, H200)
    assert plan.kernel == "toy"
    assert "one thread a cell" in str(plan)
    sides = {"layout_m": (30, 40), "layout_n": (40, 50), "layout_p": (30, 50)}
    stacked = {name: row_major(*shape, (2,)) for name, shape in sides.items()}
    with pytest.raises(tw.UsageError, match="makes one product, and this is a stack of 2"):
        planning.make_plan(replace(problem, stack=(2,), **stacked), H200, "toy")


def test_its_source_is_what_the_command_prints(toy, capsys):
    assert run(["plan", "--shape", "30x40x50", "--device", "h200", "--kernel", "toy", "--source"]) == 0
    assert capsys.readouterr().out == TEXT % (64, 64)
    assert run(["plan", "--shape", "30x40x50", "--device", "h200", "--kernel", "toy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["family"] == "toy"


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
def test_it_runs_with_an_epilogue_behind_it_and_into_any_P(toy, tmp_path):
    rng = np.random.default_rng(0)
    M, N = rng.integers(-5, 5, (30, 40)).astype(np.float32), rng.integers(-5, 5, (40, 50)).astype(np.float32)
    P = np.zeros((50, 30), np.float32).T  # its columns lie side by side: made in scratch memory, then copied
    plan = multiplied(M, N, tw.semirings["plus_times"], H200, P, tmp_path, kernel="toy")
    assert plan.kernel == "toy"
    np.testing.assert_array_equal(P, M @ N)
    assert len(recipe_of(plan).steps) == 2


def test_it_is_tuned_like_any_other(toy):
    problem = problem_of_shape(30, 40, 50)
    found = tune._candidates(problem, H200, "toy")
    assert list(found) == ["toy 64"]
    toy.seconds = lambda config, problem, machine: 1.0
    assert list(tune._candidates(problem, H200, "toy")) == ["toy 32", "toy 64"]


def test_no_family_is_named_where_everything_is_shared():
    """Planning, recipes, launching and preparing know the interface alone."""
    from pathlib import Path

    import tilewise

    root = Path(tilewise.__file__).parent
    names = {name for family in registry.FAMILIES for name in (family.name, *family.kernels)}
    shared = [
        "planning/choose.py",
        "core/plan.py",
        "dispatch/prepared.py",
        "dispatch/execute.py",
        "api.py",
        "core/recipe.py",
    ]
    shared += [
        "kernels/recipes.py",
        "kernels/family.py",
        "backends/cuda/launcher.py",
        "backends/cuda/native.py",
        "backends/cuda/scratch.py",
    ]
    for file in shared:
        text = (root / file).read_text(encoding="utf-8")
        named = {name for name in names if f'"{name}"' in text}
        assert not named, f"{file} names {named}"
