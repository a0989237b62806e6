"""Threads and cores of an operating system: one file a system, all with the methods of `Posix`."""

from __future__ import annotations

import sys

from tilewise.backends.cpu.runtime.systems.linux import Linux
from tilewise.backends.cpu.runtime.systems.posix import Posix
from tilewise.backends.cpu.runtime.systems.windows import Windows

System = Posix | Windows


def system_of(platform: str = sys.platform) -> System:
    if platform == "win32":
        return Windows()
    return Posix() if platform == "darwin" else Linux()
