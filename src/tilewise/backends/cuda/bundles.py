"""The bundles for an arch: that of the package `tilewise-kernels` first, then this user's in the disk cache.

On a miss the cache is checked for a newer bundle: the background process of a first call stores one when it ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tilewise.arrays.card import simulated_arch
from tilewise.backends.cuda.bundle import Bundle, build_id, bundled, merged, opened
from tilewise.backends.cuda.store import OPTIONS, compiler, store
from tilewise.system.cache import PLACES
from tilewise.system.lock import BusyError, Lock

PACKAGE = "tilewise_kernels"
RECHECK = 0.1  # seconds between checks for a newer bundle
PATIENCE = 10.0  # seconds to wait for another process that writes


@lru_cache(maxsize=1)
def folder() -> Path | None:
    """The package's folder, or None."""
    from importlib.util import find_spec

    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


@lru_cache(maxsize=16)
def _packaged(arch: str) -> Bundle | None:
    """The package's bundle, if it has this version's build id: in others a key may name another text."""
    place = folder()
    if place is None or simulated_arch():
        return None
    try:
        handle = os.open(place / f"{arch}.kernels", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    found = opened(handle)
    return found if found is not None and found.build_id == build_id() else None


@dataclass
class _OpenBundle:
    """The bundle in the cache, as of the last check."""

    path: Path | None = None
    checked: float = -RECHECK  # time of the last check (monotonic)
    seen: tuple[int, int] = (0, 0)  # the file's inode and size
    bundle: Bundle | None = None


@lru_cache(maxsize=16)
def _open_bundle(arch: str, *_places: str | None) -> _OpenBundle:
    return _OpenBundle()


def _key(arch: str) -> tuple[str, ...] | None:
    of = build_id()
    return None if of is None else ("bundle", of, arch, *OPTIONS, compiler())


def _cached(arch: str) -> Bundle | None:
    """This user's bundle, reopened if a newer one was written."""
    state, now = _open_bundle(arch, *map(os.environ.get, PLACES)), time.monotonic()
    if now - state.checked < RECHECK:
        return state.bundle
    key = _key(arch)
    if key is None:
        return None
    state.checked, state.path = now, state.path or store().path(key)
    try:
        about = os.stat(state.path)
    except OSError:
        return state.bundle  # the open file of a deleted bundle still serves
    if state.seen != (about.st_ino, about.st_size):
        place = store().opened(key)
        state.seen, state.bundle = (about.st_ino, about.st_size), None if place is None else opened(*place)
    return state.bundle


def _holding(name: str, arch: str) -> Bundle | None:
    packaged = _packaged(arch)
    if packaged is not None and name in packaged.kernels:
        return packaged
    known = _open_bundle(arch, *map(os.environ.get, PLACES)).bundle
    if known is None or name not in known.kernels:
        known = _cached(arch)
    return known if known is not None and name in known.kernels else None


def in_a_bundle(name: str, arch: str) -> bool:
    """Whether a bundle has the text of this key."""
    return _holding(name, arch) is not None


def machine_code(name: str, arch: str) -> bytes | None:
    """The machine code of the text of this key, or None if no bundle has it intact."""
    held = _holding(name, arch)
    return None if held is None else held.read(name)


def set_of(kind: str, arch: str) -> list[tuple[str, list[str]]]:
    """The kernels of a kind in all bundles: (key, entry points)."""
    found = dict[str, list[str]]()
    for held in (_cached(arch), _packaged(arch)):
        if held is not None:
            found |= {name: held.entries(name) for name in held.sets.get(kind, ())}
    return [(name, entries) for name, entries in found.items() if entries]


def holds_set(kind: str, arch: str) -> bool:
    """Whether a bundle has kernels of a kind."""
    return any(held is not None and kind in held.sets for held in (_cached(arch), _packaged(arch)))


def is_kept(kind: str, names: Iterable[str], arch: str) -> bool:
    """Whether this user's bundle has all of these among its kernels of a kind."""
    held = _cached(arch)
    return held is not None and set(names) <= set(held.sets.get(kind, ()))


def keep(kind: str, built: Mapping[str, tuple[bytes, list[str]]], arch: str) -> None:
    """Add kernels of a kind (machine code and entry points by key) to this user's bundle, one process at a time."""
    key = _key(arch)
    if key is None or is_kept(kind, built, arch):
        return
    state = _open_bundle(arch, *map(os.environ.get, PLACES))
    with _locked():
        state.checked = -RECHECK
        store().put(key, bundled(key[1], *merged(_cached(arch), kind, built)))
        state.checked = -RECHECK


@contextmanager
def _locked() -> Iterator[None]:
    lock, until = Lock(store().folder / "bundle.lock", "a bundle of kernels"), time.monotonic() + PATIENCE
    while True:
        try:
            lock.take()
            break
        except BusyError:
            if time.monotonic() > until:
                break  # the other process hangs: one bundle is lost, and its kernels are found by their texts
            time.sleep(0.02)
        except OSError:
            break  # no folder yet, or a read-only disk
    try:
        yield
    finally:
        lock.remove()
