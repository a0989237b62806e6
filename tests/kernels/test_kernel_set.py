"""The set of kernels of a dtype is finite and closed: no problem names a text outside its table."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from seeds import next_seed
from tilewise.bench.drawn_problems import KINDS, drawn_problem
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Groups, problem_of_shape, row_major
from tilewise.core.tuning import table_for
from tilewise.kernels.kernel_set import kernel_set
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import FAMILIES
from tilewise.planning.choose import make_plan
from tilewise.planning.precompile import layer_set

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a", tuned=table_for("NVIDIA H200"))
CARDS = {"h200": H200, "a100": KNOWN_CARDS["a100"], "rtx4090": KNOWN_CARDS["rtx4090"]}
CASES = [(card, kind) for card in CARDS for kind in KINDS]
MOST = {"h200": 442, "a100": 330, "rtx4090": 320}  # kernels of a set: it may shrink, and grows only on purpose


def texts_of(card, kind):
    dtype = kind if kind not in ("tf32", "ieee") else "float32"
    return set(kernel_set(problem_of_shape(8, 8, 8, dtype, precision=KINDS[kind]), CARDS[card]))


def outside(card, kind, count, rng):
    """Problems that name a text outside the set, with the text's kernel."""
    table, found = texts_of(card, kind), []
    for _ in range(count):
        drawn = replace(drawn_problem(rng, kind), epilogue=PLAIN)
        apart = drawn.members > 1 or drawn.dtype.itemsize == 2  # compiled on request
        problem = replace(drawn, accumulate=drawn.accumulate and not apart)
        plan = make_plan(problem, CARDS[card])
        names = [step.name for step in recipe_of(plan).steps if getattr(step, "source", None) not in (None, *table)]
        found += [(problem, plan.kernel, name) for name in names]
    return found


@pytest.fixture
def rng():
    seed = next_seed() % 10**9
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("card", "kind"), CASES)
def test_no_problem_names_a_kernel_outside_its_table(rng, card, kind):
    assert outside(card, kind, 120 if card == "h200" else 50, rng) == []


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("card", "kind"), CASES)
def test_no_layer_names_a_kernel_outside_the_layers_set(rng, card, kind):
    dtype = kind if kind not in ("tf32", "ieee") else "float32"
    alike = problem_of_shape(8, 8, 8, dtype, precision=KINDS[kind])
    table = {*kernel_set(alike, CARDS[card]), *layer_set(alike, CARDS[card])}
    for _ in range(80):
        drawn = drawn_problem(rng, kind)
        if drawn.members == 1 and drawn.dtype == drawn.result == alike.dtype:
            problem = replace(drawn, epilogue=Epilogue(bias=drawn.dtype), accumulate=False)
            recipe = recipe_of(make_plan(problem, CARDS[card]))
            assert [step.name for step in recipe.steps if getattr(step, "source", None) not in (None, *table)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("card", "kind"), CASES)
