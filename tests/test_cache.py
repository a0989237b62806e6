"""The disk cache: whole entries or none, damage is noticed, the folder stays bounded, processes do not collide."""

from __future__ import annotations

import multiprocessing
import os

import pytest

import tilewise as tw
from tilewise.cache import DiskCache


def never():
    raise AssertionError("built again")


def test_what_was_built_is_found(tmp_path):
    cache = DiskCache("x", tmp_path)
    assert cache.get_or_build(("a", "b"), lambda: b"made") == b"made"
    assert DiskCache("x", tmp_path).get_or_build(("a", "b"), never) == b"made"


def test_keys_do_not_run_into_each_other(tmp_path):
    cache = DiskCache("x", tmp_path)
    assert cache.path(("ab", "c")) != cache.path(("a", "bc"))


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_entry_is_built_again_never_trusted(tmp_path, damage):
    cache = DiskCache("x", tmp_path)
    cache.get_or_build(("a",), lambda: b"right" * 100)
    path = cache.path(("a",))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"?" if damage is None else damage)
    assert cache.get_or_build(("a",), lambda: b"again") == b"again"
    assert cache.get_or_build(("a",), never) == b"again"


def test_the_entries_unused_for_longest_go_first(tmp_path):
    cache = DiskCache("x", tmp_path, limit=3 * 1032)
    for number in range(3):
        cache.get_or_build((str(number),), lambda: b"." * 1000)
        os.utime(cache.path((str(number),)), (number, number))
    cache.get_or_build(("0",), never)  # used: now the youngest
    cache.get_or_build(("3",), lambda: b"." * 1000)
    assert cache.size() <= cache.limit
    assert cache.path(("0",)).exists()
    assert not cache.path(("1",)).exists()


def test_a_folder_that_cannot_be_written_costs_a_rebuild_not_an_error(tmp_path):
    (tmp_path / "x").write_text("a file is in the way")
    cache = DiskCache("x", tmp_path)
    assert cache.get_or_build(("a",), lambda: b"made") == b"made"


def build_many(folder):
    cache = DiskCache("x", folder)
    for number in range(50):
        body = str(number).encode() * 1000
        if cache.get_or_build((str(number),), lambda body=body: body) != body:
            return False
    return True


def test_processes_share_a_folder(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert all(pool.map(build_many, [tmp_path] * 8))
    assert len(DiskCache("x", tmp_path).entries()) == 50
    assert not list((tmp_path / "x").glob("new-*"))


def test_a_limit_that_is_no_number_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWISE_CACHE_LIMIT", "lots")
    with pytest.raises(tw.UsageError, match="TILEWISE_CACHE_LIMIT='lots' must be a whole number of bytes"):
        DiskCache("x", tmp_path)


def test_it_can_be_cleared(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path))
    DiskCache("llvm").get_or_build(("a",), lambda: b"12345")
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "card.json").write_text("{}")
    assert tw.cache.clear() == 32 + 5
    assert not DiskCache("llvm").entries()
    assert (tmp_path / "tuned" / "card.json").exists()  # measured, not compiled
