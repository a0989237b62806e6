"""The disk cache of machine code; its keys contain the compiler's options and version besides the text.

The version is read from the installed package: NVRTC is loaded only to compile.
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
    """The disk cache of the folder that the environment names now."""
    return _store_for(simulated_arch(), *map(os.environ.get, PLACES))


@lru_cache(maxsize=8)
def _store_for(simulated_arch: str, *_places: str | None) -> DiskCache:
    return DiskCache(f"ptx-{simulated_arch}" if simulated_arch else "cubin")


@lru_cache(maxsize=1)
def compiler() -> str:
    """NVRTC's version, from its package if it is installed as one."""
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
