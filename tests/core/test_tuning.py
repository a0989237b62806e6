"""Tuned tables: which choices they override, which not, and how they are stored."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.core.tuning import CLOSE, TunedClass, TunedTable, class_of, preferred, slug, table_for, table_of
from tilewise.kernels.registry import family_of
from tilewise.planning.choose import make_plan

H200 = KNOWN_CARDS["h200"]
wgmma_half, mma_sync = family_of("wgmma_half"), family_of("mma_sync")


def tuned_for(problem, config, family=wgmma_half):
    entry = TunedClass((problem.m, problem.k, problem.n), config.spec(), 1e-6, "another", 2e-6)
    return replace(H200, tuned=TunedTable(H200.name, {family.tuning_class(problem): entry}))


@pytest.mark.parametrize(("dtype", "side", "family"), [("bfloat16", 4096, wgmma_half), ("float64", 1024, mma_sync)])
def test_a_table_decides_where_the_model_calls_it_close(dtype, side, family):
    problem = problem_of_shape(side, side, side, dtype)
    timed = sorted(
        (family.seconds(config, problem, H200), i, config)
        for i, config in enumerate(family.configurations(problem, H200))
    )
    close = [config for seconds, _, config in timed[1:] if seconds <= CLOSE * timed[0][0]]
    assert close
    plan = make_plan(problem, tuned_for(problem, close[-1], family))
    assert plan.config == close[-1]
    assert "(tuned)" in plan.why
    assert timed[-1][0] > CLOSE * timed[0][0]
    plan = make_plan(problem, tuned_for(problem, timed[-1][2], family))
    assert plan.config == timed[0][2], "a config that the model expects to be far slower was taken"
    assert "(by the model)" in make_plan(problem, H200).why


def test_a_config_with_a_tiny_gain_decides_nothing():
    problem = problem_of_shape(4096, 4096, 4096, "bfloat16")
    timed = sorted(
        (wgmma_half.seconds(w, problem, H200), i, w) for i, w in enumerate(wgmma_half.configurations(problem, H200))
    )
    second = timed[1][2]
    for model_seconds, chosen in ((1.005e-6, timed[0][2]), (1.02e-6, second)):
        entry = TunedClass((4096, 4096, 4096), second.spec(), 1e-6, "another", model_seconds)
        table = TunedTable(H200.name, {wgmma_half.tuning_class(problem): entry})
        assert make_plan(problem, replace(H200, tuned=table)).config == chosen


def test_the_shipped_tables_name_configs_that_exist():
    table = table_for("NVIDIA H200")
    assert table is not None
    for key, entry in table.entries.items():
        kernel, dtype, layouts = key.split()[:3]
        family = {"wgmma_half": wgmma_half, "mma_sync": mma_sync}[kernel]
        m, k, n = entry.shape
        layout_m, layout_n = (
            Layout(cols, 1) if side == "N" else Layout(1, rows)
            for side, rows, cols in zip(layouts, (m, k), (k, n), strict=True)
        )
        problem = replace(problem_of_shape(m, k, n, dtype), layout_m=layout_m, layout_n=layout_n)
        assert family.tuning_class(problem) == key
        assert entry.spec in {config.spec() for config in family.configurations(problem, H200)}
        assert entry.gain >= 1


def test_classes_hold_neighbours_and_keep_others_apart():
    square = class_of("wgmma_half", "bfloat16", (4096, 4096, 4096), "NN", True)
    assert square == class_of("wgmma_half", "bfloat16", (4200, 4000, 4096), "NN", True)
    others = {
        class_of("wgmma_half", "bfloat16", (8192, 4096, 4096), "NN", True),
        class_of("wgmma_half", "float16", (4096, 4096, 4096), "NN", True),
        class_of("wgmma_half", "bfloat16", (4096, 4096, 4096), "NT", True),
        class_of("wgmma_half", "bfloat16", (4096, 4096, 4096), "NN", False),
        class_of("mma_sync", "bfloat16", (4096, 4096, 4096), "NN", True),
    }
    assert len(others | {square}) == 6
    assert class_of("mma_sync", "float64", (1, 0, 1), "NN", True)


def test_a_table_comes_back_from_its_file_and_a_damaged_one_is_left_alone(tmp_path):
    table = TunedTable("NVIDIA X9", {"a class": TunedClass((1, 2, 3), "128x64", 1.5e-6, "64x64", 2e-6)})
    assert table_of(json.loads(json.dumps(table.to_json()))) == table
    path = tmp_path / "tuned" / "x9.json"
    path.parent.mkdir()
    path.write_text(json.dumps(table.to_json()))
    assert table_for("NVIDIA X9", tmp_path) == table
    for text in ("", "{", "[]", '{"version": 99}', '{"version": 1, "card": "x", "classes": {"a": {"shape": [1]}}}'):
        path.write_text(text)
        assert table_for("NVIDIA X9", tmp_path) is None


def test_names_of_cards_as_files():
    assert slug("NVIDIA H200") == "h200"
    assert slug("GeForce RTX 4090") == "rtx-4090"


def test_without_an_entry_the_model_decides():
    problem = problem_of_shape(1000, 1000, 1000, "bfloat16")
    timed = [
        (wgmma_half.seconds(w, problem, H200), i, w) for i, w in enumerate(wgmma_half.configurations(problem, H200))
    ]
    for table in (None, TunedTable("x", {})):
        seconds, config, tuned = preferred(timed, "no such class", table)
        assert (seconds, config, tuned) == (min(timed)[0], min(timed)[2], False)
