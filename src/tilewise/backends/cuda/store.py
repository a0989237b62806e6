"""Where machine code is kept on disk, and by what besides its text: the compiler's options and version.

The version is read off the installed package: NVRTC itself is loaded when something has to be compiled, and not before.
"""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache

from tilewise.arrays.card import INSTALL, simulated_arch
from tilewise.errors import DeviceError
from tilewise.system.cache import PLACES, DiskCache

OPTIONS = ("std=c++17",)
PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")


def store() -> DiskCache:
    """The cache on disk; the environment may name another at any time."""
    return _store_for(simulated_arch(), *map(os.environ.get, PLACES))


@lru_cache(maxsize=8)
def _store_for(simulated_arch: str, *_places: str | None) -> DiskCache:
    return DiskCache(f"ptx-{simulated_arch}" if simulated_arch else "cubin")


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
