"""Launches that pass through scratch buffers are laid out once, and again only when the buffers have moved."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

from tilewise.engines.cuda import placed


def test_launches_are_laid_out_once_for_each_set_of_buffers(monkeypatch):
    buffers = [SimpleNamespace(handle=100), SimpleNamespace(handle=200)]

    @contextmanager
    def scratch(needs, device, stream):
        yield list(buffers)

    monkeypatch.setattr(placed, "scratch", scratch)
    made, queued = [], []

    def make(addresses):
        made.append(addresses)
        return [lambda: queued.append(dict(addresses)), lambda: queued.append("second")]

    queue = placed.by_way_of_scratch({"M": 8, "N": 16}, make, "cuda:0", None)
    assert made == []  # nothing is known before there are buffers
    queue()
    queue()
    assert made == [{"M": 100, "N": 200}]
    buffers[1] = SimpleNamespace(handle=300)
    queue()
    assert made[1:] == [{"M": 100, "N": 300}]
    assert queued[-2:] == [{"M": 100, "N": 300}, "second"]
    assert len(queued) == 6


def test_what_needs_no_scratch_is_laid_out_at_once():
    queued = []
    queue = placed.by_way_of_scratch({}, lambda addresses: [lambda: queued.append(addresses)], "cuda:0", None)
    queue()
    assert queued == [{}]
