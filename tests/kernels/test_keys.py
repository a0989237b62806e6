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
from tilewise.kernels.keys import Named, Unnamed, Written, spelt, words
from tilewise.kernels.shared.dependent_launch import begins_by_waiting
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
    assert [text[:80] for text in texts if text.__class__ is not Named] == []
    by_words = {}
    for text in texts:
        by_words.setdefault(words(text), []).append(text)
    assert [names for names in by_words.values() if len(names) > 1] == []


def test_texts_of_one_writer_begin_alike():
    """So that a launch is told to start early by another text of the same writer."""
    found = {}
    for text in every_text("sm_90a"):
        for kernel in kernel_names(words(text)):
            found.setdefault((text.writer, kernel), set()).add(begins_by_waiting(words(text), kernel))
    assert [which for which, how in found.items() if len(how) > 1] == []
    assert {True} in found.values()
    assert {False} in found.values()


def test_a_name_stands_for_the_text_and_no_text_is_written_for_it():
    written = []

    @Written
    def made(tile: Tile, dtype: object = F32, *, store: str = "rows") -> str:
        written.append(tile)
        return f"{tile} {dtype} {store}"

    name = made.named(Tile(8))
    assert name == made.named(Tile(8), F32) == made.named(Tile(8), store="rows")
    assert written == []
    assert words(name) == made(Tile(8)) == "Tile(rows=8, wide=False) float32 rows"
    others = [made.named(Tile(9)), made.named(Tile(8, True)), made.named(Tile(8), HALF), made.named(Tile(8), store="x")]
    assert len({name, *others}) == 5
    assert words("a text") == "a text"


def test_a_text_made_of_another_is_named_by_it():
    inner = render_pack.named(F32, F32, True)
    outer = stacked.named(inner, ("source", "target"))
    assert inner in outer
    assert words(outer) == stacked(render_pack(F32, F32, True), ("source", "target"))
    assert outer.writer == "shared.stacked.stacked shared.render_pack"
    assert stacked.named(words(inner), ("source", "target")).__class__ is Named, "of words, it has them in its name"


def test_equal_values_are_spelt_alike_and_others_are_not():
    assert spelt(Tile(1, True)) == spelt(Tile(True, 1)) == "Tile(1,1)"
    assert spelt(Pair(1, 2)) == spelt((1, 2)) == "(1,2)"
    apart = [None, "None", 1, "1", 1.5, (1,), ((1,),), ("1",), ("a,b",), ("a", "b"), Tile(1), F32, HALF, "float32"]
    assert len(set(map(spelt, apart))) == len(apart)


def test_what_a_name_cannot_tell_goes_by_its_words():
    ours = tw.Semiring("plus_times", add=tw.maximum, mul=lambda x, y: x + y, zero=tw.smallest)
    with pytest.raises(Unnamed):
        spelt(ours.over(F32))
    with pytest.raises(Unnamed):
        spelt((1, lambda: 1))

    @Written
    def made(of: object) -> str:
        return "text"

    assert made.named(ours) == "text"
    assert made.named(tw.semirings["min_plus"]).__class__ is Named
