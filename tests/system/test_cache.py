"""The disk cache: whole entries or none, damage is noticed, the folder stays bounded, processes do not collide."""

from __future__ import annotations

import multiprocessing
import os
import socket
from pathlib import Path

import pytest

import tilewise as tw
from tilewise.errors import UsageError
from tilewise.system.cache import DiskCache, cache_folder

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


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
    (tmp_path / "x").write_text("a file, not a folder")
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


def test_it_can_be_cleared(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path))
    DiskCache("llvm").get_or_build(("a",), lambda: b"12345")
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "card.json").write_text("{}")
    assert tw.cache.clear() == 32 + 5
    assert not DiskCache("llvm").entries()
    assert (tmp_path / "tuned" / "card.json").exists()  # measured, not compiled


@posix
def test_the_folder_is_this_user_s_alone(tmp_path):
    cache = DiskCache("x", tmp_path / "new")
    cache.get_or_build(("a",), lambda: b"made")
    for place in (tmp_path / "new", tmp_path / "new" / "x", cache.path(("a",))):
        assert place.stat().st_mode & 0o077 == 0


@posix
@pytest.mark.parametrize("what", ["root", "folder", "entry"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_what_others_can_write_is_not_loaded(tmp_path, what, mode):
    cache = DiskCache("x", tmp_path / "c")
    cache.get_or_build(("a",), lambda: b"planted")
    place = {"root": cache.root, "folder": cache.folder, "entry": cache.path(("a",))}[what]
    place.chmod(mode)
    assert cache.get_or_build(("a",), lambda: b"own") == b"own"


@posix
def test_an_entry_of_another_user_is_not_loaded(tmp_path, monkeypatch):
    cache = DiskCache("x", tmp_path / "c")
    cache.get_or_build(("a",), lambda: b"planted")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 12345)
    if os.getuid() != 0:  # files of root are trusted
        assert cache.get_or_build(("a",), lambda: b"own") == b"own"


@posix
def test_entries_that_are_no_files_are_ignored_without_blocking(tmp_path, monkeypatch):
    cache = DiskCache("x", tmp_path / "c", limit=10)
    cache.get_or_build(("z",), lambda: b"")
    names = ["fifo", "socket", "link", "folder"]
    paths = {name: cache.path((name,)) for name in names}
    os.mkfifo(paths["fifo"])
    monkeypatch.chdir(paths["socket"].parent)  # a socket's whole path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(paths["socket"].name)
    (tmp_path / "elsewhere").write_bytes(b"precious")
    paths["link"].symlink_to(tmp_path / "elsewhere")
    paths["folder"].mkdir()
    for name in names:
        assert cache.get_or_build((name,), lambda: b"made") == b"made"
    cache.size()
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"


@posix
def test_an_entry_under_another_name_is_not_believed(tmp_path):
    cache = DiskCache("x", tmp_path / "c")
    cache.get_or_build(("a",), lambda: b"of a")
    os.rename(cache.path(("a",)), cache.path(("b",)))
    assert cache.get_or_build(("b",), lambda: b"of b") == b"of b"


@posix
def test_a_shared_folder_in_the_variable_is_refused(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(shared))
    with pytest.raises(UsageError, match=r"TILEWISE_CACHE_DIR=.*shared can be written by others"):
        DiskCache("x")
    shared.chmod(0o555)
    assert DiskCache("x").get_or_build(("a",), lambda: b"made") == b"made"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="is no folder"):
        cache_folder()


@pytest.mark.parametrize("value", ["lots", "-1", "1e9", "²"])
def test_a_bad_limit_is_one_sentence(monkeypatch, value):
    monkeypatch.setenv("TILEWISE_CACHE_LIMIT", value)
    with pytest.raises(UsageError, match=r"TILEWISE_CACHE_LIMIT=.* must be a whole number of bytes"):
        DiskCache("x")


def test_an_unknown_user_without_a_home_has_a_folder(tmp_path, monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TILEWISE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    cache = DiskCache("x")
    assert cache.root.parent == tmp_path
    cache.get_or_build(("a",), lambda: b"made")
    assert DiskCache("x").get_or_build(("a",), never) == b"made"
