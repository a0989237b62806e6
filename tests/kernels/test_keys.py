"""A name says which text it is: equal names are equal texts, and what decides about a text is in its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import pytest

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cuda.device import machine_of_arch
from tilewise.backends.cuda.loading import kernel_names
from tilewise.core.problem import Groups
from tilewise.kernels.kernel_set import kernel_set
from tilewise.kernels.keys import KernelKey, KeyedRenderer, NoKey, key_part, text_of
from tilewise.kernels.shared.dependent_launch import waits_first
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.shared.text import render_pack
from tilewise.planning import precompile as warming

F32, HALF = DTYPES["float32"], DTYPES["float16"]


@dataclass(frozen=True)
class Tile:
    rows: int
    wide: bool = False


class Pair(NamedTuple):
    left: int
    right: int


@lru_cache(maxsize=4)
def every_text(arch):
    """Every text of every set that `warm` knows of."""
    machine, found = machine_of_arch(arch), {}
    for kind in (*warming.USUAL, "int8", "complex64"):
        problem = warming.problem_of_kind(warming.SEMIRINGS["plus_times"], kind)
        found |= dict.fromkeys(kernel_set(problem, machine))
        found |= dict.fromkeys(kernel_set(replace(problem, groups=Groups(1)), machine))
        if kind in warming.USUAL:
            found |= dict.fromkeys(warming.layer_set(problem, machine))
    return list(found)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
def test_every_text_of_a_set_has_a_name_and_every_name_a_text_of_its_own(arch):
    texts = every_text(arch)
    assert [text[:80] for text in texts if text.__class__ is not KernelKey] == []
    by_text = {}
    for text in texts:
        by_text.setdefault(text_of(text), []).append(text)
    assert [names for names in by_text.values() if len(names) > 1] == []


def test_texts_of_one_renderer_begin_alike():
    """So that one rendered text of a renderer decides for all of them whether a launch may overlap."""
    found = {}
    for text in every_text("sm_90a"):
        for kernel in kernel_names(text_of(text)):
            found.setdefault((text.renderers, kernel), set()).add(waits_first(text_of(text), kernel))
    assert [which for which, how in found.items() if len(how) > 1] == []
    assert {True} in found.values()
    assert {False} in found.values()


def test_a_name_stands_for_the_text_and_no_text_is_written_for_it():
    written = []

    @KeyedRenderer
    def made(tile: Tile, dtype: object = F32, *, store: str = "rows") -> str:
        written.append(tile)
        return f"{tile} {dtype} {store}"

    name = made.key(Tile(8))
    assert name == made.key(Tile(8), F32) == made.key(Tile(8), store="rows")
    assert written == []
    assert text_of(name) == made(Tile(8)) == "Tile(rows=8, wide=False) float32 rows"
    others = [made.key(Tile(9)), made.key(Tile(8, True)), made.key(Tile(8), HALF), made.key(Tile(8), store="x")]
    assert len({name, *others}) == 5
    assert text_of("a text") == "a text"


def test_a_text_made_of_another_is_named_by_it():
    inner = render_pack.key(F32, F32, True)
    outer = stacked.key(inner, ("source", "target"))
    assert inner in outer
    assert text_of(outer) == stacked(render_pack(F32, F32, True), ("source", "target"))
    assert outer.renderers == "shared.stacked.stacked shared.render_pack"
    assert stacked.key(text_of(inner), ("source", "target")).__class__ is KernelKey, "its key contains the text"


def test_equal_values_have_equal_key_parts_and_others_have_not():
    assert key_part(Tile(1, True)) == key_part(Tile(True, 1)) == "Tile(1,1)"
    assert key_part(Pair(1, 2)) == key_part((1, 2)) == "(1,2)"
    apart = [None, "None", 1, "1", 1.5, (1,), ((1,),), ("1",), ("a,b",), ("a", "b"), Tile(1), F32, HALF, "float32"]
    assert len(set(map(key_part, apart))) == len(apart)


def test_an_argument_without_a_key_gives_the_text():
    ours = tw.Semiring("plus_times", add=tw.maximum, mul=lambda x, y: x + y, zero=tw.smallest)
    with pytest.raises(NoKey):
        key_part(ours.over(F32))
    with pytest.raises(NoKey):
        key_part((1, lambda: 1))

    @KeyedRenderer
    def made(of: object) -> str:
        return "text"

    assert made.key(ours) == "text"
    assert made.key(tw.semirings["min_plus"]).__class__ is KernelKey
