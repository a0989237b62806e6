"""macOS: no affinity to ask for. Apple's slow cores count too, and take fewer tasks by themselves."""

from __future__ import annotations

import os

from tilewise.backends.cpu.runtime.systems.posix import Posix


class MacOS(Posix):
    def cores(self) -> int:
        return os.cpu_count() or 1
