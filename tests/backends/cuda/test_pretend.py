"""One card in place of another: its facts, its PTX, and no more blocks of a multiprocessor than it holds."""

from __future__ import annotations

import pytest

import tilewise.arrays.card as card
import tilewise.backends.cuda.launcher as launcher
from tilewise.backends.cuda import compile as compiling
from tilewise.backends.cuda.store import store
from tilewise.core.recipe import Launch
from tilewise.errors import UsageError

H200 = card.CardAttributes("NVIDIA H200", (9, 0), 132, 1980000, 3201000, 6144)


@pytest.fixture
def turing(monkeypatch):
    monkeypatch.setenv(card.PRETEND, "sm_75")
    monkeypatch.setattr(card, "_card_attributes", lambda device: H200)
    monkeypatch.setattr(launcher, "_shared_of_unit", lambda: 228 * 1024)


def test_facts_are_those_of_the_other_card(turing):
    found = card.card_attributes("cuda:0")
    assert found.capability == (7, 5)
    assert found.name == "NVIDIA H200 as sm_75"  # which has no tuned table
    assert found.units == H200.units


def test_what_is_compiled_is_kept_apart(turing, monkeypatch):
    simulated = store()
    monkeypatch.delenv(card.PRETEND)
    assert store() is not simulated


def test_ptx_is_of_a_version_that_drivers_take():
    made = compiling._for_any_driver(b"// made\n.version 9.4\n.target sm_75\n\0")
    assert made == b"// made\n.version 8.4\n.target sm_75\n\0"


@pytest.mark.parametrize(
    ("threads", "shared", "blocks"),
    [(1024, 0, 1), (256, 0, 4), (256, 48 * 1024, 1), (128, 32 * 1024, 2), (32, 0, 32)],
)
def test_no_more_blocks_fit_than_on_the_other_card(turing, threads, shared, blocks):
    step = launcher.as_simulated(Launch("", "kernel", (1,), (threads,), (), shared))
    assert 228 * 1024 // (step.shared_bytes + 1024) == blocks


def test_a_name_that_is_no_arch_is_refused(monkeypatch):
    monkeypatch.setenv(card.PRETEND, "turing")
    with pytest.raises(UsageError, match="TILEWISE_PRETEND='turing' must be an arch, such as sm_75"):
        card.simulated_arch()
