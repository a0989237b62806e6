"""CUDA C++ text → cubin, by NVRTC, with no toolkit, no header and no card needed; kept on disk.

The arch is always named: then NVRTC makes machine code even where there is no driver, so every kernel is compiled in
the tests of a machine without a card. The cache key is the text, the options and NVRTC's version.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewise.arrays.card import INSTALL
from tilewise.cache import DiskCache
from tilewise.errors import DeviceError, EngineError

OPTIONS = ("std=c++17",)


def compile_source(source: str, arch: str, cache: DiskCache | None = None) -> bytes:
    """The cubin of a self-contained source for an arch such as sm_90a."""
    if not arch.startswith("sm_"):
        raise EngineError(f"arch={arch!r} must be a real one, such as sm_80 or sm_90a: others give no machine code")
    store = cache if cache is not None else DiskCache("cubin")
    return store.get_or_build((source, arch, *OPTIONS, nvrtc_version()), lambda: _compile(source, arch))


def _compile(source: str, arch: str) -> bytes:
    from cuda.core import Program, ProgramOptions

    try:
        code = Program(source, "c++", ProgramOptions(arch=arch, std="c++17")).compile("cubin").code
    except Exception as error:
        raise EngineError(f"NVRTC refused the kernel for {arch}: {error}") from error
    return bytes(code)


@lru_cache(maxsize=1)
def nvrtc_version() -> str:
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise DeviceError(f"compiling a kernel needs NVRTC, which is not installed ({error}): {INSTALL}") from None
    return f"nvrtc {major}.{minor}"


def load_kernel(source: str, name: str, device: str) -> Any:
    """The kernel, ready to launch on a card, for as long as it is held."""
    from cuda.core import ObjectCode

    from tilewise.arrays.card import open_card
    from tilewise.engines.cuda.device import arch_of

    open_card(device)
    return ObjectCode.from_cubin(compile_source(source, arch_of(device))).get_kernel(name)