def test_a_hundred_thousand_problems_name_none(rng, card, kind):
    assert outside(card, kind, 100_000 // len(CASES) + 1, rng) == []


@pytest.mark.parametrize(("card", "kind"), CASES)
def test_a_table_is_finite_and_has_each_text_once(card, kind):
    dtype = kind if kind not in ("tf32", "ieee") else "float32"
    table = kernel_set(problem_of_shape(8, 8, 8, dtype, precision=KINDS[kind]), CARDS[card])
    assert len(set(table)) == len(table) <= MOST[card]
    assert all(text.isascii() for text in table), "one other letter doubles the time to render, hash and compare a text"


def test_the_table_depends_on_the_kind_of_problem_only(rng):
    for kind in KINDS:
        drawn = replace(drawn_problem(rng, kind), epilogue=PLAIN)
        assert set(kernel_set(drawn, H200)) == texts_of("h200", kind)


def drawn_groups(rng, kind):
    """Groups along either axis, of operands that lie any way."""
    p, along = drawn_problem(rng, kind, most=3000), rng.choice(("rows", "k"))
    p = replace(p, epilogue=PLAIN, accumulate=False, stack=())
    groups = Groups(rng.randint(1, 300), along, rng.random() < 0.5)
    lies_m, lies_n = (layout._replace(stack=(0,) if along == "k" else ()) for layout in (p.layout_m, p.layout_n))
    if along == "k":
        fresh = row_major(p.m, p.n, (groups.count,))
        return replace(p, stack=(groups.count,), layout_m=lies_m, layout_n=lies_n, layout_p=fresh, groups=groups)
    each = rng.choice((p.k * p.n, 8 * p.k * p.n))
    fresh = row_major(p.m, p.n)
    return replace(p, layout_m=lies_m, layout_n=lies_n._replace(stack=(each,)), layout_p=fresh, groups=groups)


@pytest.mark.parametrize("kind", ["bfloat16", "float32", "float64"])
def test_no_groups_name_a_kernel_outside_their_table(rng, kind):
    table = set(kernel_set(drawn_groups(rng, kind), H200))
    for _ in range(150):
        plan = make_plan(drawn_groups(rng, kind), H200)
        assert set(recipe_of(plan).sources) <= table, plan.problem


def test_no_thin_edge_names_a_kernel_outside_its_table(rng):
    """One row or column beyond whole tiles, which few drawn products have."""
    table, edged = texts_of("h200", "bfloat16"), 0
    for _ in range(60):
        m, n = (256 * rng.randint(8, 60) + rng.choice((0, 1, 1)) for _ in range(2))
        k = rng.choice((64 * rng.randint(8, 200), rng.randint(500, 12000)))
        p = problem_of_shape(m, k, n, "bfloat16")
        transposed_m, transposed_n = p.layout_m._replace(row=1, col=m), p.layout_n._replace(row=1, col=k)
        p = replace(p, layout_m=rng.choice((p.layout_m, transposed_m)), layout_n=rng.choice((p.layout_n, transposed_n)))
        steps = recipe_of(make_plan(p, H200)).steps
        assert [step.source for step in steps if step.source not in table] == [], p
        edged += any("#define EDGES 1" in text_of(step.source) for step in steps)
    assert edged


def test_every_family_but_the_courses_states_its_texts():
    requested = {
        "wgmma_half": "bfloat16",
        "k_major": "int8",
        "mma_sync": "float64",
    }
    for family in FAMILIES:
        problem = problem_of_shape(8, 8, 8, requested.get(family.name, "float32"))
        if family.name == "grouped":
            problem = replace(problem, groups=Groups(3))
        has = bool(list(family.texts(problem, H200)))
        assert has != family.teaches, family.name


def test_no_stack_of_float32_by_planes_names_a_kernel_outside_its_table(rng):
    table = texts_of("h200", "float32")
    for _ in range(60):
        stack, (m, k, n) = (rng.randint(2, 900),), (rng.randint(1, 700) for _ in range(3))
        p = replace(problem_of_shape(m, k, n), stack=stack)
        transposed = [rng.random() < 0.5, rng.random() < 0.5, False]
        lies = [
            row_major(c, r, stack)._replace(row=1, col=r) if t else row_major(r, c, stack)
            for t, (r, c) in zip(transposed, ((m, k), (k, n), (m, n)), strict=True)
        ]
        plan = make_plan(replace(p, layout_m=lies[0], layout_n=lies[1], layout_p=lies[2]), H200, "bf16x6")
        assert [step.name for step in recipe_of(plan).steps if step.source not in table] == [], plan.problem


@pytest.mark.parametrize(("card", "kernel"), [("h200", "wgmma_half"), ("a100", "mma_sync"), ("rtx4090", "mma_sync")])
def test_nothing_of_an_empty_operand_is_realigned(card, kernel):
    """With k = 0 there are rows of no elements, which may start anywhere."""
    empty = problem_of_shape(3, 0, 3, "bfloat16", accumulate=True)
    odd = replace(
        empty, layout_m=empty.layout_m._replace(misalignment=6), layout_n=empty.layout_n._replace(misalignment=4)
    )
    recipe = recipe_of(make_plan(odd, CARDS[card], kernel))
    assert not [step.name for step in recipe.steps if "realign" in getattr(step, "name", "")]


@pytest.mark.parametrize("along", ["rows", "k"])
@pytest.mark.parametrize("kind", ["bfloat16", "float32", "float64"])
def test_empty_groups_have_a_plan_and_no_launches(kind, along):
    """No rows, or no columns; with rows of no elements P is still written."""
    for m, k, n in ((0, 5, 6), (4, 5, 0), (4, 0, 6)):
        alone = problem_of_shape(m, k, n, kind)
        stack = () if along == "rows" else (3,)
        apart = alone.layout_n._replace(stack=(k * n if along == "rows" else 0,))
        of_m, of_p = alone.layout_m._replace(stack=(0,) * len(stack)), row_major(m, n, stack)
        groups = replace(alone, stack=stack, layout_m=of_m, layout_n=apart, layout_p=of_p, groups=Groups(3, along))
        assert bool(recipe_of(make_plan(groups, H200)).steps) == (m * n > 0)


@pytest.mark.parametrize(
    ("shape", "dtype", "ring", "kernel", "name", "lines"),
    [
        ((9_000_000, 2, 17), "int16", "min_plus", "plain", "pack_words", 64),
        ((17, 2, 9_000_000), "int16", "min_plus", "plain", "pack_words", 64),
        ((9_000_000, 100, 16), "int8", "plus_times", "k_major", "transpose", 64),
    ],
)
def test_operands_of_millions_of_lines_are_written_by_several_launches(shape, dtype, ring, kernel, name, lines):
    """A grid has 65,535 blocks along y."""
    recipe = recipe_of(make_plan(problem_of_shape(*shape, dtype, ring), H200, kernel))
    grids = [step.grid for step in recipe.steps if getattr(step, "name", "") == name]
    assert max(grid[1] for grid in grids) <= 65_535
    assert sum(grid[1] for grid in grids) * lines >= max(shape)
    assert len(grids) > 2
