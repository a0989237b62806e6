"""CUDA C++ text → cubin: from a bundle by its key, from the disk cache by its text, else by NVRTC, without a toolkit.

NVRTC is given a real arch and makes machine code without a driver, so tests compile every kernel without a card. The
key of the disk cache is the text's digest, the options and the compiler's version.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import zlib
from collections.abc import Iterable
from typing import Any
from weakref import finalize

from tilewise.arrays.card import cuda_core, simulated_arch
from tilewise.backends.cuda.bundle import packed
from tilewise.backends.cuda.bundles import in_a_bundle, machine_code
from tilewise.backends.cuda.store import OPTIONS, compiler, store
from tilewise.errors import EngineError, UsageError
from tilewise.kernels.keys import KernelKey, text_of
from tilewise.system.cache import DiskCache
from tilewise.system.interruptible import interruptible

POLICIES = ("auto", "alone", "never")  # TILEWISE_COMPILE
_built: set[tuple[str, str]] = set()  # (text or key, arch) that this process found or built
_read: dict[tuple[str, str], bytes] = {}  # machine code that `prefetched` read for `compile_source`


def compile_source(source: str, arch: str, cache: DiskCache | None = None, *, allowed: bool = False) -> bytes:
    """The cubin of a self-contained text or of its key, for an arch such as sm_90a. `allowed`: compile it also where
    TILEWISE_COMPILE forbids it."""
    if not arch.startswith("sm_"):
        raise EngineError(f"arch={arch!r} must be a real one, such as sm_80 or sm_90a: others give no machine code")
    found = None if cache is not None else _read.pop((source, arch), None) or _bundled(source, arch)
    if found is None:
        text, kept = text_of(source), cache if cache is not None else store()
        key = _key(text, arch)
        found = kept.get(key)
        if found is None:
            if not allowed:
                _check_policy(text, arch)
            # takes seconds; after Ctrl-C the compilation goes on, and the next call finds its result on disk
            building = contextlib.nullcontext()  # no lock: NVRTC runs in several threads, and in a forked child
            found = interruptible(lambda: kept.get_or_build(key, lambda: packed(_compile(text, arch))), building)
        found = zlib.decompress(found)
    _built.add((source, arch))
    return found


def _bundled(source: str, arch: str) -> bytes | None:
    return machine_code(source, arch) if source.__class__ is KernelKey else None


def prefetched(source: str, arch: str) -> bool:
    """The same as `is_built` for a text that is about to be loaded: its machine code is read once, here."""
    if (source, arch) in _built:
        return True
    if source.__class__ is not KernelKey or not in_a_bundle(source, arch):  # a bundle is read when a kernel is loaded
        found = store().get(_key(text_of(source), arch))
        if found is None:
            return False
        _read[source, arch] = zlib.decompress(found)
    _built.add((source, arch))
    return True


def is_built(source: str, arch: str) -> bool:
    """Whether a text is built."""
    if (source, arch) in _built:
        return True
    found = (source.__class__ is KernelKey and in_a_bundle(source, arch)) or store().holds(_key(text_of(source), arch))
    if found:
        _built.add((source, arch))
    return found


def note_built(source: str, arch: str) -> None:
    """Note that a text is built."""
    _built.add((source, arch))


def missing(sources: Iterable[str], arch: str) -> list[str]:
    """The texts that are not built."""
    return [source for source in sources if not is_built(source, arch)]


def policy() -> str:
    """TILEWISE_COMPILE: `auto` (a miss also builds the rest of the dtype's set, in a background process), `alone` (only
    what is missing), `never` (a miss is an error)."""
    setting = os.environ.get("TILEWISE_COMPILE") or "auto"
    if setting not in POLICIES:
        raise UsageError(f"TILEWISE_COMPILE={setting!r} is not known; known are {', '.join(POLICIES)}")
    return setting


def _key(text: str, arch: str) -> tuple[str, ...]:
    return hashlib.sha256(text.encode()).hexdigest(), arch, "packed", *OPTIONS, compiler()


def _check_policy(source: str, arch: str) -> None:
    if policy() == "never":
        name = source.rpartition('extern "C" __global__')[2].partition("(\n")[0].split()[-1:]
        raise EngineError(
            f"the kernel {''.join(name)} is not built for {arch}, and TILEWISE_COMPILE=never forbids compiling it: "
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
    """PTX with a version that drivers older than the compiler accept; the instructions are an older card's."""
    return re.sub(rb"\.version \d+\.\d+", b".version 8.4", ptx.rstrip(b"\0"), count=1) + b"\0"


class Kernel:
    """A kernel on a card, unloaded when this is collected."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, driver: Any, library: Any, handle: Any) -> None:
        self.handle = handle
        finalize(self, driver.cuLibraryUnload, library).atexit = False  # the driver may be gone by then


def load_kernel(code: bytes, name: str, device: str) -> Kernel:
    """A kernel of machine code, loaded into the thread's current context."""
    from cuda.bindings import driver

    status, library = driver.cuLibraryLoadData(code, [], [], 0, [], [], 0)
    if not int(status):
        status, handle = driver.cuLibraryGetKernel(library, name.encode())
    if int(status):
        raise EngineError(f"{name} cannot be loaded on {device}: {status}")
    return Kernel(driver, library, handle)
