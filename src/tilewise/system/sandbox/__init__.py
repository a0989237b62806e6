"""A sandbox for the current process: it may compute and use its open descriptors, nothing else. Linux only.

The thread that will run untrusted code calls `enter()` before its first instruction. Modules must be imported and files
opened before: afterwards no path can be opened. `missing()` gives the reason where there is no sandbox."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

from tilewise.system.sandbox import landlock, seccomp
from tilewise.system.sandbox.syscalls import ARCHITECTURES

CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def missing() -> str:
    """Why this system has no sandbox for a program; empty where it has one."""
    if sys.platform != "linux":
        return f"{platform.system() or sys.platform} has no seccomp"
    if platform.machine() not in ARCHITECTURES or sys.maxsize < 1 << 32:
        return f"there is no system-call table for {platform.machine()}"
    if seccomp.available(ARCHITECTURES[platform.machine()]):
        return ""
    return "this kernel has no seccomp filters (Linux 4.14 or newer, with CONFIG_SECCOMP_FILTER)"


def enter(broker: int = -1) -> str:
    """Confine every thread of this process irrevocably; the names of the mechanisms. OSError where the system refuses.

    `broker`: the socket on which descriptors of files may be received."""
    libc = ctypes.CDLL(None, use_errno=True)
    held = ["seccomp"]
    if libc.prctl(seccomp.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.unshare(NEW_NETWORK) == 0:  # as root: a socket would reach no network
        held.append("network namespace")
    if landlock.restrict():
        held.append("landlock")
    header, none = struct.pack("=Ii", CAPABILITIES, 0), bytes(24)
    if libc.capset(header, none) == 0:
        held.append("no capabilities")
    seccomp.install(ARCHITECTURES[platform.machine()], broker)
    return ", ".join(held)
