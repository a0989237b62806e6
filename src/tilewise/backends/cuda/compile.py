"""CUDA C++ text → cubin: from a bundle by its key, from disk by its text, else by NVRTC, with no toolkit and no card.

The arch is always named: then NVRTC makes machine code even where there is no driver, so every kernel is compiled in
the tests of a machine without a card. The key on disk is the text's digest, the options and the compiler's version.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from typing import Any
from weakref import finalize

from tilewise.arrays.card import cuda_core, simulated_arch
from tilewise.backends.cuda.bundles import in_a_bundle, machine_code
from tilewise.backends.cuda.store import OPTIONS, compiler, store
from tilewise.errors import EngineError, UsageError
from tilewise.kernels.keys import Named, words
from tilewise.system.cache import DiskCache
from tilewise.system.interruptible import interruptible

POLICIES = ("auto", "alone", "never")  # TILEWISE_COMPILE
_there: set[tuple[str, str]] = set()  # texts, by arch, that were found or built in this process
_read: dict[tuple[str, str], bytes] = {}  # machine code that `at_hand` read and `compile_source` has not returned yet


def compile_source(source: str, arch: str, cache: DiskCache | None = None, *, allowed: bool = False) -> bytes:
    """The cubin of a self-contained source, or of one's name, for an arch such as sm_90a. `allowed`: it is compiled
    whatever TILEWISE_COMPILE says."""
    if not arch.startswith("sm_"):
        raise EngineError(f"arch={arch!r} must be a real one, such as sm_80 or sm_90a: others give no machine code")
    found = None if cache is not None else _read.pop((source, arch), None) or _bundled(source, arch)
    if found is None:
        text, kept = words(source), cache if cache is not None else store()
        key = _key(text, arch)
        found = kept.get(key)
        if found is None:
            if not allowed:
                _check_policy(text, arch)
            # seconds; who interrupts them finds the machine code on disk the next time
            building = contextlib.nullcontext()  # NVRTC compiles side by side, and in a child forked meanwhile
            found = interruptible(lambda: kept.get_or_build(key, lambda: _compile(text, arch)), building)
    _there.add((source, arch))
    return found


def _bundled(source: str, arch: str) -> bytes | None:
    return machine_code(source, arch) if source.__class__ is Named else None


def at_hand(source: str, arch: str) -> bool:
    """The same as `is_there` for a text that is about to be loaded: its machine code is read once, here."""
    if (source, arch) in _there:
        return True
    if source.__class__ is not Named or not in_a_bundle(source, arch):  # a bundle is read when a kernel is loaded
        found = store().get(_key(words(source), arch))
        if found is None:
            return False
        _read[source, arch] = found
    _there.add((source, arch))
    return True


def is_there(source: str, arch: str) -> bool:
    """Whether a text is built."""
    if (source, arch) in _there:
        return True
    found = (source.__class__ is Named and in_a_bundle(source, arch)) or store().holds(_key(words(source), arch))
    if found:
        _there.add((source, arch))
    return found


def known(source: str, arch: str) -> None:
    """Note that a text is built."""
    _there.add((source, arch))


def missing(sources: Iterable[str], arch: str) -> list[str]:
    """The texts that a compiler is needed for."""
    return [source for source in sources if not is_there(source, arch)]


def policy() -> str:
    """TILEWISE_COMPILE: `auto` (a miss also starts the rest of its dtype's kernels, in processes of their own), `alone`
    (what is missing and nothing else), `never` (a miss is an error)."""
    setting = os.environ.get("TILEWISE_COMPILE") or "auto"
    if setting not in POLICIES:
        raise UsageError(f"TILEWISE_COMPILE={setting!r} is not known; known are {', '.join(POLICIES)}")
    return setting


def _key(text: str, arch: str) -> tuple[str, ...]:
    return hashlib.sha256(text.encode()).hexdigest(), arch, *OPTIONS, compiler()


def _check_policy(source: str, arch: str) -> None:
    if policy() == "never":
        name = source.rpartition('extern "C" __global__')[2].partition("(\n")[0].split()[-1:]
        raise EngineError(
            f"the kernel {''.join(name)} is not built for {arch}, and TILEWISE_COMPILE=never forbids to compile it: "
            "build it first with `tilewise warm`, or install the package tilewise-kernels"
        )


def _compile(source: str, arch: str) -> bytes:
    core, form = cuda_core(), "cubin"
    if simulated_arch():
        arch, form = arch.replace("sm_", "compute_"), "ptx"
    try:
        code = core.Program(source, "c++", core.ProgramOptions(arch=arch, std="c++17")).compile(form).code
    except Exception as error:
        raise EngineError(f"NVRTC refused the kernel for {arch}: {error}") from error
    return bytes(code) if form == "cubin" else _for_any_driver(bytes(code))


def _for_any_driver(ptx: bytes) -> bytes:
    """PTX of an older card's instructions as text that drivers older than the compiler take, too."""
    return re.sub(rb"\.version \d+\.\d+", b".version 8.4", ptx.rstrip(b"\0"), count=1) + b"\0"


class Kernel:
    """A kernel on a card, for as long as it is held."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, driver: Any, library: Any, handle: Any) -> None:
        self.handle = handle
        finalize(self, driver.cuLibraryUnload, library).atexit = False  # the driver may be gone by then


def load_kernel(code: bytes, name: str, device: str) -> Kernel:
    """A kernel of some machine code, ready to launch on a card, whose context is the thread's current one."""
    from cuda.bindings import driver

    status, library = driver.cuLibraryLoadData(code, [], [], 0, [], [], 0)
    if not int(status):
        status, handle = driver.cuLibraryGetKernel(library, name.encode())
    if int(status):
        raise EngineError(f"{name} cannot be loaded on {device}: {status}")
    return Kernel(driver, library, handle)
