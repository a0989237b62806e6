"""Structures that kernels take by value lie in memory as their CUDA text declares them."""

from __future__ import annotations

import ctypes

import pytest

from tilewise.kernels.shared import structs
from tilewise.kernels.shared.structs import struct_of

TEXT = """struct Pair { int first, second; };
struct Operand {
    const float* from; char* to;  // where it lies; where it goes
    int lines;
    long long step, apart;
    Pair pair;
    int skews[3];  // of an alignment class each
    float factor;

    __device__ __forceinline__ void go_to(int member) {
        from += member * step;
    }
};
"""


@pytest.fixture
def declared(monkeypatch):
    monkeypatch.setattr(structs, "kernel_text", {"a.cu": TEXT, "b.cu": "struct Odd { double x; };"}.__getitem__)
    struct_of.cache_clear()
    yield struct_of
    struct_of.cache_clear()


def test_fields_have_the_order_types_and_offsets_of_the_text(declared):
    made = declared("Operand", "a.cu")
    offsets = {name: getattr(made, name).offset for name, _ in made._fields_}
    numbers = {"lines": 16, "step": 24, "apart": 32, "pair": 40, "skews0": 48, "skews1": 52, "skews2": 56, "factor": 60}
    assert offsets == {"from": 0, "to": 8, **numbers}
    assert ctypes.sizeof(made) == 64
    assert dict(made._fields_)["pair"] is declared("Pair", "a.cu")


def test_what_it_cannot_lay_out_is_refused(declared):
    with pytest.raises(AssertionError, match="Nothing is declared in none of"):
        declared("Nothing", "a.cu", "b.cu")
    with pytest.raises(AssertionError, match="double is declared in none of"):
        declared("Odd", "b.cu")
