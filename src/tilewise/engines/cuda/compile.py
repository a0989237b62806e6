"""CUDA C++ text → cubin: from the package of built kernels, from disk, else by NVRTC, with no toolkit and no card.

The arch is always named: then NVRTC makes machine code even where there is no driver, so every kernel is compiled in
the tests of a machine without a card. The key on disk is the text's digest, the options and the compiler's version,
which is read off the installed package: NVRTC itself is loaded when something has to be compiled, and not before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from weakref import finalize

from tilewise.arrays.card import INSTALL, cuda_core, make_current
from tilewise.cache import PLACES, DiskCache
from tilewise.engines.cuda.prebuilt import built_before, digest_of
from tilewise.errors import DeviceError, EngineError, UsageError
from tilewise.system.interruptible import interruptible

OPTIONS = ("std=c++17",)
POLICIES = ("auto", "alone", "never")  # TILEWISE_COMPILE
PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")
_there: set[tuple[str, str]] = set()  # texts, by arch, that were found or built in this process
_read: dict[tuple[str, str], bytes] = {}  # machine code that `at_hand` read and nobody has taken yet


def compile_source(source: str, arch: str, cache: DiskCache | None = None) -> bytes:
    """The cubin of a self-contained source for an arch such as sm_90a."""
    if not arch.startswith("sm_"):
        raise EngineError(f"arch={arch!r} must be a real one, such as sm_80 or sm_90a: others give no machine code")
    found = None if cache is not None else _read.pop((source, arch), None) or built_before(source, arch)
    if found is None:
        store = cache if cache is not None else _store()
        key = _key(source, arch)
        found = store.get(key)
        if found is None:  # seconds; who interrupts them finds the machine code on disk the next time
            building = contextlib.nullcontext()  # NVRTC compiles side by side, and in a child forked meanwhile
            found = interruptible(lambda: store.get_or_build(key, lambda: _compile(source, arch)), building)
    _there.add((source, arch))
    return found


def at_hand(source: str, arch: str) -> bool:
    """The same as `is_there` for a text that is about to be loaded: its machine code is read once, here."""
    if (source, arch) in _there:
        return True
    found = built_before(source, arch) or _store().get(_key(source, arch))
    if found is not None:
        _read[source, arch] = found
        _there.add((source, arch))
    return found is not None


def is_there(source: str, arch: str) -> bool:
    """Whether a text needs no compiler any more."""
    if (source, arch) in _there:
        return True
    found = built_before(source, arch) is not None or _store().holds(_key(source, arch))
    if found:
        _there.add((source, arch))
    return found


def missing(sources: Iterable[str], arch: str) -> list[str]:
    """The texts that a compiler is needed for."""
    return [source for source in sources if not is_there(source, arch)]


def policy() -> str:
    """TILEWISE_COMPILE: `auto` (a miss also starts the rest of its dtype's kernels, in processes of their own), `alone`
    (what is missing and nothing else), `never` (a miss is an error)."""
    asked = os.environ.get("TILEWISE_COMPILE") or "auto"
    if asked not in POLICIES:
        raise UsageError(f"TILEWISE_COMPILE={asked!r} is not known; known are {', '.join(POLICIES)}")
    return asked


def _store() -> DiskCache:
    """The cache on disk; the environment may name another at any time."""
    return _store_for(*map(os.environ.get, PLACES))


@lru_cache(maxsize=8)
def _store_for(*_places: str | None) -> DiskCache:
    return DiskCache("cubin")


def _key(source: str, arch: str) -> tuple[str, ...]:
    return digest_of(source), arch, *OPTIONS, compiler()


def _compile(source: str, arch: str) -> bytes:
    if policy() == "never":
        name = source.rpartition('extern "C" __global__')[2].partition("(\n")[0].split()[-1:]
        raise EngineError(
            f"the kernel {''.join(name)} is not built for {arch}, and TILEWISE_COMPILE=never forbids to compile it: "
            "build it first with `tilewise warm`, or install the package tilewise-kernels"
        )
    core = cuda_core()
    try:
        code = core.Program(source, "c++", core.ProgramOptions(arch=arch, std="c++17")).compile("cubin").code
    except Exception as error:
        raise EngineError(f"NVRTC refused the kernel for {arch}: {error}") from error
    return bytes(code)


@lru_cache(maxsize=1)
def compiler() -> str:
    """NVRTC's version, off its package where it came as one."""
    from importlib.metadata import PackageNotFoundError, version

    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            return f"{name} {version(name)}"
    return nvrtc_version()


@lru_cache(maxsize=1)
def nvrtc_version() -> str:
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise DeviceError(f"compiling a kernel needs NVRTC, which is not installed ({error}): {INSTALL}") from None
    return f"nvrtc {major}.{minor}"


class Kernel:
    """A kernel on a card, for as long as it is held."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, driver: Any, library: Any, handle: Any) -> None:
        self.handle = handle
        finalize(self, driver.cuLibraryUnload, library).atexit = False  # the driver may be gone by then


def load_kernel(source: str, name: str, device: str) -> Kernel:
    """The kernel, ready to launch on a card."""
    from cuda.bindings import driver

    from tilewise.engines.cuda.device import arch_of

    code = compile_source(source, arch_of(device))
    make_current(device)
    status, library = driver.cuLibraryLoadData(code, [], [], 0, [], [], 0)
    if not int(status):
        status, handle = driver.cuLibraryGetKernel(library, name.encode())
    if int(status):
        raise EngineError(f"{name} cannot be loaded on {device}: {status}")
    return Kernel(driver, library, handle)
