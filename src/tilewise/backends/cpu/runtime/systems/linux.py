"""Linux: the process's affinity, and the quotas of its cgroup and of those around it."""

from __future__ import annotations

import ctypes
import os
import platform
from functools import lru_cache
from pathlib import Path

from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads
from tilewise.backends.cpu.runtime.systems.posix import Posix

ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA = 158, 0x1023, 18  # the system call's number on x86-64
CGROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


class Linux(Posix):
    cores_of_threads = CoresOfThreads()

    def cores(self) -> int:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(cores, cgroup_quota(CGROUPS, OWN) or cores))

    def permits_amx(self) -> bool:
        return permits_amx()


@lru_cache(maxsize=1)
def permits_amx() -> bool:
    """Requested once; refused by old kernels, by sandboxes, and where a thread's alternate signal stack is too small
    for the tiles."""
    if platform.machine() != "x86_64":
        return False
    try:
        syscall = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return False
    return not syscall(ctypes.c_long(ARCH_PRCTL), ctypes.c_long(ARCH_REQ_XCOMP_PERM), ctypes.c_long(TILE_DATA))


def cgroup_quota(root: Path, own: Path) -> int | None:
    """Whole cores that the cgroup allows, version 2 or 1; None where nothing is limited."""
    found = [quota for folder in _folders(root, own) if (quota := _quota(folder)) is not None]
    return min(found, default=None)


def _folders(root: Path, own: Path) -> list[Path]:
    """The folder of this process's own cgroup and those above it: each may set a limit."""
    folders = [root, root / "cpu"]
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return folders
    for line in lines:
        number, kinds, path = line.split(":", 2)
        if number == "0" or "cpu" in kinds.split(","):
            base = root if number == "0" else root / "cpu"
            inner = base / path.lstrip("/")
            folders += [folder for folder in (inner, *inner.parents) if folder != base and base in folder.parents]
    return folders


def _quota(folder: Path) -> int | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()[:2]
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        if quota == "max" or int(quota) <= 0 or int(period) <= 0:
            return None
    except (OSError, ValueError):
        return None
    return max(1, -(-int(quota) // int(period)))
